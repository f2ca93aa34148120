//! `murmurate export`: writes a daemon's model as one safetensors file.

use crate::cli::{ExportArgs, StoreArg};
use crate::out;
use anyhow::bail;
use murmurate_node::config::{Config, Overrides};
use murmurate_node::store::{Best, Buffer, Checkpoint, Manifest, StoreError, buffers_of};
use murmurate_strategies::Layout;
use murmurate_tasks::config::DataSource;
use murmurate_tasks::{ExtraTensor, TaskConfig};
use std::collections::BTreeMap;

pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let to = args.to.display();
    if args.to.exists() && !args.force {
        bail!("--to: {to} exists already; give another name, or --force to replace it");
    }
    let (manifest, round, parameters, buffers) = read(args)?;
    let layout = Layout::new(
        manifest
            .tensors
            .iter()
            .map(|t| (t.name.clone(), t.shape.clone())),
    );
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
    let beside = match buffers.len() {
        0 => String::new(),
        count => format!(" and {count} buffers of this daemon"),
    };
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

/// The manifest, the parameters with their round, and the buffers beside them.
type Model = (Manifest, u64, Vec<f32>, Vec<Buffer>);

fn read(args: &ExportArgs) -> anyhow::Result<Model> {
    match read_once(args) {
        // A running daemon may have committed another checkpoint and removed this one meanwhile.
        Err(error) if matches!(error.downcast_ref(), Some(StoreError::Io { .. })) => {
            read_once(args)
        }
        other => other,
    }
}

fn read_once(args: &ExportArgs) -> anyhow::Result<Model> {
    let Some(checkpoint) = Checkpoint::open(&args.dir)? else {
        return Err(StoreError::NoCheckpoint {
            dir: args.dir.clone(),
        }
        .into());
    };
    checkpoint.verify()?;
    let manifest = checkpoint.manifest().clone();
    let name = match args.store {
        StoreArg::Anchor => "anchor",
        StoreArg::Parameters => "parameters",
        StoreArg::Ema => "ema",
        StoreArg::Best => {
            let tensors = manifest.tensors.iter();
            let layout = Layout::new(tensors.map(|t| (t.name.clone(), t.shape.clone())));
            if !Best::path(&args.dir).exists() {
                bail!(
                    "--store: there is no best.safetensors in {}; daemon.keep_best = true writes one",
                    args.dir.display()
                );
            }
            let (round, parameters) = Best::parameters(&args.dir, &layout)?;
            if !buffers_of(&checkpoint)?.is_empty() {
                out::tell("the buffers of the best round are not kept: the file has none");
            }
            return Ok((manifest, round, parameters, Vec::new()));
        }
    };
    let mut parameters = vec![0.0; checkpoint.len()];
    if !checkpoint.read_store(name, &mut parameters)? {
        bail!(
            "--store: the checkpoint in {} keeps no {name}",
            args.dir.display()
        );
    }
    let round = manifest.round;
    Ok((manifest, round, parameters, buffers_of(&checkpoint)?))
}
