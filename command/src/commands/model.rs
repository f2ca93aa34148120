//! The commands about a trained model: `eval` measures it on held-out data, `export` writes it as safetensors.

use super::{against, generate};
use crate::cli::{AgainstArg, EvalArgs, ExportArgs, StoreArg};
use crate::out;
use anyhow::bail;
use murmurate_node::config::{Config, Overrides};
use murmurate_node::store::tensors::TensorReader;
use murmurate_node::store::{Best, Buffer, Checkpoint, Manifest, StoreError, buffers_of};
use murmurate_node::unit::Unit;
use murmurate_strategies::{Layout, TensorSpec, Trainer, kept_back};
use murmurate_tasks::config::{DataSource, Objective};
use murmurate_tasks::data::Shards;
use murmurate_tasks::{ExtraTensor, TaskConfig};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use toml::{Table, Value};

pub(crate) fn eval(args: &EvalArgs) -> anyhow::Result<()> {
    if let (Some(file), Some(model)) = (&args.choices, &args.model) {
        return generate::choices(args, model, file);
    }
    let (config, mut trainer, manifest) = subject(args)?;
    let found = trainer.evaluate()?;
    if let (Some(AgainstArg::Local), Some(manifest)) = (args.against, &manifest) {
        drop(trainer);
        return against::local(args, &config, manifest, found);
    }
    let unit = Unit {
        bytes_per_token: murmurate_tasks::bytes_per_token(&config.task)?,
    };
    let text = unit.of_text(found.loss);
    let context = murmurate_tasks::context(&config.task)?;
    let of = Held::of(&config.task, context);
    for text in trainer
        .data_reports()
        .iter()
        .flat_map(|data| data.take_untold())
    {
        out::tell(text);
    }
    if args.json {
        let object = serde_json::json!({
            "model": args.model.as_ref().or(args.dir.as_ref()),
            "test_accuracy": found.accuracy,
            "test_top_5": found.top_5,
            "test_loss": found.loss,
            "loss_unit": of.loss,
            "unit": of.unit,
            "samples": found.samples,
            "context": context,
            "held_out": of.share,
            "perplexity": text.map(|(perplexity, _)| perplexity),
            "bits_per_byte": text.map(|(_, bits)| bits),
            "named": trainer.named_scores().last(),
            "parameters": trainer.layout().len(),
        });
        return out::line(object);
    }
    let share = |name: &str, value: Option<f64>| {
        value.map_or(String::new(), |value| format!("{name} {value:.4}, "))
    };
    let text = text.map_or(String::new(), |(perplexity, bits)| {
        format!(", perplexity {perplexity:.2}, {bits:.4} bits per byte")
    });
    let named = trainer.named_scores().last().into_iter();
    let named: String = named
        .map(|(name, value)| share(&name, Some(value)))
        .collect();
    out::line(format_args!(
        "{}{}{named}loss {:.4}, {} per {}{text}, on {} {}",
        share("accuracy", found.accuracy),
        share("top 5", found.top_5),
        found.loss,
        of.loss,
        of.unit,
        found.samples,
        of.words,
    ))
}

/// The unit of a loss of classes or tokens.
const NATS: &str = "nats";

/// What an evaluation measures.
struct Held {
    loss: &'static str,
    /// One term of the mean loss.
    unit: &'static str,
    /// The share of the data that is held out, if the configuration says it; otherwise that of the data's
    /// kind, or files of their own.
    share: Option<f64>,
    /// The terms, for people.
    words: String,
}

impl Held {
    fn of(task: &TaskConfig, context: Option<usize>) -> Self {
        let context = context.unwrap_or_default();
        let windows = |units: &str, share: f64| {
            format!(
                "{units} in up to 512 windows of {context}, spread evenly over the last {} % of the text",
                (1e4 * share).round() / 1e2
            )
        };
        match task {
            TaskConfig::LanguageModel(task) => Self {
                loss: NATS,
                unit: "byte",
                share: Some(task.held_out),
                words: windows("bytes", task.held_out),
            },
            TaskConfig::CausalLm(task) => Self {
                loss: NATS,
                unit: "token",
                share: Some(task.held_out),
                words: windows("tokens", task.held_out),
            },
            TaskConfig::Tabular(task) => Self {
                loss: match task.objective {
                    Objective::Classification => NATS,
                    Objective::Regression => "squared error",
                },
                unit: "row",
                share: Some(task.held_out),
                words: "held-out rows".to_owned(),
            },
            TaskConfig::ImageClassifier(task) => Self {
                loss: NATS,
                unit: "image",
                share: task.held_out,
                words: "held-out images".to_owned(),
            },
            TaskConfig::Attached(_) => Self {
                loss: "as the trainer says",
                unit: "sample",
                share: None,
                words: "held-out samples".to_owned(),
            },
        }
    }
}

