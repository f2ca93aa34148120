//! Checks single values. Every error names the file, the line and the key.

use super::{ScenarioError, locate};
use core::time::Duration;

/// Largest time of an event in virtual seconds (about 30 years).
pub(crate) const SECONDS_MAX: f64 = 1e9;

/// Checks values. An error names the file, line and key.
pub(crate) struct Checker<'a> {
    file: &'a str,
    text: &'a str,
}

impl<'a> Checker<'a> {
    /// A checker for the text of a file.
    pub(crate) const fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text }
    }

    /// Name of the file in errors.
    pub(crate) const fn file(&self) -> &'a str {
        self.file
    }

    /// An error about a key.
    pub(crate) fn refuse(&self, key: &str, reason: impl Into<String>) -> ScenarioError {
        ScenarioError::Value {
            file: self.file.to_owned(),
            line: locate::line_of(self.text, key),
            key: key.to_owned(),
            reason: reason.into(),
        }
    }

    /// A finite value in `low..=high`.
    pub(crate) fn within(
        &self,
        key: &str,
        value: f64,
        (low, high): (f64, f64),
    ) -> Result<f64, ScenarioError> {
        match value.is_finite() && (low..=high).contains(&value) {
            true => Ok(value),
            false => Err(self.refuse(key, format!("is {value}: give {low} to {high}"))),
        }
    }

    /// A duration from seconds.
    pub(crate) fn seconds(&self, key: &str, value: f64) -> Result<Duration, ScenarioError> {
        self.within(key, value, (0.0, SECONDS_MAX))
            .map(Duration::from_secs_f64)
    }

    /// A duration from milliseconds.
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
        match value < peers {
            true => Ok(value),
            false => Err(self.refuse(key, format!("is {value}: peers are 0 to {}", peers - 1))),
        }
    }
}
