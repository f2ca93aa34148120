//! Results of finished runs in a file: one line of JSON for each, with the recipe that it followed. A run
//! whose recipe has a line is not repeated.

use anyhow::{Context, bail};
use murmurate_sim::equal::EqualOutcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

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

    /// The result of this recipe.
    pub(super) fn find(&self, recipe: &str) -> Option<EqualOutcome> {
        self.known.get(recipe).cloned()
    }

    /// Keeps a result.
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
