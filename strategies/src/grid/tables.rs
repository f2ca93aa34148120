//! The configuration as it is written: one table for each dimension of the grid. `text.rs` checks
//! names and types.
//!
//! Keys that all methods have are fields of the structures below. Those of single methods (codecs,
//! optimizers, rules, topologies, exchanges) are in the methods' lists of parameters; here they are
//! kept as TOML.

use serde::{Deserialize, Serialize};

/// All tables. Absent keys have defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Tables {
    pub(super) synchronization: Synchronization,
    pub(super) architecture: Architecture,
    pub(super) compression: Compression,
    pub(super) overlap: Overlap,
    pub(super) outer: Outer,
    pub(super) aggregation: Aggregation,
    #[serde(skip_serializing_if = "Agreement::is_default")]
    pub(super) agreement: Agreement,
    pub(super) inner: Inner,
    /// Bounds of waits, not of numbers: not part of the recipe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deadlines: Option<Deadlines>,
}

/// How much a round trains (inner steps or a time), and which peers wait for which.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Synchronization {
    pub(super) inner_steps: Option<u32>,
    /// Seconds.
    pub(super) round_time: Option<f64>,
    pub(super) pace: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) enough: Option<usize>,
    pub(super) grace: Option<String>,
    pub(super) grace_ms: Option<u64>,
    pub(super) fraction: Option<f64>,
    /// Keys of the pace and the mode.
    #[serde(flatten, skip_deserializing)]
    pub(super) parameters: toml::Table,
}

/// Which peers exchange what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Architecture {
    pub(super) exchange: Option<String>,
    pub(super) schedule: Option<String>,
    pub(super) contribution: Option<String>,
    pub(super) topology: Option<String>,
    /// Patterns of names of tensors that do not travel.
    pub(super) local: Option<Vec<String>>,
    /// Measured links, for a schedule that is found for them.
    pub(super) link_mbit: Option<toml::Value>,
    /// Keys of the exchange, the topology and the schedule.
    #[serde(flatten, skip_deserializing)]
    pub(super) parameters: toml::Table,
}

/// How contributions are encoded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Compression {
    pub(super) codec: Option<String>,
    pub(super) error_feedback: Option<bool>,
    pub(super) choose: Option<String>,
    /// Names of codecs, or densities.
    pub(super) choose_from: Option<Vec<toml::Value>>,
    pub(super) choose_every: Option<u64>,
    pub(super) train_share: Option<f64>,
    /// Keys of the codec.
    #[serde(flatten, skip_deserializing)]
    pub(super) parameters: toml::Table,
}

/// Into how many fragments the flat parameters are cut, which of them a round exchanges, and when
/// results are applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Overlap {
    pub(super) cut: Option<String>,
    pub(super) fragments: Option<usize>,
    pub(super) layers: Option<String>,
    pub(super) stagger: Option<usize>,
    /// Inner steps, or a share of the round's.
    pub(super) late_steps: Option<toml::Value>,
    pub(super) latency_ms: Option<f64>,
    pub(super) mbit_s: Option<f64>,
    pub(super) backward_ms: Option<f64>,
    pub(super) density: Option<String>,
    pub(super) select_ms: Option<f64>,
    pub(super) blend: Option<Blend>,
}

/// A rule by its name, or alpha.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Blend {
    Name(String),
    Alpha(f64),
}

/// How the aggregate changes the anchor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Outer {
    pub(super) optimizer: Option<String>,
    /// Keys of the optimizer.
    #[serde(flatten, skip_deserializing)]
    pub(super) parameters: toml::Table,
}

/// How contributions are combined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Aggregation {
    pub(super) rule: Option<String>,
    /// Keys of the rule.
    #[serde(flatten, skip_deserializing)]
    pub(super) parameters: toml::Table,
}

/// How groups are cut, and how many of their members may lie.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Agreement {
    pub(super) liars: Option<Liars>,
    pub(super) grouping: Option<String>,
    pub(super) row: Option<i64>,
    pub(super) cell: Option<i64>,
    pub(super) dealing: Option<String>,
}

/// A number, or `"max"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Liars {
    Count(i64),
    Name(String),
}

/// What an inner step does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Inner {
    pub(super) optimizer: Option<String>,
    pub(super) correction: Option<String>,
    pub(super) schedule: Option<String>,
    /// Patterns of tensors' names.
    pub(super) no_decay: Option<Vec<String>>,
    /// Keys of the optimizer, the correction and the schedule.
    #[serde(flatten, skip_deserializing)]
    pub(super) parameters: toml::Table,
}

/// Bounds of the deadlines, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Deadlines {
    pub(super) floor_ms: Option<u64>,
    pub(super) initial_ms: Option<u64>,
    pub(super) ceiling_ms: Option<u64>,
}
