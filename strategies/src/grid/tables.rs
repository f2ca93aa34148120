//! The configuration as it is written: one table for each dimension of the grid. Only names and
//! types are checked here.
//!
//! Most keys are fields of the structures below. Keys that single methods have (codecs, topologies,
//! schedules, exchanges and their modes) are in those methods' lists of parameters; here they are
//! kept as TOML.

use super::StrategyError;
use super::fields::fields;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// All tables. Absent keys have defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Tables {
    pub(super) synchronization: Synchronization,
    /// Read from the same table. Written with it.
    #[serde(skip)]
    pub(super) measured: Measured,
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
    pub(super) switch_round: Option<u64>,
    pub(super) switch_inner_steps: Option<u32>,
    pub(super) decay_every: Option<u64>,
    pub(super) loss_every: Option<u64>,
    pub(super) stagnation_factor: Option<f64>,
    pub(super) mode: Option<String>,
    pub(super) enough: Option<usize>,
    pub(super) grace: Option<String>,
    pub(super) grace_ms: Option<u64>,
    pub(super) fraction: Option<f64>,
    /// Keys of the mode.
    #[serde(flatten, skip_deserializing)]
    pub(super) parameters: toml::Table,
}

/// Keys of `[synchronization]` that a pace by measured waits has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Measured {
    pub(super) measure_every: Option<u64>,
    pub(super) train_share: Option<f64>,
    pub(super) inner_steps_least: Option<u32>,
    pub(super) inner_steps_most: Option<u32>,
}

/// Which peers exchange what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Architecture {
    pub(super) exchange: Option<String>,
    pub(super) schedule: Option<String>,
    pub(super) contribution: Option<String>,
    pub(super) topology: Option<String>,
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
    pub(super) lr: Option<f64>,
    pub(super) momentum: Option<f64>,
    pub(super) betas: Option<[f64; 2]>,
    pub(super) eps: Option<f64>,
    pub(super) every: Option<usize>,
    pub(super) spread: Option<f64>,
    pub(super) alpha: Option<f64>,
    pub(super) pull: Option<f64>,
    pub(super) penalty: Option<f64>,
    pub(super) clip: Option<f64>,
    pub(super) state: Option<String>,
}

/// How contributions are combined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Aggregation {
    pub(super) rule: Option<String>,
    pub(super) liars: Option<usize>,
    pub(super) radius: Option<f64>,
    pub(super) iterations: Option<u32>,
    pub(super) bucket: Option<usize>,
    pub(super) top: Option<usize>,
    pub(super) memory: Option<f64>,
    pub(super) batches: Option<usize>,
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
    pub(super) lr: Option<f64>,
    pub(super) momentum: Option<f64>,
    pub(super) weight_decay: Option<f64>,
    pub(super) betas: Option<[f64; 2]>,
    pub(super) eps: Option<f64>,
    pub(super) freeze: Option<u64>,
    pub(super) sends: Option<String>,
    pub(super) correction: Option<String>,
    pub(super) mu: Option<f64>,
    pub(super) beta: Option<f64>,
    pub(super) schedule: Option<String>,
    /// Patterns of tensors' names.
    pub(super) no_decay: Option<Vec<String>>,
    /// Keys of the schedule.
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

/// Keys that choose a method. A configuration that chooses another one than its preset does not
/// inherit the preset's other keys of that table, because they are parameters of the other method.
const SELECTORS: [(&str, &[&str]); 6] = [
    ("synchronization", &["mode"]),
    ("architecture", &["exchange"]),
    ("compression", &["codec"]),
    ("outer", &["optimizer"]),
    ("inner", &["optimizer"]),
    ("aggregation", &["rule"]),
];

/// Keys of `[agreement]` that cut a swarm into groups.
const GROUPS: [&str; 4] = ["grouping", "row", "cell", "dealing"];

/// How long a round trains, and how that changes. A configuration that sets one of the first two
/// replaces all of them.
const BUDGET: [&str; 12] = [
    "inner_steps",
    "round_time",
    "pace",
    "switch_round",
    "switch_inner_steps",
    "decay_every",
    "loss_every",
    "stagnation_factor",
    "measure_every",
    "train_share",
    "inner_steps_least",
    "inner_steps_most",
];

/// Where fragments begin. A configuration that sets the first replaces all of them.
const CUT: [&str; 5] = ["cut", "fragments", "latency_ms", "mbit_s", "backward_ms"];

