//! Why a step failed, in one line for the log.

use std::fmt;
use std::io;

/// The reason for which a step or a command failed.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// A failure with this reason.
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// The same failure with the step or the program in front of it.
    pub(crate) fn within(self, place: &str) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}
