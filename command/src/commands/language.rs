//! `murmurate sim language`: compares strategies on a text at equal tokens, bytes and seconds.

use super::{bar, cannot_write, writable};
use crate::cli::LanguageArgs;
use crate::out;
use anyhow::{Context, bail};
use murmurate_sim::TrainerFactory;
use murmurate_sim::equal::{EqualOutcome, EqualReport, EqualTrial};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) fn run(args: &LanguageArgs, factory: &dyn TrainerFactory) -> anyhow::Result<()> {
    let trial = chosen(args)?;
    trial.check(factory)?;
    if let Some(path) = &args.penalties {
        writable("--penalties", path)?;
    }
    let text = size_of_text(&trial)?;
    let mut kept = Kept::open(args.results.as_deref())?;
    let cells = trial.cells();
    let bar = bar(cells.len() as u64, "{pos}/{len} {elapsed} so far: {msg}")?;
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
            .with_context(|| cannot_write("--penalties", path))?;
    }
    if args.markdown && !args.json {
        return out::text(report.to_markdown());
    }
    out::report(args.json, &report)
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

/// The results so far.
pub(super) struct Kept {
    known: BTreeMap<String, EqualOutcome>,
    file: Option<(PathBuf, File)>,
}

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    recipe: std::borrow::Cow<'a, str>,
    outcome: EqualOutcome,
}

impl Kept {
    /// Reads the file, which need not exist. Without one nothing is kept. A last line that a run did not
    /// finish to write is removed.
    pub(super) fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let mut kept = Self {
            known: BTreeMap::new(),
            file: None,
        };
        let Some(path) = path else { return Ok(kept) };
        let unreadable = || format!("--results: {} cannot be read and written", path.display());
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file.with_context(unreadable)?;
        let text = std::fs::read_to_string(path).with_context(unreadable)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        for (number, line) in text[..whole].lines().enumerate() {
            let Ok(line) = serde_json::from_str::<Line<'_>>(line) else {
                bail!(
                    "--results: {}:{}: is no result of this command: give another file",
                    path.display(),
                    number + 1
                );
            };
            kept.known.insert(line.recipe.into_owned(), line.outcome);
        }
        if whole == 0 && !text.is_empty() {
            bail!(
                "--results: {} has no results of this command: give another file",
                path.display()
            );
        }
        file.set_len(whole as u64).with_context(unreadable)?;
        kept.file = Some((path.to_owned(), file));
        Ok(kept)
    }

    pub(super) fn find(&self, recipe: &str) -> Option<EqualOutcome> {
        self.known.get(recipe).cloned()
    }

    pub(super) fn add(&mut self, recipe: &str, outcome: &EqualOutcome) -> anyhow::Result<()> {
        let Some((path, file)) = &mut self.file else {
            return Ok(());
        };
        let line = Line {
            recipe: recipe.into(),
            outcome: outcome.clone(),
        };
        let mut line = serde_json::to_string(&line)?;
        line.push('\n');
        file.write_all(line.as_bytes())
            .with_context(|| format!("--results: {} cannot be written", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(seed: u64) -> EqualOutcome {
        EqualOutcome {
            entrant: "a".to_owned(),
            preset: "diloco".to_owned(),
            data: "iid".to_owned(),
            peers: 2,
            seed,
            parameters: 1,
            batch: 1,
            inner_steps: 1,
            rounds: 1,
            period: 1.0,
            bytes: 1.0,
            points: Vec::new(),
            paces: Vec::new(),
        }
    }

    #[test]
    fn results_survive_and_half_a_line_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runs.jsonl");
        let mut kept = Kept::open(Some(&path)).unwrap();
        kept.add("one", &outcome(1)).unwrap();
        kept.add("two", &outcome(2)).unwrap();
        drop(kept);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 9]).unwrap();
        let mut kept = Kept::open(Some(&path)).unwrap();
        assert_eq!(kept.find("one"), Some(outcome(1)));
        assert_eq!(kept.find("two"), None);
        kept.add("two", &outcome(3)).unwrap();
        let kept = Kept::open(Some(&path)).unwrap();
        assert_eq!(kept.find("two"), Some(outcome(3)));
    }

    #[test]
    fn a_file_of_something_else_is_refused_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["my notes", "my notes\nand more\n"] {
            let path = dir.path().join("notes");
            std::fs::write(&path, text).unwrap();
            let refused = Kept::open(Some(&path)).err().unwrap().to_string();
            assert!(refused.contains("--results"), "{refused}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
