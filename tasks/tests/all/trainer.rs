//! The trainer of the built-in tasks: layouts, gradients, repetition, resumption, files.

use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer, SgdConfig};
use burn::tensor::Device;
use murmurate_protocol::{Blocks, InnerStep, Participants, PeerId, Run};
use murmurate_strategies::inner::{InnerKind, StepRule};
use murmurate_strategies::state::MemoryState;
use murmurate_strategies::{Proceed, StepControl, TrainError, Trainer};
use murmurate_tasks::config::{
    Augmentation, DataSource, ImageConfig, ImageModel, LanguageConfig, TaskConfig,
};
use murmurate_tasks::data::{ShardKind, Shards};
use murmurate_tasks::{
    BurnTrainer, DeviceChoice, ImageTask, LanguageTask, Segments, Task, build, burn, layout,
    load_model, parameters, take_steps, write_model,
};
use std::collections::{BTreeMap, BTreeSet};

const FLEX: DeviceChoice = DeviceChoice::Flex;

fn image_config(model: ImageModel) -> ImageConfig {
    ImageConfig {
        model,
        hidden: 16,
        batch: 32,
        ..ImageConfig::default()
    }
}

fn image(model: ImageModel, inner: &InnerKind) -> Box<dyn Trainer> {
    let task = TaskConfig::ImageClassifier(image_config(model));
    build(&task, inner, &FLEX, 5, &Shards::whole()).unwrap()
}

fn language_config() -> LanguageConfig {
    let usual = LanguageConfig::of(DataSource::Path("text".into()));
    LanguageConfig {
        layers: 2,
        width: 32,
        heads: 2,
        context: 16,
        batch: 8,
        ..usual
    }
}

fn language(inner: &InnerKind) -> BurnTrainer<LanguageTask> {
    let text = b"how much wood would a woodchuck chuck if it could? ".repeat(40);
    let task = LanguageTask::of_text(&language_config(), &text, 5, &Shards::whole()).unwrap();
    BurnTrainer::new(task, inner, &FLEX, 5).unwrap()
}

fn bits(trainer: &mut dyn Trainer) -> Vec<u32> {
    parameters(trainer).into_iter().map(f32::to_bits).collect()
}

fn shapes(task: &TaskConfig) -> Vec<String> {
    let layout = layout(task).unwrap();
    let show = |spec: &murmurate_strategies::TensorSpec| format!("{} {:?}", spec.name, spec.shape);
    layout.tensors().iter().map(show).collect()
}

#[test]
fn layouts_are_as_they_always_were() {
    let mlp = TaskConfig::default();
    assert_eq!(
        shapes(&mlp),
        [
            "hidden.weight [784, 256]",
            "hidden.bias [256]",
            "output.weight [256, 10]",
            "output.bias [10]",
        ]
    );
    let cnn = TaskConfig::ImageClassifier(image_config(ImageModel::Cnn));
    assert_eq!(
        shapes(&cnn),
        [
            "conv1.weight [8, 1, 3, 3]",
            "conv1.bias [8]",
            "conv2.weight [16, 8, 3, 3]",
            "conv2.bias [16]",
            "hidden.weight [784, 16]",
            "hidden.bias [16]",
            "output.weight [16, 10]",
            "output.bias [10]",
        ]
    );
    let language = TaskConfig::LanguageModel(LanguageConfig {
        layers: 1,
        ..language_config()
    });
    assert_eq!(
        shapes(&language),
        [
            "embed [256, 32]",
            "position [16, 32]",
            "blocks.0.query.weight [32, 32]",
            "blocks.0.key.weight [32, 32]",
            "blocks.0.value.weight [32, 32]",
            "blocks.0.join.weight [32, 32]",
            "blocks.0.widen.weight [32, 128]",
            "blocks.0.narrow.weight [128, 32]",
            "output.weight [32, 256]",
        ]
    );
}

