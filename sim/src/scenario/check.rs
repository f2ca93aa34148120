//! Checks single values. Every error names the file, the line and the key.

use super::ScenarioError;
use core::time::Duration;
use std::path::Path;

/// Largest time of an event in virtual seconds (about 30 years).
pub(crate) const SECONDS_MAX: f64 = 1e9;

/// The text of a file, and its name in errors.
pub(crate) fn read_file(path: &Path) -> Result<(String, String), ScenarioError> {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((text, file)),
        Err(source) => Err(ScenarioError::Read { path: file, source }),
    }
}

/// Checks values. An error names the file, line and key.
pub(crate) struct Checker<'a> {
    file: &'a str,
    text: &'a str,
}

impl<'a> Checker<'a> {
    pub(crate) const fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text }
    }

    pub(crate) const fn file(&self) -> &'a str {
        self.file
    }

    pub(crate) fn refuse(&self, key: &str, reason: impl Into<String>) -> ScenarioError {
        ScenarioError::Value {
            file: self.file.to_owned(),
            line: line_of(self.text, key),
            key: key.to_owned(),
            reason: reason.into(),
        }
    }

    /// Refuses lists without which nothing would run, and a run without measurements.
    pub(crate) fn runs(&self, lists: [(&str, usize); 4], points: u64) -> Result<(), ScenarioError> {
        if let Some((key, _)) = lists.iter().find(|(_, count)| *count == 0) {
            return Err(self.refuse(key, "is empty: nothing would run"));
        }
        if points == 0 {
            return Err(self.refuse("points", "is 0: a curve needs at least one"));
        }
        Ok(())
    }

    /// A finite value in `low..=high`.
    pub(crate) fn within(
        &self,
        key: &str,
        value: f64,
        (low, high): (f64, f64),
    ) -> Result<f64, ScenarioError> {
        if value.is_finite() && (low..=high).contains(&value) {
            Ok(value)
        } else {
            Err(self.refuse(key, format!("is {value}: give {low} to {high}")))
        }
    }

    pub(crate) fn seconds(&self, key: &str, value: f64) -> Result<Duration, ScenarioError> {
        self.within(key, value, (0.0, SECONDS_MAX))
            .map(Duration::from_secs_f64)
    }

    pub(crate) fn milliseconds(&self, key: &str, value: f64) -> Result<Duration, ScenarioError> {
        self.within(key, value, (0.0, SECONDS_MAX * 1e3))
            .map(|ms| Duration::from_secs_f64(ms / 1e3))
    }

    /// Bytes per second from Mbit/s.
    pub(crate) fn rate(&self, key: &str, mbit: f64) -> Result<f64, ScenarioError> {
        self.within(key, mbit, (1e-3, 1e9)).map(|m| m * 1e6 / 8.0)
    }

    /// An existing machine.
    pub(crate) fn peer(
        &self,
        key: &str,
        value: usize,
        peers: usize,
    ) -> Result<usize, ScenarioError> {
        if value < peers {
            Ok(value)
        } else {
            Err(self.refuse(key, format!("is {value}: peers are 0 to {}", peers - 1)))
        }
    }
}

/// The line, from one, of a key such as `peers`, `network.loss` or `fault[1].peer`. If the key is
/// missing or part of an inline table, the line of its table; without a table, the first line.
pub(crate) fn line_of(text: &str, key: &str) -> usize {
    let (table, leaf) = key.rsplit_once('.').unwrap_or(("", key));
    let (table, wanted) = match table.split_once('[') {
        Some((name, index)) => (name, index.trim_end_matches(']').parse().unwrap_or(0)),
        None => (table, 0),
    };
    let mut inside = table.is_empty();
    let mut seen = 0;
    let mut nearest = 1;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if let Some(header) = line.strip_prefix('[') {
            let name = header.trim_start_matches('[');
            let name = name.split(']').next().unwrap_or("").trim();
            inside = !table.is_empty() && name == table && {
                seen += 1;
                seen == wanted + 1
            };
            if inside {
                nearest = index + 1;
            }
            continue;
        }
        let name = line.split('=').next().unwrap_or("").trim();
        if inside && name == leaf && line.contains('=') {
            return index + 1;
        }
        // `fault = [{ ... }]` and `network = { ... }` are on the line of their name.
        if !table.is_empty() && seen == 0 && name == table {
            nearest = index + 1;
        }
    }
    nearest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_they_stand() {
        let text = "peers = 2\n[network]\nloss = 0.1\n[[fault]]\nkind = \"x\"\n\n[[fault]]\n# loss\n\
                    peer = 3\nat_s = 1\n[compute]\nloss = 3\n";
        for (key, line) in [
            ("peers", 1),
            ("network.loss", 3),
            ("network.jitter_ms", 2),
            ("fault[0].kind", 5),
            ("fault[0].peer", 4),
            ("fault[1].peer", 9),
            ("compute.loss", 12),
            ("seed", 1),
            ("nowhere.at", 1),
        ] {
            assert_eq!(line_of(text, key), line, "{key}");
        }
        assert_eq!(
            line_of("a = 1\nnetwork = { loss = 2 }\n", "network.loss"),
            2
        );
    }
}
