//! The configuration file before any check: serde structs only.

use super::rate::RawRate;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The whole file.
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

/// `[run]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawRun {
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) rounds: u64,
    pub(super) start_with: u32,
    pub(super) start_wait_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) init: Option<PathBuf>,
    pub(super) open: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// `[shards]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawShards {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) alpha: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) of: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<u64>,
}

/// `[island]`.
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

/// `[network]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawNetwork {
    pub(super) listen: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) announce: Option<Vec<String>>,
    pub(super) join: Vec<String>,
    pub(super) mdns: bool,
    pub(super) relay: bool,
    pub(super) carry_links: bool,
    pub(super) congestion: String,
    pub(super) bulk: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bulk_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) payload_max: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wire_versions: Option<[u8; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) site: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_rate: Option<RawRate>,
    #[serde(skip_serializing_if = "Option::is_none")]
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
            payload_max: None,
            wire_versions: None,
            site: None,
            max_rate: None,
            max_rate_per_peer: None,
        }
    }
}

/// `[daemon]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawDaemon {
    pub(super) dir: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) share_vitals: bool,
    pub(super) http: String,
    pub(super) http_public: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) http_names: Vec<String>,
    pub(super) save_every_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) evaluate_every: Option<u64>,
    pub(super) stay: bool,
    pub(super) device: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) until_accuracy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) until_loss: Option<f64>,
    pub(super) patience_rounds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) keep_best: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metrics_dir: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) otlp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
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