#[test]
fn a_trainer_has_the_layout_that_was_announced() {
    for model in [ImageModel::Mlp, ImageModel::Cnn] {
        let announced = layout(&TaskConfig::ImageClassifier(image_config(model))).unwrap();
        let trainer = image(model, &InnerKind::sgd(0.1));
        assert_eq!(*trainer.layout(), announced);
    }
}

#[test]
fn the_flat_path_takes_the_same_inner_steps_as_burn() {
    let config = image_config(ImageModel::Mlp);
    let task = || ImageTask::new(&config, 5, &Shards::whole()).unwrap();
    let mut ours = BurnTrainer::new(task(), &InnerKind::sgd(0.1), &FLEX, 5).unwrap();
    let start = BurnTrainer::new(task(), &InnerKind::sgd(0.1), &FLEX, 5).unwrap();
    let (mut model, mut task) = (start.model().clone(), task());
    drop(start);
    let device = Device::flex().autodiff();
    let mut sgd: ModuleOptimizer = SgdConfig::new().init();
    for number in 0..5 {
        let batch = task.batch(number, &device).unwrap();
        let gradients = task.loss(&model, batch, &mut Segments::whole()).backward();
        let gradients = GradientsParams::from_grads(gradients, &model);
        model = sgd.step(0.1, model, gradients);
    }
    take_steps(&mut ours, 5).unwrap();
    struct Read(Vec<f32>);
    impl burn::module::ModuleVisitor for Read {
        fn visit_float<const D: usize>(
            &mut self,
            param: &burn::module::Param<burn::tensor::Tensor<D>>,
        ) {
            self.0.extend(param.val().inner().into_data().iter::<f32>());
        }
    }
    let mut theirs = Read(Vec::new());
    model.visit(&mut theirs);
    for (a, b) in parameters(&mut ours).iter().zip(&theirs.0) {
        // `x - lr g` rounds once in each of the two ways, five times.
        assert!((a - b).abs() <= 1e-6, "{a} {b}");
    }
}

#[test]
fn same_seed_same_bits_and_another_seed_other_bits() {
    let kind = InnerKind::adam_w(1e-3);
    let (mut a, mut b) = (image(ImageModel::Mlp, &kind), image(ImageModel::Mlp, &kind));
    assert_eq!(bits(a.as_mut()), bits(b.as_mut()));
    take_steps(a.as_mut(), 4).unwrap();
    take_steps(b.as_mut(), 4).unwrap();
    assert_eq!(bits(a.as_mut()), bits(b.as_mut()));
    let task = TaskConfig::ImageClassifier(image_config(ImageModel::Mlp));
    let mut other = build(&task, &kind, &FLEX, 6, &Shards::whole()).unwrap();
    take_steps(other.as_mut(), 4).unwrap();
    assert_ne!(bits(a.as_mut()), bits(other.as_mut()));
}

fn peer(number: u8) -> PeerId {
    PeerId::from_bytes([number; 32])
}

/// Where the windows of many batches begin, in a text whose every window is another one.
fn starts_of(me: u8, peers: &[u8]) -> BTreeSet<u32> {
    let text: Vec<u8> = (0..30_000_u32)
        .flat_map(|n| [(n >> 8) as u8, n as u8])
        .collect();
    let shards = Shards {
        seed: 5,
        ..Shards::default()
    };
    assert_eq!(shards.kind, ShardKind::Dealt);
    let mut task = LanguageTask::of_text(&language_config(), &text, 5, &shards).unwrap();
    task.dataset_mut().unwrap().deal(&Participants::new(
        peer(me),
        peers.iter().copied().map(peer),
    ));
    let mut starts = BTreeSet::new();
    for number in 0..600 {
        let (bytes, _) = task.batch(number, &Device::flex()).unwrap();
        let rows = bytes.into_data().iter::<i32>().collect::<Vec<_>>();
        // Five bytes tell the place, at an even or an odd one.
        let place = |row: &[i32]| {
            let at = |index: usize| row[index] as u32;
            match (at(2) << 8 | at(3)) == (at(0) << 8 | at(1)) + 1 {
                true => 2 * (at(0) << 8 | at(1)),
                false => 2 * (at(1) << 8 | at(2)) - 1,
            }
        };
        starts.extend(rows.chunks(16).map(place));
    }
    starts
}

