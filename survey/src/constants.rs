//! Constants that BSP-A2A cannot identify. They are physical and the same for all methods, models
//! and networks. `data/constants.toml` has their sources.

use crate::error::SurveyError;
use serde::{Deserialize, Serialize};
use std::path::Path;

const SHIPPED: &str = include_str!("../data/constants.toml");

/// The constants of the timing model.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    /// Number of GPUs in one machine.
    pub gpus_per_machine: usize,
    /// Milliseconds that every collective takes in addition to its bytes.
    pub message_ms: f64,
    /// Additional microseconds of a collective for each rank.
    pub message_us_per_rank: f64,
    /// Forward's fraction of the time of forward and backward, 0 to 1.
    pub forward_share: f64,
    /// Milliseconds of the optimizer for a million parameters.
    pub optimizer_ms_per_million: f64,
    /// Size of a partition in megabytes (10^6 bytes).
    pub partition_mb: f64,
    /// Data that a worker of a parameter server sends and receives, in messages.
    pub push_and_pull: f64,
    /// Tokens in a sample of BERT.
    pub sentence: u32,
}

impl Constants {
    /// The constants that ship with the crate.
    ///
    /// # Errors
    /// As [`Constants::from_toml`]; a test excludes them for the shipped file.
    pub fn shipped() -> Result<Self, SurveyError> {
        Self::from_toml(SHIPPED, "constants.toml")
    }

    /// Reads constants from a file.
    ///
    /// # Errors
    /// If the file cannot be read, and as [`Constants::from_toml`].
    pub fn from_file(path: &Path) -> Result<Self, SurveyError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| SurveyError::Read {
            path: name.clone(),
            source,
        })?;
        Self::from_toml(&text, &name)
    }

    /// Parses constants. `file` is the name that errors give the text.
    ///
    /// # Errors
    /// One line that names file, line and key.
    pub fn from_toml(text: &str, file: &str) -> Result<Self, SurveyError> {
        let constants: Self = toml::from_str(text).map_err(|error| SurveyError::Syntax {
            file: file.to_owned(),
            line: error.span().map_or(1, |span| line_at(text, span.start)),
            reason: error.message().replace('\n', " "),
        })?;
        constants.check(text, file)?;
        Ok(constants)
    }

    fn check(&self, text: &str, file: &str) -> Result<(), SurveyError> {
        let ranges = [
            (
                "gpus_per_machine",
                self.gpus_per_machine as f64,
                (1.0, 1024.0),
            ),
            ("message_ms", self.message_ms, (0.0, 1e3)),
            ("message_us_per_rank", self.message_us_per_rank, (0.0, 1e6)),
            ("forward_share", self.forward_share, (0.01, 0.99)),
            (
                "optimizer_ms_per_million",
                self.optimizer_ms_per_million,
                (0.0, 1e3),
            ),
            ("partition_mb", self.partition_mb, (0.01, 1e4)),
            ("push_and_pull", self.push_and_pull, (1.0, 4.0)),
            ("sentence", f64::from(self.sentence), (1.0, 65_536.0)),
        ];
        let outside = |(_, value, (low, high)): &&(&str, f64, (f64, f64))| {
            !(value.is_finite() && (*low..=*high).contains(value))
        };
        let Some((key, value, (low, high))) = ranges.iter().find(outside) else {
            return Ok(());
        };
        let assigns = |line: &str| {
            line.split('=')
                .next()
                .is_some_and(|name| name.trim() == *key)
        };
        Err(SurveyError::Value {
            file: file.to_owned(),
            line: text.lines().position(assigns).map_or(1, |index| index + 1),
            key: (*key).to_owned(),
            reason: format!("is {value}: give {low} to {high}"),
        })
    }

    /// Seconds that a collective among `ranks` ranks takes in addition to its bytes.
    pub(crate) fn message_seconds(&self, ranks: usize) -> f64 {
        self.message_ms * 1e-3 + self.message_us_per_rank * 1e-6 * ranks as f64
    }

    /// Seconds that the optimizer takes for this number of parameters.
    pub(crate) fn optimizer_seconds(&self, parameters: u64) -> f64 {
        self.optimizer_ms_per_million * 1e-9 * parameters as f64
    }
}

/// The line of a byte offset, counted from one.
fn line_at(text: &str, offset: usize) -> usize {
    1 + text
        .bytes()
        .take(offset)
        .filter(|byte| *byte == b'\n')
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ships_is_valid() {
        let constants = Constants::shipped().unwrap();
        assert_eq!(constants.gpus_per_machine, 4);
        // 0.1 ms and 27 us for each of 32 ranks.
        assert!((constants.message_seconds(32) - 0.964e-3).abs() < 1e-12);
    }

    #[test]
    fn impossible_constants_name_file_line_and_key() {
        let text = SHIPPED.replace("message_ms = 0.1", "message_ms = -0.1");
        let line = 1 + text
            .lines()
            .position(|l| l.starts_with("message_ms"))
            .unwrap();
        let error = Constants::from_toml(&text, "c.toml")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(&format!("c.toml:{line}: `message_ms` is -0.1")),
            "{error}"
        );
        let error = Constants::from_toml("pies = 1\n", "c.toml")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("c.toml:1: "), "{error}");
    }
}
