//! `murmurate sim compare`: compares presets.

use crate::cli::CompareArgs;
use crate::out;
use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use murmurate_node::daemon::BINARY;
use murmurate_sim::TrainerFactory;
use murmurate_sim::compare::{Comparison, run_comparison};

/// The commit of this build, if the build was told.
const COMMIT: Option<&str> = option_env!("MURMURATE_COMMIT");

pub(crate) fn run(args: &CompareArgs, factory: &dyn TrainerFactory) -> anyhow::Result<()> {
    let comparison = chosen(args)?;
    if let Some(path) = &args.html {
        // Opened before the work, which may take hours. The content stays until the new page is
        // written.
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path);
        file.with_context(|| cannot_write(path))?;
    }
    let bar = match out::is_quiet() {
        true => ProgressBar::hidden(),
        false => ProgressBar::new(0),
    };
    bar.set_style(ProgressStyle::with_template(
        "{pos}/{len} {eta} left: {msg}",
    )?);
    let mut progress = |done: usize, all: usize, what: &str| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        bar.set_message(what.to_owned());
    };
    let report = run_comparison(&comparison, factory, &mut progress)?;
    bar.finish_and_clear();
    if let Some(path) = &args.html {
        let commit = COMMIT.unwrap_or("unknown (MURMURATE_COMMIT was not set for the build)");
        let page = report.to_html(&format!("{BINARY}, commit {commit}"));
        std::fs::write(path, page).with_context(|| cannot_write(path))?;
    }
    match args.json {
        true => out::line(report.to_json()),
        false => out::text(&report),
    }
}

fn cannot_write(path: &std::path::Path) -> String {
    format!("--html: {} cannot be written", path.display())
}

/// The comparison without what the flags exclude.
fn chosen(args: &CompareArgs) -> anyhow::Result<Comparison> {
    let mut comparison = Comparison::from_file(&args.file)?;
    for preset in &args.presets {
        murmurate_strategies::grid::Strategy::preset(preset).context("--presets")?;
    }
    if !args.presets.is_empty() {
        comparison.presets.clone_from(&args.presets);
    }
    if !args.peers.is_empty() {
        comparison.peers.clone_from(&args.peers);
    }
    if !args.seeds.is_empty() {
        comparison.seeds.clone_from(&args.seeds);
    }
    if let Some(part) = &args.task {
        comparison.task.retain(|task| task.name.contains(part));
        if comparison.task.is_empty() {
            bail!(
                "--task: no task of {} has `{part}` in its name",
                args.file.display()
            );
        }
    }
    Ok(comparison)
}