/// Parses TOML.
pub(super) fn parse(text: &str) -> Result<toml::Table, StrategyError> {
    text.parse::<toml::Table>()
        .map_err(|error| StrategyError::Syntax {
            line: error
                .span()
                .map_or(0, |at| 1 + text[..at.start].matches('\n').count()),
            message: one_line(error.message()),
        })
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Lays a configuration over its preset, key by key. Both have passed `keys::check`.
pub(super) fn lay_over(preset: &mut toml::Table, config: toml::Table) {
    drop_groups_of_another_exchange(preset, &config);
    for (name, value) in config {
        let toml::Value::Table(table) = value else {
            continue;
        };
        let selectors = SELECTORS
            .iter()
            .find(|(of, _)| *of == name)
            .map_or(&[][..], |(_, s)| s);
        let below = preset
            .entry(name)
            .or_insert_with(|| toml::Table::new().into());
        let Some(below) = below.as_table_mut() else {
            continue;
        };
        if selectors
            .iter()
            .any(|key| table.contains_key(*key) && table.get(*key) != below.get(*key))
        {
            below.clear();
        }
        let chosen = |key: &&str| table.contains_key(*key) && table.get(*key) != below.get(*key);
        let mut gone = Vec::new();
        if BUDGET[..2].iter().any(chosen) {
            gone.extend(BUDGET);
        }
        if chosen(&CUT[0]) {
            gone.extend(CUT);
        }
        below.retain(|key, _| !gone.contains(&key));
        below.extend(table);
    }
}

/// How a preset cuts groups belongs to its exchange: it goes where the configuration chooses another one.
fn drop_groups_of_another_exchange(preset: &mut toml::Table, config: &toml::Table) {
    fn exchange(of: &toml::Table) -> Option<&toml::Value> {
        of.get("architecture")?.get("exchange")
    }
    let other = exchange(config).is_some_and(|chosen| Some(chosen) != exchange(preset));
    let agreement = preset.get_mut("agreement").filter(|_| other);
    if let Some(agreement) = agreement.and_then(toml::Value::as_table_mut) {
        agreement.retain(|key, _| !GROUPS.contains(&key));
    }
}

/// Reads the tables.
pub(super) fn read(config: &toml::Table) -> Result<Tables, StrategyError> {
    Ok(Tables {
        synchronization: Synchronization {
            parameters: without::<Measured>(parameters::<Synchronization>(
                config,
                "synchronization",
            )),
            ..table(config, "synchronization")?
        },
        measured: table(config, "synchronization")?,
        architecture: Architecture {
            parameters: parameters::<Architecture>(config, "architecture"),
            ..table(config, "architecture")?
        },
        compression: Compression {
            parameters: parameters::<Compression>(config, "compression"),
            ..table(config, "compression")?
        },
        overlap: table(config, "overlap")?,
        outer: table(config, "outer")?,
        aggregation: table(config, "aggregation")?,
        agreement: table(config, "agreement")?,
        inner: Inner {
            parameters: parameters::<Inner>(config, "inner"),
            ..table(config, "inner")?
        },
        deadlines: Some(table(config, "deadlines")?),
    })
}

/// The entries of a table that are not fields of its structure.
fn parameters<T: DeserializeOwned>(config: &toml::Table, name: &str) -> toml::Table {
    let fields = fields::<T>();
    let table = config.get(name).and_then(toml::Value::as_table);
    let all = table.into_iter().flatten();
    all.filter(|(key, _)| !fields.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// A table without the keys of another structure.
fn without<T: DeserializeOwned>(mut table: toml::Table) -> toml::Table {
    let fields = fields::<T>();
    table.retain(|key, _| !fields.contains(&key));
    table
}

fn table<T: DeserializeOwned + Default>(
    config: &toml::Table,
    name: &str,
) -> Result<T, StrategyError> {
    let Some(value) = config.get(name) else {
        return Ok(T::default());
    };
    let fields = fields::<T>();
    let mut value = value.clone();
    if let Some(table) = value.as_table_mut() {
        table.retain(|key, _| fields.contains(&key));
    }
    value.clone().try_into::<T>().map_err(|error| {
        // The error does not name its key. Each key alone does.
        let alone = |key: &String, value: &toml::Value| {
            let one: toml::Table = [(key.clone(), value.clone())].into_iter().collect();
            one.try_into::<T>().is_err()
        };
        let keys = value.as_table().into_iter().flatten();
        let key = keys
            .into_iter()
            .find(|(key, value)| alone(key, value))
            .map(|(key, _)| key);
        let key = key.map_or_else(|| name.to_owned(), |key| format!("{name}.{key}"));
        StrategyError::Type {
            key,
            message: one_line(error.message()),
        }
    })
}
