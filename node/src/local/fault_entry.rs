//! A fault that occurred, as an entry of the report.

use serde::Serialize;

/// A fault that occurred.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FaultEntry {
    /// Index of the daemon, from zero.
    pub node: usize,
    /// `kill`, `stop` or `late`.
    pub kind: String,
    /// The round in which it occurred.
    pub round: u64,
    /// The phase in which it occurred, if known.
    pub phase: Option<String>,
    /// Seconds from the start of the first daemon. Only for kills of `--kill-every`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
    /// Peak resident bytes of the killed process. Only for kills of `--kill-every`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_rss_bytes: Option<u64>,
}
