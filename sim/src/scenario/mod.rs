//! A scenario file: machines, network, task, strategy and faults as TOML.
//!
//! A [`Scenario`] is valid: every number is in its range and every named machine exists.
//! `strategies` checks whether the strategy can work.

mod check;
mod error;
mod locate;
mod network;
mod raw;
mod spec;

pub(crate) use check::Checker;
pub use error::ScenarioError;
pub(crate) use locate::line_of;
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
        let text = std::fs::read_to_string(path).map_err(|source| ScenarioError::Read {
            path: path.display().to_string(),
            source,
        })?;
        let stem = path
            .file_stem()
            .map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        Self::from_toml(&text, &path.display().to_string(), &stem)
    }

    /// Reads a scenario from text. `file` is its name in errors.
    ///
    /// # Errors
    /// As [`Scenario::from_file`].
    pub fn from_toml(text: &str, file: &str, name: &str) -> Result<Self, ScenarioError> {
        raw::parse(text, file, name)
    }
}
