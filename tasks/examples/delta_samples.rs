//! Writes two real deltas for the measurement of codecs (`docs/codecs.md`): one of a classifier of
//! the bundled images, one of a small transformer on the project's documentation.
//!
//!     cargo run --release -p murmurate-tasks --example delta_samples -- strategies/tests/data
//!
//! A delta is the contribution of a peer with `local-sgd`: the change of the parameters in 16 inner
//! steps, here after 300 inner steps of training.

use murmurate_strategies::Trainer;
use murmurate_strategies::inner::InnerKind;
use murmurate_tasks::config::{DataSource, ImageConfig, ImageModel, LanguageConfig};
use murmurate_tasks::data::Shards;
use murmurate_tasks::{DeviceChoice, TaskConfig, build, parameters, take_steps};
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

type Failure = Box<dyn Error + Send + Sync>;

const BEFORE: u64 = 300;
const INNER_STEPS: u64 = 16;
const SEED: u64 = 7;

fn main() -> Result<(), Failure> {
    let to = std::env::args()
        .nth(1)
        .ok_or("where to: give a directory")?;
    let (to, text) = (Path::new(&to), to_text()?);
    let corpus = std::env::temp_dir().join("murmurate-delta-samples.txt");
    std::fs::write(&corpus, text)?;
    let image = ImageConfig {
        model: ImageModel::Mlp,
        hidden: 40,
        ..ImageConfig::default()
    };
    let language = LanguageConfig {
        layers: 2,
        width: 32,
        heads: 2,
        context: 32,
        batch: 16,
        ..LanguageConfig::of(DataSource::Path(corpus))
    };
    let mut shapes = String::from(
        "# Real deltas, written by `tasks/examples/delta_samples.rs`: f32, little-endian.\n",
    );
    let image = (TaskConfig::ImageClassifier(image), InnerKind::sgd(0.1));
    let language = (
        TaskConfig::LanguageModel(language),
        InnerKind::adam_w(0.001),
    );
    for (name, (task, inner)) in [("mnist", image), ("transformer", language)] {
        let mut trainer = build(&task, &inner, &DeviceChoice::Flex, SEED, &Shards::whole())?;
        let delta = delta(trainer.as_mut())?;
        let bytes: Vec<u8> = delta.iter().flat_map(|v| v.to_le_bytes()).collect();
        std::fs::write(to.join(format!("{name}-delta.f32")), &bytes)?;
        println!("{name}: {} values, {} bytes", delta.len(), bytes.len());
        let about = match name {
            "mnist" => "an MLP of 40 hidden units on MNIST, SGD at 0.1",
            _ => "a transformer of 2 layers of width 32 on text, AdamW at 0.001",
        };
        write!(
            shapes,
            "\n[[delta]]\nname = \"{name}\"\nabout = \"{about}\"\nshapes = [\n"
        )?;
        for tensor in trainer.layout().tensors() {
            writeln!(shapes, "  {:?},", tensor.shape)?;
        }
        shapes.push_str("]\n");
    }
    std::fs::write(to.join("deltas.toml"), shapes)?;
    Ok(())
}

/// The documentation, from the root of the workspace.
fn to_text() -> Result<String, Failure> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let mut files: Vec<_> = std::fs::read_dir(docs)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|ext| ext == "md"));
    files.sort();
    let texts = files.iter().map(std::fs::read_to_string);
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

fn delta(trainer: &mut dyn Trainer) -> Result<Vec<f32>, Failure> {
    take_steps(trainer, BEFORE)?;
    let before = parameters(trainer);
    take_steps(trainer, INNER_STEPS)?;
    let after = parameters(trainer);
    Ok(after.iter().zip(&before).map(|(a, b)| a - b).collect())
}
