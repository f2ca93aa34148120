//! All findings.

use super::finding::{Finding, State};
use serde::Serialize;
use std::fmt;

/// The object that `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// Version of the program.
    version: &'static str,
    /// The directory of the daemon.
    dir: String,
    /// Number of checks that failed.
    failed: usize,
    /// Number of checks that found something worse than it could be.
    warnings: usize,
    findings: Vec<Finding>,
}

impl Report {
    /// A report of these findings.
    pub(super) fn new(dir: String, findings: Vec<Finding>) -> Self {
        let count = |state| {
            findings
                .iter()
                .filter(|finding| finding.state == state)
                .count()
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            dir,
            failed: count(State::Failed),
            warnings: count(State::Warning),
            findings,
        }
    }

    /// The codes of the checks that failed; `None` if none did.
    pub(crate) fn failures(&self) -> Option<String> {
        let failed = self.findings.iter().filter(|f| f.state == State::Failed);
        let codes: Vec<&str> = failed.filter_map(|f| f.code.as_deref()).collect();
        (!codes.is_empty()).then(|| codes.join(", "))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            write!(f, "{finding}")?;
        }
        let ok = self.findings.len() - self.failed - self.warnings;
        writeln!(
            f,
            "{ok} ok, {} warnings, {} failed",
            self.warnings, self.failed
        )
    }
}
