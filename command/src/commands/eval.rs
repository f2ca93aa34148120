//! `murmurate eval`: measures a model on held-out data.

use crate::cli::EvalArgs;
use anyhow::bail;
use murmurate_node::config::{Config, Overrides};
use murmurate_node::store::tensors::TensorReader;
use murmurate_tasks::data::Shards;

pub(crate) fn run(args: &EvalArgs) -> anyhow::Result<()> {
    let config = config(args)?;
    let mut trainer = murmurate_tasks::build(
        &config.task,
        config.strategy.inner_kind(),
        &config.daemon.device,
        config.run.seed,
        // Held-out data is the same for every shard.
        &Shards::whole(),
    )?;
    murmurate_tasks::load_model(trainer.as_mut(), &args.model)?;
    let found = trainer.evaluate()?;
    if args.json {
        let object = serde_json::json!({
            "model": args.model,
            "test_accuracy": found.accuracy,
            "test_loss": found.loss,
            "samples": found.samples,
            "parameters": trainer.layout().len(),
        });
        println!("{object}");
        return Ok(());
    }
    let accuracy = found
        .accuracy
        .map_or(String::new(), |a| format!("accuracy {a:.4}, "));
    println!(
        "{accuracy}loss {:.4} on {} held samples",
        found.loss, found.samples
    );
    Ok(())
}

/// The configuration that describes the model: the given file, or the one inside the model file.
fn config(args: &EvalArgs) -> anyhow::Result<Config> {
    let overrides = Overrides {
        data: args.data.clone(),
        device: args.device.clone(),
        ..Overrides::default()
    };
    if args.config.is_some() {
        return Ok(Config::load(args.config.as_deref(), &overrides)?);
    }
    let model = TensorReader::open(&args.model)?;
    match model.description("config") {
        Some(text) => Ok(Config::from_text(&args.model, text, &overrides)?),
        None => bail!(
            "--model: {} does not say what model it is; describe it with --config FILE",
            args.model.display()
        ),
    }
}
