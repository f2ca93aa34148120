//! Forward passes whose parameters come through gates: they are those of parameters that were all there.

use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::state::MemoryState;
use murmurate_strategies::{Gate, Trainer};
use murmurate_tasks::config::{DataSource, ImageConfig, ImageModel, LanguageConfig, TaskConfig};
use murmurate_tasks::data::Shards;
use murmurate_tasks::{BurnTrainer, DeviceChoice, LanguageTask, build, parameters, take_steps};
use std::ops::Range;
use std::sync::{Arc, Mutex};

const NAMES: [&str; 3] = ["mlp", "cnn", "language"];

fn trainer(name: &str) -> Box<dyn Trainer> {
    let (sgd, flex) = (InnerKind::sgd(0.1), DeviceChoice::Flex);
    let image = |model| {
        let config = ImageConfig {
            model,
            hidden: 16,
            batch: 32,
            ..ImageConfig::default()
        };
        let task = TaskConfig::ImageClassifier(config);
        build(&task, &sgd, &flex, 5, &Shards::whole()).unwrap()
    };
    match name {
        "mlp" => image(ImageModel::Mlp),
        "cnn" => image(ImageModel::Cnn),
        _ => {
            let config = LanguageConfig {
                layers: 2,
                width: 32,
                heads: 2,
                context: 16,
                batch: 8,
                ..LanguageConfig::of(DataSource::Path("text".into()))
            };
            let text = b"how much wood would a woodchuck chuck if it could? ".repeat(40);
            let task = LanguageTask::of_text(&config, &text, 5, &Shards::whole()).unwrap();
            Box::new(BurnTrainer::new(task, &sgd, &flex, 5).unwrap())
        }
    }
}

/// Gates to these parameters, of which all open but those of tensors that reach beyond `until`.
struct Gates {
    values: Vec<f32>,
    until: usize,
    reads: Mutex<Vec<Range<usize>>>,
}

impl Gate for Gates {
    fn read(&self, range: Range<usize>, into: &mut [f32]) -> bool {
        self.reads.lock().unwrap().push(range.clone());
        into.copy_from_slice(&self.values[range.clone()]);
        range.end <= self.until
    }
}

fn gates(values: &[f32], until: usize) -> Arc<Gates> {
    Arc::new(Gates {
        values: values.to_vec(),
        until,
        reads: Mutex::default(),
    })
}

/// The gradients of the next two batches, and the losses.
fn gradients(trainer: &mut dyn Trainer) -> Vec<u32> {
    let mut found = Vec::new();
    for _ in 0..2 {
        let mut gradient = vec![0.0; trainer.layout().len()];
        let report = trainer
            .gradients(&mut |offset, values| {
                gradient[offset..offset + values.len()].copy_from_slice(values);
            })
            .unwrap();
        found.extend(gradient.iter().map(|g| g.to_bits()));
        found.push((report.loss as f32).to_bits());
    }
    found
}

/// A trainer after a few inner steps, the parameters that are decided next, and the gradients at these.
fn start(name: &str) -> (Box<dyn Trainer>, Vec<f32>, Vec<u32>) {
    let mut ahead = trainer(name);
    take_steps(ahead.as_mut(), 4).unwrap();
    let next = parameters(ahead.as_mut());
    let [mut here, mut expected] = [trainer(name), trainer(name)];
    take_steps(here.as_mut(), 3).unwrap();
    take_steps(expected.as_mut(), 3).unwrap();
    expected.write(0, &next);
    let expected = gradients(expected.as_mut());
    (here, next, expected)
}

#[test]
fn a_pass_through_gates_has_the_same_gradients() {
    for name in NAMES {
        let (mut here, next, expected) = start(name);
        let gates = gates(&next, usize::MAX);
        let gate: Arc<dyn Gate> = Arc::<Gates>::clone(&gates);
        assert!(here.forward(&gate).unwrap(), "{name}");
        assert_eq!(gradients(here.as_mut()), expected, "{name}");
        assert_eq!(parameters(here.as_mut()), next, "{name}");
        let reads = gates.reads.lock().unwrap();
        // Each tensor once, the first layer's first and the output's after all others.
        let tensors = here.layout().tensors();
        assert_eq!(reads.len(), tensors.len(), "{name}: {reads:?}");
        assert_eq!(reads[0].start, 0, "{name}: {reads:?}");
        let output = tensors.iter().position(|t| t.name == "output.weight");
        let output = tensors[output.unwrap()].range();
        let at = reads.iter().position(|read| *read == output).unwrap();
        assert!(at + 2 >= reads.len(), "{name}: {reads:?}");
    }
}

#[test]
fn a_pass_that_is_given_up_or_dropped_leaves_its_batch() {
    for name in NAMES {
        let (mut here, next, expected) = start(name);
        let half = next.len() / 2;
        let gate: Arc<dyn Gate> = gates(&next, half);
        assert!(!here.forward(&gate).unwrap(), "{name}");
        here.drop_forward();
        here.write(0, &next);
        assert_eq!(gradients(here.as_mut()), expected, "{name}: given up");

        let (mut here, next, expected) = start(name);
        let gate: Arc<dyn Gate> = gates(&next, usize::MAX);
        assert!(here.forward(&gate).unwrap());
        here.drop_forward();
        assert_eq!(gradients(here.as_mut()), expected, "{name}: dropped");

        let (mut here, next, expected) = start(name);
        let gate: Arc<dyn Gate> = gates(&next, usize::MAX);
        assert!(here.forward(&gate).unwrap());
        assert_eq!(parameters(here.as_mut()), next, "{name}");
        assert_eq!(gradients(here.as_mut()), expected, "{name}: read");
    }
}

#[test]
fn a_state_that_is_saved_during_a_pass_is_that_of_before() {
    for name in NAMES {
        let (mut here, next, expected) = start(name);
        let gate: Arc<dyn Gate> = gates(&next, usize::MAX);
        assert!(here.forward(&gate).unwrap());
        let mut state = MemoryState::default();
        here.save(&mut state).unwrap();
        let mut resumed = trainer(name);
        resumed.load(&state).unwrap();
        resumed.write(0, &next);
        assert_eq!(gradients(resumed.as_mut()), expected, "{name}: resumed");
        assert_eq!(gradients(here.as_mut()), expected, "{name}: went on");
    }
}
