//! `murmurate export`: writes a daemon's model as one safetensors file.

use crate::cli::{ExportArgs, StoreArg};
use anyhow::bail;
use murmurate_node::store::{Checkpoint, Manifest, StoreError};
use murmurate_strategies::Layout;
use std::collections::BTreeMap;

pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let to = args.to.display();
    if args.to.exists() && !args.force {
        bail!("--to: {to} exists already; give another file, or --force to replace it");
    }
    let (manifest, parameters) = read(args)?;
    let layout = Layout::new(
        manifest
            .tensors
            .iter()
            .map(|t| (t.name.clone(), t.shape.clone())),
    );
    let about = BTreeMap::from([
        ("format".to_owned(), "murmurate".to_owned()),
        ("config".to_owned(), manifest.config.clone()),
        ("layout".to_owned(), manifest.layout.clone()),
        ("run".to_owned(), manifest.run_name.clone()),
        ("round".to_owned(), manifest.round.to_string()),
    ]);
    murmurate_tasks::write_model(&args.to, &layout, &parameters, &about)?;
    println!(
        "wrote {} parameters of round {} to {to}",
        parameters.len(),
        manifest.round
    );
    Ok(())
}

fn read(args: &ExportArgs) -> anyhow::Result<(Manifest, Vec<f32>)> {
    match read_once(args) {
        // A running daemon may have committed another checkpoint and removed this one meanwhile.
        Err(error) if matches!(error.downcast_ref(), Some(StoreError::Io { .. })) => {
            read_once(args)
        }
        other => other,
    }
}

fn read_once(args: &ExportArgs) -> anyhow::Result<(Manifest, Vec<f32>)> {
    let Some(checkpoint) = Checkpoint::open(&args.dir)? else {
        return Err(StoreError::NoCheckpoint {
            dir: args.dir.clone(),
        }
        .into());
    };
    checkpoint.verify()?;
    let name = match args.store {
        StoreArg::Anchor => "anchor",
        StoreArg::Parameters => "parameters",
    };
    let mut parameters = vec![0.0; checkpoint.len()];
    if !checkpoint.read_store(name, &mut parameters)? {
        bail!(
            "--store: the checkpoint in {} keeps no {name}",
            args.dir.display()
        );
    }
    Ok((checkpoint.manifest().clone(), parameters))
}
