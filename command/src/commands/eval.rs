//! `murmurate eval`: measures a model on held-out data.

use crate::cli::EvalArgs;
use anyhow::bail;
use murmurate_node::config::{Config, Overrides};
use murmurate_node::store::tensors::TensorReader;
use murmurate_tasks::data::Shards;
use toml::{Table, Value};

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
    let bytes = murmurate_tasks::bytes_per_token(&config.task)?;
    let bits = bytes.map(|bytes| found.loss / std::f64::consts::LN_2 / bytes);
    if args.json {
        let object = serde_json::json!({
            "model": args.model,
            "test_accuracy": found.accuracy,
            "test_loss": found.loss,
            "samples": found.samples,
            "perplexity": bits.map(|_| found.loss.exp()),
            "bits_per_byte": bits,
            "parameters": trainer.layout().len(),
        });
        println!("{object}");
        return Ok(());
    }
    let accuracy = found
        .accuracy
        .map_or(String::new(), |a| format!("accuracy {a:.4}, "));
    let text = bits.map_or(String::new(), |bits| {
        let perplexity = found.loss.exp();
        format!(" per token, perplexity {perplexity:.2}, {bits:.4} bits per byte")
    });
    let unit = if bits.is_some() { "tokens" } else { "samples" };
    println!(
        "{accuracy}loss {:.4}{text} on {} held {unit}",
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
    let text = match args.model.is_dir() {
        true => of_folder(args)?,
        false => of_file(args)?,
    };
    Ok(Config::from_text(&args.model, &text, &overrides)?)
}

/// The configuration that a model file describes, with the data given.
fn of_file(args: &EvalArgs) -> anyhow::Result<String> {
    let model = TensorReader::open(&args.model)?;
    let Some(text) = model.description("config") else {
        bail!(
            "--model: {} does not say what model it is; describe it with --config FILE",
            args.model.display()
        );
    };
    let mut table: Table = text.parse()?;
    if let Some(task) = table.get_mut("task").and_then(Value::as_table_mut) {
        match &args.data {
            Some(data) => {
                task.insert("data".to_owned(), Value::String(data.clone()));
            }
            None if task.contains_key("data") => {}
            None => bail!(
                "--data: {} was trained on data of its own; give the data to measure it on",
                args.model.display()
            ),
        }
    }
    Ok(toml::to_string(&table)?)
}

/// The configuration of a Hugging Face directory.
fn of_folder(args: &EvalArgs) -> anyhow::Result<String> {
    let Some(data) = &args.data else {
        bail!("--data: give the text to measure the model on");
    };
    if args.model.join("adapter_config.json").exists() {
        bail!(
            "--model: {} holds adapters; describe their model with --config FILE",
            args.model.display()
        );
    }
    let task = [
        ("kind", "causal-lm".to_owned()),
        ("model", args.model.to_string_lossy().into_owned()),
        ("data", data.clone()),
    ];
    let task = task.map(|(key, value)| (key.to_owned(), Value::String(value)));
    let task = Value::Table(Table::from_iter(task));
    Ok(toml::to_string(&Table::from_iter([(
        "task".to_owned(),
        task,
    )]))?)
}