#[test]
fn peers_that_hold_one_text_divide_it() {
    let (a, b) = (starts_of(1, &[2]), starts_of(2, &[1]));
    assert!(a.is_disjoint(&b));
    // Each trains about half of it, and alone all of it.
    let alone = starts_of(1, &[]).into_iter();
    let reached: BTreeSet<bool> = alone
        .map(|start| a.contains(&start) || !b.contains(&start))
        .collect();
    assert_eq!(reached.len(), 2, "alone, the other's part is trained too");
}

#[test]
fn images_are_trained_in_the_blocks_that_a_peer_is_told() {
    let task = TaskConfig::ImageClassifier(image_config(ImageModel::Mlp));
    let kind = InnerKind::sgd(0.1);
    let fresh = || build(&task, &kind, &FLEX, 5, &Shards::default()).unwrap();
    let told = |first| Blocks {
        runs: vec![Run::new(first, 1 << 20)],
        done: None,
    };
    let trained = |first| {
        let mut trainer = fresh();
        trainer.train_blocks(&told(first));
        take_steps(trainer.as_mut(), 2).unwrap();
        assert!(trainer.finished_blocks() > 0);
        bits(trainer.as_mut())
    };
    assert_ne!(trained(0), trained(5000), "other samples");
    assert_eq!(trained(7), trained(7));
    assert_eq!(fresh().pool(), fresh().pool());
    assert!(fresh().pool().is_some_and(|pool| pool.blocks > 1));
    let own = build(&task, &kind, &FLEX, 5, &Shards::whole()).unwrap();
    assert_eq!(own.pool(), None, "data of its own");
    // A trainer that resumes goes on in its blocks.
    resumes(|| {
        let mut trainer = fresh();
        trainer.train_blocks(&told(3));
        trainer
    });
}

#[test]
fn peers_that_hold_the_same_images_divide_them() {
    let task = TaskConfig::ImageClassifier(image_config(ImageModel::Mlp));
    let kind = InnerKind::sgd(0.1);
    let trained = |me: u8, peers: &[u8]| {
        let mut trainer = build(&task, &kind, &FLEX, 5, &Shards::default()).unwrap();
        trainer.deal(&Participants::new(
            peer(me),
            peers.iter().copied().map(peer),
        ));
        take_steps(trainer.as_mut(), 2).unwrap();
        bits(trainer.as_mut())
    };
    assert_ne!(trained(1, &[2]), trained(2, &[1]), "other samples");
    assert_eq!(trained(1, &[2, 3]), trained(1, &[3, 2]));
    assert_ne!(trained(1, &[2]), trained(1, &[2, 3]), "dealt again");
}

#[test]
fn all_shards_start_from_the_same_bits_and_see_other_data() {
    let task = TaskConfig::ImageClassifier(image_config(ImageModel::Mlp));
    let kind = InnerKind::sgd(0.1);
    let peer = |index| {
        let shards = Shards {
            kind: ShardKind::ByLabel,
            index,
            of: 4,
            seed: 5,
            ..Shards::whole()
        };
        build(&task, &kind, &FLEX, 5, &shards).unwrap()
    };
    let (mut a, mut b) = (peer(0), peer(1));
    assert_eq!(bits(a.as_mut()), bits(b.as_mut()));
    take_steps(a.as_mut(), 1).unwrap();
    take_steps(b.as_mut(), 1).unwrap();
    assert_ne!(bits(a.as_mut()), bits(b.as_mut()));
}