/// A configuration, a trainer with the model, and the manifest where it is that of a checkpoint.
type Subject = (Config, Box<dyn Trainer>, Option<Manifest>);

/// The model that is measured.
fn subject(args: &EvalArgs) -> anyhow::Result<Subject> {
    let overrides = Overrides {
        data: args.data.clone(),
        device: args.device.clone(),
        ..Overrides::default()
    };
    if let Some(model) = &args.model {
        let config = config(args, model, &overrides)?;
        let mut trainer = trainer(&config)?;
        murmurate_tasks::load_model(trainer.as_mut(), model)?;
        return Ok((config, trainer, None));
    }
    let dir = args.dir.as_deref().expect("clap requires one of the two");
    let (manifest, _, parameters, Beside { local, .. }) = read(dir, StoreArg::Anchor)?;
    let config = Config::from_text(&dir.join("checkpoint.json"), &manifest.config, &overrides)?;
    let mut trainer = trainer(&config)?;
    let common = manifest
        .tensors
        .iter()
        .map(|it| (it, &parameters[it.range()]));
    let own = local.iter().map(|(it, values)| (it, &values[..]));
    let tensors: BTreeMap<&str, (&TensorSpec, &[f32])> =
        common.chain(own).map(|of| (&of.0.name[..], of)).collect();
    for tensor in trainer.layout().clone().tensors() {
        let found = tensors.get(&tensor.name[..]);
        let found = found.filter(|(kept, _)| kept.shape == tensor.shape);
        let Some((_, values)) = found else {
            bail!(
                "--dir: the checkpoint in {} has no tensor `{}`",
                dir.display(),
                tensor.name
            );
        };
        trainer.write(tensor.range().start, values);
    }
    Ok((config, trainer, Some(manifest)))
}

fn trainer(config: &Config) -> anyhow::Result<Box<dyn Trainer>> {
    Ok(murmurate_tasks::build(
        &config.task,
        config.strategy.inner_kind(),
        &config.daemon.device,
        config.run.seed,
        // Held-out data is the same for every shard.
        &Shards::whole(),
    )?)
}

/// The configuration that describes the model: the given file, or the one inside the model file.
fn config(args: &EvalArgs, model: &Path, overrides: &Overrides) -> anyhow::Result<Config> {
    if args.config.is_some() {
        return Ok(Config::load(args.config.as_deref(), overrides)?);
    }
    let text = if model.is_dir() {
        of_folder(args, model)?
    } else {
        of_file(args, model)?
    };
    Ok(Config::from_text(model, &text, overrides)?)
}

/// The configuration that a model file describes, with the data given.
fn of_file(args: &EvalArgs, path: &Path) -> anyhow::Result<String> {
    let model = TensorReader::open(path)?;
    let Some(text) = model.description("config") else {
        bail!(
            "--model: {} does not say what model it is; describe it with --config FILE",
            path.display()
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
                path.display()
            ),
        }
    }
    Ok(toml::to_string(&table)?)
}

/// The configuration of a Hugging Face directory.
fn of_folder(args: &EvalArgs, model: &Path) -> anyhow::Result<String> {
    let Some(data) = &args.data else {
        bail!("--data: give the text to measure the model on");
    };
    if model.join("adapter_config.json").exists() {
        bail!(
            "--model: {} holds adapters; describe their model with --config FILE",
            model.display()
        );
    }
    let task = [
        ("kind", "causal-lm".to_owned()),
        ("model", model.to_string_lossy().into_owned()),
        ("data", data.clone()),
    ];
    let task = task.map(|(key, value)| (key.to_owned(), Value::String(value)));
    let task = Value::Table(Table::from_iter(task));
    Ok(toml::to_string(&Table::from_iter([(
        "task".to_owned(),
        task,
    )]))?)
}

