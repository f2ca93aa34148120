//! A scenario file: machines, network, task, strategy and faults as TOML.
//!
//! A [`Scenario`] is valid: every number is in its range and every named machine exists.
//! `strategies` checks whether the strategy can work.

mod check;
mod error;
mod network;
mod raw;
mod spec;

pub(crate) use check::{Checker, line_of, read_file};
pub use error::ScenarioError;
pub(crate) use raw::explain;
pub use spec::{
    Change, ComputeSpec, DataSpec, Distance, Labels, Limits, NetworkSpec, PEERS_MAX, Scenario,
    SiteSpec, TaskSpec,
};

use std::path::Path;

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// One line that names the file, the key, and what to do.
    pub fn from_file(path: &Path) -> Result<Self, ScenarioError> {
        let (text, file) = read_file(path)?;
        let stem = path
            .file_stem()
            .map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        Self::from_toml(&text, &file, &stem)
    }

    /// Reads a scenario from text. `file` is its name in errors.
    ///
    /// # Errors
    /// As [`Scenario::from_file`].
    pub fn from_toml(text: &str, file: &str, name: &str) -> Result<Self, ScenarioError> {
        raw::parse(text, file, name)
    }
}
