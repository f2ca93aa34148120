//! The configuration file before any check: serde structs, and rates, which are bytes per second or a number
//! with a unit. TOML has no value for `None`, so a key without one is not written.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawConfig {
    pub(super) run: RawRun,
    /// Checked by `murmurate-tasks`.
    pub(super) task: Option<toml::Table>,
    pub(super) shards: RawShards,
    /// Checked by `murmurate-strategies`.
    pub(super) strategy: Option<toml::Table>,
    pub(super) island: RawIsland,
    pub(super) network: RawNetwork,
    pub(super) daemon: RawDaemon,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawRun {
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) rounds: u64,
    pub(super) start_with: u32,
    pub(super) start_wait_s: f64,
    pub(super) init: Option<PathBuf>,
    pub(super) open: bool,
    pub(super) key: Option<PathBuf>,
}

impl Default for RawRun {
    fn default() -> Self {
        Self {
            name: "murmurate".to_owned(),
            seed: 1,
            rounds: 0,
            start_with: 1,
            start_wait_s: 60.0,
            init: None,
            open: false,
            key: None,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawShards {
    pub(super) kind: Option<String>,
    pub(super) alpha: Option<f64>,
    pub(super) index: Option<u32>,
    pub(super) of: Option<u32>,
    pub(super) seed: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawIsland {
    pub(super) ranks: u32,
}

impl Default for RawIsland {
    fn default() -> Self {
        Self { ranks: 1 }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawNetwork {
    pub(super) listen: Vec<String>,
    pub(super) announce: Option<Vec<String>>,
    pub(super) join: Vec<String>,
    pub(super) mdns: bool,
    pub(super) relay: bool,
    pub(super) carry_links: bool,
    pub(super) congestion: String,
    pub(super) bulk: String,
    pub(super) bulk_port: Option<u16>,
    pub(super) proxy: Option<String>,
    pub(super) payload_max: Option<u16>,
    pub(super) wire_versions: Option<[u8; 2]>,
    pub(super) site: Option<String>,
    pub(super) max_rate: Option<RawRate>,
    pub(super) max_rate_per_peer: Option<RawRate>,
}

impl Default for RawNetwork {
    fn default() -> Self {
        let listen = ["/ip4/0.0.0.0/udp/0/quic-v1", "/ip4/0.0.0.0/tcp/0"];
        Self {
            listen: listen.map(str::to_owned).to_vec(),
            announce: None,
            join: Vec::new(),
            mdns: true,
            relay: false,
            carry_links: true,
            congestion: "bbr3".to_owned(),
            bulk: "auto".to_owned(),
            bulk_port: None,
            proxy: None,
            payload_max: None,
            wire_versions: None,
            site: None,
            max_rate: None,
            max_rate_per_peer: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawDaemon {
    pub(super) dir: String,
    pub(super) name: Option<String>,
    pub(super) share_vitals: bool,
    pub(super) http: String,
    pub(super) http_public: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) http_names: Vec<String>,
    pub(super) save_every_s: f64,
    pub(super) evaluate_every: Option<u64>,
    pub(super) stay: bool,
    pub(super) device: String,
    pub(super) until_accuracy: Option<f64>,
    pub(super) until_loss: Option<f64>,
    pub(super) patience_rounds: u64,
    pub(super) keep_best: Option<bool>,
    pub(super) metrics_dir: Option<PathBuf>,
    pub(super) otlp: Option<String>,
    pub(super) ema: Option<f64>,
}

impl Default for RawDaemon {
    fn default() -> Self {
        Self {
            dir: "murmurate-state".to_owned(),
            name: None,
            share_vitals: true,
            http: "127.0.0.1:0".to_owned(),
            http_public: false,
            http_names: Vec::new(),
            save_every_s: 60.0,
            evaluate_every: None,
            stay: false,
            device: "flex".to_owned(),
            until_accuracy: None,
            until_loss: None,
            patience_rounds: 0,
            keep_best: None,
            metrics_dir: None,
            otlp: None,
            ema: None,
        }
    }
}

/// Units with their bytes per second; a bit is an eighth of a byte. The longest matching unit is
/// used.
const UNITS: [(&str, f64); 8] = [
    ("kbit", 125.0),
    ("mbit", 125e3),
    ("gbit", 125e6),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("bit", 0.125),
    ("b", 1.0),
];

/// The largest rate in bytes per second: far above any link, and exact as a float.
const RATE_MAX: f64 = 1e15;

/// A rate as written in the file: `10000000`, `"10 MB/s"`, `"80mbit"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum RawRate {
    /// Bytes per second.
    Bytes(u64),
    /// A number and a unit.
    Text(String),
}

impl RawRate {
    /// Bytes per second; `None` if the text is not a rate, or the rate is not above zero.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let bytes = match self {
            Self::Bytes(bytes) => *bytes as f64,
            Self::Text(text) => parse(text)?,
        };
        (1.0..=RATE_MAX).contains(&bytes).then_some(bytes as u64)
    }
}

fn parse(text: &str) -> Option<f64> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.strip_suffix("/s").unwrap_or(&text).trim_end();
    let (number, unit) = match UNITS.iter().find(|(unit, _)| text.ends_with(unit)) {
        Some((unit, bytes)) => (text.strip_suffix(unit)?, *bytes),
        None => (text, 1.0),
    };
    let number: f64 = number.trim().parse().ok()?;
    Some(number * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_with_and_without_units() {
        let text = |text: &str| RawRate::Text(text.to_owned()).bytes();
        assert_eq!(RawRate::Bytes(7).bytes(), Some(7));
        assert_eq!(text("10 MB/s"), Some(10_000_000));
        assert_eq!(text("80mbit"), Some(10_000_000));
        assert_eq!(text("1.5 kB"), Some(1500));
        assert_eq!(text("2 Gbit/s"), Some(250_000_000));
        assert_eq!(text("12"), Some(12));
        assert_eq!(text("12 B/s"), Some(12));
    }

    #[test]
    fn what_is_no_rate_above_zero_is_refused() {
        for wrong in ["", "fast", "-1 MB", "0", "1e30", "NaN", "10 MB/h", "MB"] {
            assert_eq!(RawRate::Text(wrong.to_owned()).bytes(), None, "{wrong}");
        }
        assert_eq!(RawRate::Bytes(0).bytes(), None);
    }
}
