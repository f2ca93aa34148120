//! `murmurate sim language`: compares strategies on a text at equal tokens, bytes and seconds.

use super::kept::Kept;
use crate::cli::LanguageArgs;
use crate::out;
use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use murmurate_sim::TrainerFactory;
use murmurate_sim::equal::{EqualReport, EqualTrial};
use std::path::Path;
use std::time::Duration;

pub(crate) fn run(args: &LanguageArgs, factory: &dyn TrainerFactory) -> anyhow::Result<()> {
    let trial = chosen(args)?;
    trial.check(factory)?;
    if let Some(path) = &args.penalties {
        // Tried before the work, which may take hours.
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path);
        file.with_context(|| format!("--penalties: {} cannot be written", path.display()))?;
    }
    let text = size_of_text(&trial)?;
    let mut kept = Kept::open(args.results.as_deref())?;
    let cells = trial.cells();
    let bar = match out::is_quiet() {
        true => ProgressBar::hidden(),
        false => ProgressBar::new(cells.len() as u64),
    };
    bar.set_style(ProgressStyle::with_template(
        "{pos}/{len} {elapsed} so far: {msg}",
    )?);
    bar.enable_steady_tick(Duration::from_secs(1));
    let mut outcomes = Vec::with_capacity(cells.len());
    for cell in &cells {
        bar.set_message(cell.to_string());
        let recipe = format!("{} {text}", trial.recipe(cell));
        let outcome = match kept.find(&recipe) {
            Some(outcome) => outcome.named(cell),
            None => {
                let outcome = trial.play(cell, factory)?;
                kept.add(&recipe, &outcome)?;
                let last = outcome.last();
                let last = last.map_or_else(|| "diverged".to_owned(), |loss| format!("{loss:.4}"));
                if bar.is_hidden() {
                    out::tell(format_args!("{cell}: {last}"));
                } else {
                    bar.suspend(|| out::tell(format_args!("{cell}: {last}")));
                }
                outcome
            }
        };
        outcomes.push(outcome);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let report = EqualReport::new(&trial, outcomes);
    if let Some(path) = &args.penalties {
        let file = args.file.display();
        let command = format!("murmurate sim language {file} --data TEXT --penalties FILE");
        std::fs::write(path, report.penalties(&command))
            .with_context(|| format!("--penalties: {} cannot be written", path.display()))?;
    }
    match (args.json, args.markdown) {
        (true, _) => out::line(report.to_json()),
        (_, true) => out::text(report.to_markdown()),
        _ => out::text(&report),
    }
}

/// The trial with the text, without what the flags exclude.
fn chosen(args: &LanguageArgs) -> anyhow::Result<EqualTrial> {
    let mut trial = EqualTrial::from_file(&args.file)?;
    let file = args.file.display();
    if let Some(data) = &args.data {
        let data = data.display().to_string();
        trial.task.insert("data".to_owned(), data.into());
    }
    if !trial.task.contains_key("data") {
        bail!("--data: give a text file or a folder of them; {file} names none in `task.data`");
    }
    if let Some(name) = args
        .entrants
        .iter()
        .find(|name| trial.entrant.iter().all(|entrant| entrant.name != **name))
    {
        bail!("--entrants: {file} has no entrant `{name}`");
    }
    if !args.entrants.is_empty() {
        let named = |name: &String| args.entrants.contains(name);
        trial.entrant.retain(|entrant| named(&entrant.name));
    }
    if !args.peers.is_empty() {
        trial.size.retain(|size| args.peers.contains(&size.peers));
        if trial.size.is_empty() {
            bail!("--peers: no size of {file} has this many peers");
        }
    }
    if !args.seeds.is_empty() {
        for size in &mut trial.size {
            size.seeds.clone_from(&args.seeds);
        }
    }
    if let Some(part) = &args.split {
        trial.data.retain(|data| data.name.contains(part));
        if trial.data.is_empty() {
            bail!("--split: no distribution of {file} has `{part}` in its name");
        }
    }
    Ok(trial)
}

/// The bytes of the trial's text: a kept result of another text with the same name is not used.
fn size_of_text(trial: &EqualTrial) -> anyhow::Result<u64> {
    let path = trial.task.get("data").and_then(toml::Value::as_str);
    let Some(path) = path else {
        bail!("`task.data` must be a path");
    };
    size(Path::new(path)).with_context(|| format!("--data: {path} cannot be read"))
}

fn size(path: &Path) -> std::io::Result<u64> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    let mut bytes = 0;
    for entry in std::fs::read_dir(path)? {
        bytes += size(&entry?.path())?;
    }
    Ok(bytes)
}