fn resumes(mut build: impl FnMut() -> Box<dyn Trainer>) {
    let mut through = build();
    take_steps(through.as_mut(), 7).unwrap();
    let mut first = build();
    take_steps(first.as_mut(), 3).unwrap();
    let mut state = MemoryState::default();
    first.save(&mut state).unwrap();
    let saved = parameters(first.as_mut());
    let mut second = build();
    second.load(&state).unwrap();
    let len = saved.len();
    second.visit(0..len, &mut |offset, values| {
        values.copy_from_slice(&saved[offset..offset + values.len()]);
    });
    take_steps(second.as_mut(), 4).unwrap();
    assert_eq!(bits(through.as_mut()), bits(second.as_mut()));
}

#[test]
fn a_resumed_trainer_goes_on_to_the_bit() {
    resumes(|| image(ImageModel::Mlp, &InnerKind::adam_w(1e-3)));
    resumes(|| image(ImageModel::Cnn, &InnerKind::sgd(0.05)));
    resumes(|| Box::new(language(&InnerKind::adam_w(1e-3))));
}

#[test]
fn gradients_cover_the_layout_and_leave_the_parameters_alone() {
    let mut trainer = language(&InnerKind::sgd(0.1));
    let before = bits(&mut trainer);
    let mut seen = vec![0_u8; trainer.layout().len()];
    let mut norm = 0.0;
    let report = trainer
        .gradients(&mut |offset, gradient| {
            for (at, value) in gradient.iter().enumerate() {
                seen[offset + at] += 1;
                norm += value * value;
            }
        })
        .unwrap();
    assert!(seen.iter().all(|&count| count == 1));
    assert!(norm > 0.0 && norm.is_finite());
    assert_eq!((report.steps, report.samples), (1, 8));
    assert_eq!(bits(&mut trainer), before);
}

#[test]
fn gradients_are_what_an_inner_step_uses() {
    let mut by_hand = image(ImageModel::Mlp, &InnerKind::sgd(0.1));
    let mut by_step = image(ImageModel::Mlp, &InnerKind::sgd(0.1));
    let mut gradient = vec![0.0; by_hand.layout().len()];
    by_hand
        .gradients(&mut |offset, values| {
            gradient[offset..offset + values.len()].copy_from_slice(values);
        })
        .unwrap();
    let before = parameters(by_hand.as_mut());
    take_steps(by_step.as_mut(), 1).unwrap();
    let after = parameters(by_step.as_mut());
    for ((x, g), y) in before.iter().zip(&gradient).zip(after) {
        // One rounding of `x - lr g`.
        assert!((x - 0.1 * g - y).abs() <= 1e-6, "{x} {g} {y}");
    }
}

/// With any cuts the gradients are bit-identical to those of the uncut tape, the last layer's
/// first.
#[test]
fn gradients_leave_segment_by_segment_and_are_those_of_one_tape() {
    let sgd = InnerKind::sgd(1.0);
    let build = |name: &str| -> Box<dyn Trainer> {
        match name {
            "mlp" => image(ImageModel::Mlp, &sgd),
            "cnn" => image(ImageModel::Cnn, &sgd),
            _ => Box::new(language(&sgd)),
        }
    };
    for name in ["mlp", "cnn", "language"] {
        let (mut by_hand, mut by_step) = (build(name), build(name));
        // After a few inner steps no value is zero.
        for trainer in [&mut by_hand, &mut by_step] {
            take_steps(trainer.as_mut(), 3).unwrap();
        }
        let mut expected = parameters(by_hand.as_mut());
        let mut order = Vec::new();
        by_hand
            .gradients(&mut |offset, gradient| {
                order.push(offset);
                for (x, g) in expected[offset..].iter_mut().zip(gradient) {
                    *x -= 1.0 * *g;
                }
            })
            .unwrap();
        take_steps(by_step.as_mut(), 1).unwrap();
        let found = parameters(by_step.as_mut());
        let differing = expected
            .iter()
            .zip(&found)
            .filter(|(a, b)| a.to_bits() != b.to_bits());
        assert_eq!(differing.count(), 0, "{name}");
        let first = by_hand
            .layout()
            .tensors()
            .iter()
            .position(|t| t.offset as usize == order[0]);
        let output = by_hand
            .layout()
            .tensors()
            .iter()
            .position(|t| t.name == "output.weight");
        assert_eq!(first, output, "{name}: {order:?}");
        assert_eq!(order.iter().min(), Some(&0));
        assert!(
            order.iter().position(|&at| at == 0) > Some(0),
            "{name}: {order:?}"
        );
    }
}

