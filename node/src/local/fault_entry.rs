//! A fault that was triggered, as the report tells it.

use serde::Serialize;

/// A fault that was triggered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FaultEntry {
    /// Which daemon.
    pub node: usize,
    /// `kill`, `stop` or `late`.
    pub kind: String,
    /// In which round.
    pub round: u64,
    /// In which phase.
    pub phase: Option<String>,
    /// Seconds from the start of the first daemon; of `--kill-every` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
    /// The most resident bytes of the process that was killed; of `--kill-every` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_rss_bytes: Option<u64>,
}