pub(crate) fn export(args: &ExportArgs) -> anyhow::Result<()> {
    let to = args.to.display();
    if args.to.exists() && !args.force {
        bail!("--to: {to} exists already; give another name, or --force to replace it");
    }
    let (manifest, round, mut parameters, beside) = read(&args.dir, args.store)?;
    let Beside { local, buffers } = beside;
    let layout = Layout::new(
        manifest
            .tensors
            .iter()
            .map(|t| (t.name.clone(), t.shape.clone()))
            .chain(local.iter().map(|(t, _)| (t.name.clone(), t.shape.clone()))),
    );
    let own: usize = local.iter().map(|(_, values)| values.len()).sum();
    parameters.extend(local.into_iter().flat_map(|(_, values)| values));
    let checkpoint = args.dir.join("checkpoint.json");
    let config = Config::from_text(&checkpoint, &manifest.config, &Overrides::default())?;
    match &config.task {
        TaskConfig::CausalLm(task) => {
            if args.to.is_file() || args.to.extension().is_some_and(|end| end == "safetensors") {
                bail!(
                    "--to: {to} is a file; a model of kind = \"causal-lm\" is written as a folder"
                );
            }
            murmurate_tasks::write_folder(task, &layout, &parameters, &args.to)?;
        }
        task => {
            let about = BTreeMap::from([
                ("format".to_owned(), "pt".to_owned()),
                ("config".to_owned(), described(task)?),
            ]);
            let extra: Vec<_> = buffers.iter().map(extra).collect();
            let model = (&layout, &parameters[..]);
            murmurate_tasks::write_model_with(&args.to, model, &extra, &about)?;
        }
    }
    let mut beside = String::new();
    if own > 0 {
        beside = format!(", {own} of them this daemon's own,");
    }
    if !buffers.is_empty() {
        let _ = write!(beside, " and {} buffers of this daemon", buffers.len());
    }
    out::line(format_args!(
        "wrote {} parameters of round {round}{beside} to {to}",
        parameters.len()
    ))
}

fn extra(buffer: &Buffer) -> ExtraTensor<'_> {
    ExtraTensor {
        name: &buffer.name,
        dtype: buffer.dtype,
        shape: &buffer.shape,
        bytes: &buffer.bytes,
    }
}

/// The task as configuration, without the place of its data: what `eval` rebuilds the model from.
fn described(task: &TaskConfig) -> anyhow::Result<String> {
    let mut table = toml::Table::try_from(task)?;
    if task.data() != Some(&DataSource::Bundled) {
        table.remove("data");
    }
    let file = toml::Table::from_iter([("task".to_owned(), toml::Value::Table(table))]);
    Ok(toml::to_string(&file)?)
}

/// The manifest, the parameters with their round, and the values beside them.
type Model = (Manifest, u64, Vec<f32>, Beside);

/// Values of a checkpoint that no other daemon has.
#[derive(Default)]
struct Beside {
    /// Tensors that stay with the daemon.
    local: Vec<(TensorSpec, Vec<f32>)>,
    /// Buffers of a module.
    buffers: Vec<Buffer>,
}

fn read(dir: &Path, store: StoreArg) -> anyhow::Result<Model> {
    match read_once(dir, store) {
        // A running daemon may have committed another checkpoint and removed this one meanwhile.
        Err(error) if matches!(error.downcast_ref(), Some(StoreError::Io { .. })) => {
            read_once(dir, store)
        }
        other => other,
    }
}

fn read_once(dir: &Path, store: StoreArg) -> anyhow::Result<Model> {
    let Some(checkpoint) = Checkpoint::open(dir)? else {
        return Err(StoreError::NoCheckpoint(dir.to_owned()).into());
    };
    checkpoint.verify()?;
    let manifest = checkpoint.manifest().clone();
    let name = match store {
        StoreArg::Anchor => "anchor",
        StoreArg::Parameters => "parameters",
        StoreArg::Ema => "ema",
        StoreArg::Best => {
            let tensors = manifest.tensors.iter();
            let layout = Layout::new(tensors.map(|t| (t.name.clone(), t.shape.clone())));
            if !Best::path(dir).exists() {
                bail!(
                    "--store: there is no best.safetensors in {}; daemon.keep_best = true writes one",
                    dir.display()
                );
            }
            let (round, parameters) = Best::parameters(dir, &layout)?;
            if !buffers_of(&checkpoint)?.is_empty() {
                out::tell("the buffers of the best round are not kept: the file has none");
            }
            let local = kept_back(&checkpoint)?;
            if !local.is_empty() {
                out::tell(
                    "the tensors of `architecture.local` are those of the last checkpoint, not of the best round",
                );
            }
            let buffers = Vec::new();
            return Ok((manifest, round, parameters, Beside { local, buffers }));
        }
    };
    let mut parameters = vec![0.0; checkpoint.len()];
    if !checkpoint.read_store(name, &mut parameters)? {
        bail!(
            "--store: the checkpoint in {} keeps no {name}",
            dir.display()
        );
    }
    let round = manifest.round;
    let beside = Beside {
        local: kept_back(&checkpoint)?,
        buffers: buffers_of(&checkpoint)?,
    };
    Ok((manifest, round, parameters, beside))
}