#[test]
fn a_visit_reaches_exactly_its_range() {
    let mut trainer = image(ImageModel::Mlp, &InnerKind::sgd(0.1));
    let before = parameters(trainer.as_mut());
    let hidden = trainer.layout().tensors()[1].range();
    let range = hidden.start - 3..hidden.end + 2;
    let mut pieces = Vec::new();
    trainer.visit(range.clone(), &mut |offset, values| {
        pieces.push((offset, values.len()));
        values.fill(7.0);
    });
    assert_eq!(
        pieces,
        [(range.start, 3), (hidden.start, 16), (hidden.end, 2)]
    );
    for (index, (now, then)) in parameters(trainer.as_mut()).iter().zip(&before).enumerate() {
        assert_eq!(
            *now,
            if range.contains(&index) { 7.0 } else { *then },
            "{index}"
        );
    }
}

#[test]
fn a_model_file_holds_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    let mut trained = image(ImageModel::Cnn, &InnerKind::sgd(0.05));
    take_steps(trained.as_mut(), 3).unwrap();
    let values = parameters(trained.as_mut());
    write_model(&path, trained.layout(), &values, &BTreeMap::new()).unwrap();
    let mut fresh = image(ImageModel::Cnn, &InnerKind::sgd(0.05));
    load_model(fresh.as_mut(), &path).unwrap();
    assert_eq!(bits(fresh.as_mut()), bits(trained.as_mut()));
    assert_eq!(fresh.evaluate().unwrap(), trained.evaluate().unwrap());
    let mut other = language(&InnerKind::sgd(0.1));
    let error = load_model(&mut other, &path).unwrap_err().to_string();
    assert!(
        error.contains("`conv1.bias` is not of this model"),
        "{error}"
    );
}

#[test]
fn both_classifiers_learn() {
    let none = Augmentation::None;
    for (model, lr) in [(ImageModel::Mlp, 0.1), (ImageModel::Cnn, 0.05)] {
        let config = ImageConfig {
            augmentation: none,
            ..image_config(model)
        };
        let task = TaskConfig::ImageClassifier(config);
        let mut trainer = build(&task, &InnerKind::sgd(lr), &FLEX, 5, &Shards::whole()).unwrap();
        let fresh = trainer.evaluate().unwrap();
        assert_eq!(fresh.samples, 2_000);
        assert!((fresh.loss - 10.0_f64.ln()).abs() < 1e-3, "{fresh:?}");
        take_steps(trainer.as_mut(), 150).unwrap();
        let trained = trainer.evaluate().unwrap();
        assert!(trained.accuracy.unwrap() > 0.8, "{model:?} {trained:?}");
    }
}

#[test]
fn the_language_model_learns() {
    let mut trainer = language(&InnerKind::adam_w(3e-3));
    let fresh = trainer.evaluate().unwrap();
    assert!((fresh.loss - 256.0_f64.ln()).abs() < 1e-3, "{fresh:?}");
    take_steps(&mut trainer, 150).unwrap();
    let trained = trainer.evaluate().unwrap();
    assert!(trained.loss < 1.0, "{trained:?}");
    assert_eq!(trained.accuracy, None);
}

#[test]
fn a_loss_that_is_not_finite_is_an_error() {
    let mut trainer = image(ImageModel::Mlp, &InnerKind::sgd(0.1));
    let len = trainer.layout().len();
    trainer.visit(0..len, &mut |_, values| values.fill(f32::NAN));
    assert!(matches!(
        take_steps(trainer.as_mut(), 1),
        Err(TrainError::NotFinite)
    ));
}

/// Takes three inner steps at this share of the learning rate.
struct Slower(f64);

impl StepControl for Slower {
    fn before(&mut self, step: InnerStep) -> Proceed {
        match step.0 < 3 {
            true => Proceed::Go,
            false => Proceed::Stop,
        }
    }

    fn rule(&self, _: InnerStep) -> StepRule {
        StepRule {
            rate: self.0,
            ..StepRule::default()
        }
    }
}

#[test]
fn the_rule_of_a_step_scales_its_rate() {
    let mut slow = language(&InnerKind::sgd(0.1));
    let mut half = language(&InnerKind::sgd(0.05));
    slow.steps(&mut Slower(0.5)).unwrap();
    half.steps(&mut Slower(1.0)).unwrap();
    // Half of 0.1 in f32 is 0.05 in f32.
    assert_eq!(parameters(&mut slow), parameters(&mut half));
    let before = parameters(&mut slow);
    slow.steps(&mut Slower(0.0)).unwrap();
    assert_eq!(parameters(&mut slow), before);
}

/// Takes inner steps with FedProx's pull to their start.
struct Sprung {
    left: u64,
    mu: f32,
    anchor: Vec<f32>,
    seen: usize,
}

impl StepControl for Sprung {
    fn before(&mut self, step: InnerStep) -> Proceed {
        match step.0 < self.left {
            true => Proceed::Go,
            false => Proceed::Stop,
        }
    }

    fn correct(&mut self, offset: usize, values: &[f32], gradient: &mut [f32]) {
        let anchor = &self.anchor[offset..offset + values.len()];
        for ((g, x), a) in gradient.iter_mut().zip(values).zip(anchor) {
            *g += self.mu * (x - a);
        }
        self.seen += values.len();
    }
}

#[test]
fn the_inner_optimizer_takes_what_control_makes_of_the_gradient() {
    let (lr, mu, steps) = (0.1f32, 0.5f32, 3);
    let mut corrected = language(&InnerKind::sgd(0.1));
    let mut by_hand = language(&InnerKind::sgd(0.1));
    let anchor = parameters(&mut corrected);
    let mut control = Sprung {
        left: steps,
        mu,
        anchor: anchor.clone(),
        seen: 0,
    };
    corrected.steps(&mut control).unwrap();
    assert_eq!(control.seen, steps as usize * anchor.len());
    for _ in 0..steps {
        let mut gradient = vec![0.0; anchor.len()];
        by_hand
            .gradients(&mut |offset, g| gradient[offset..offset + g.len()].copy_from_slice(g))
            .unwrap();
        by_hand.visit(0..anchor.len(), &mut |offset, piece| {
            for (at, x) in (offset..).zip(piece) {
                *x -= lr * (gradient[at] + mu * (*x - anchor[at]));
            }
        });
    }
    let plain = {
        let mut plain = language(&InnerKind::sgd(0.1));
        take_steps(&mut plain, steps).unwrap();
        parameters(&mut plain)
    };
    let (found, expected) = (parameters(&mut corrected), parameters(&mut by_hand));
    let apart = |a: &[f32], b: &[f32]| {
        let far = a.iter().zip(b).map(|(a, b)| (a - b).abs());
        far.fold(0.0, f32::max)
    };
    assert!(
        apart(&found, &expected) < 1e-6,
        "{}",
        apart(&found, &expected)
    );
    assert!(apart(&found, &plain) > 1e-5, "the spring pulls");
}
