//! The configuration as it is written: one table for each dimension of the grid, nothing checked but
//! names and types.

use super::StrategyError;
use super::registry::hint;
use crate::compress::parameter_names;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// All tables. What is absent has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tables {
    pub(super) synchronization: Synchronization,
    pub(super) architecture: Architecture,
    pub(super) compression: Compression,
    pub(super) overlap: Overlap,
    pub(super) outer: Outer,
    pub(super) aggregation: Aggregation,
    pub(super) inner: Inner,
    /// Bounds of waits, not of numbers: not part of the recipe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deadlines: Option<Deadlines>,
}

/// How much to train in a round (inner steps or a time), and who waits for whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Synchronization {
    pub(super) inner_steps: Option<u32>,
    /// Seconds.
    pub(super) round_time: Option<f64>,
    pub(super) pace: Option<String>,
    pub(super) switch_round: Option<u64>,
    pub(super) switch_inner_steps: Option<u32>,
    pub(super) decay_every: Option<u64>,
    pub(super) mode: Option<String>,
    pub(super) enough: Option<usize>,
    pub(super) grace: Option<String>,
    pub(super) grace_ms: Option<u64>,
    pub(super) fraction: Option<f64>,
    pub(super) lead: Option<usize>,
    pub(super) lead_most: Option<usize>,
    pub(super) buffer: Option<usize>,
    pub(super) staleness: Option<String>,
    pub(super) compensation: Option<f64>,
}

/// Who exchanges what with whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Architecture {
    pub(super) exchange: Option<String>,
    pub(super) schedule: Option<String>,
    pub(super) contribution: Option<String>,
    pub(super) topology: Option<String>,
    pub(super) degree: Option<usize>,
    pub(super) group: Option<usize>,
    pub(super) every: Option<usize>,
    pub(super) budget: Option<f64>,
    pub(super) owners: Option<usize>,
    pub(super) rate: Option<f64>,
}

/// How it is encoded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Compression {
    pub(super) codec: Option<String>,
    pub(super) error_feedback: Option<bool>,
    /// The codec's own keys: its entry in the list of codecs says which.
    #[serde(flatten)]
    pub(super) parameters: toml::Table,
}

/// Into how many fragments the flat parameters are cut, which of them a round exchanges, and when
/// what they agree on is put in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Overlap {
    pub(super) cut: Option<String>,
    pub(super) fragments: Option<usize>,
    pub(super) layers: Option<String>,
    pub(super) stagger: Option<usize>,
    pub(super) late_steps: Option<u32>,
    pub(super) latency_ms: Option<f64>,
    pub(super) mbit_s: Option<f64>,
    pub(super) backward_ms: Option<f64>,
    pub(super) blend: Option<Blend>,
}

/// A rule by its name, or alpha.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Blend {
    Name(String),
    Alpha(f64),
}

/// What the anchor does with the aggregate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
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
}

/// How contributions become one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Aggregation {
    pub(super) rule: Option<String>,
    pub(super) liars: Option<usize>,
    pub(super) radius: Option<f64>,
    pub(super) iterations: Option<u32>,
    pub(super) bucket: Option<usize>,
}

/// What an inner step does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Inner {
    pub(super) optimizer: Option<String>,
    pub(super) lr: Option<f64>,
    pub(super) momentum: Option<f64>,
    pub(super) weight_decay: Option<f64>,
    pub(super) betas: Option<[f64; 2]>,
    pub(super) eps: Option<f64>,
    pub(super) freeze: Option<u64>,
    pub(super) correction: Option<String>,
    pub(super) mu: Option<f64>,
    pub(super) beta: Option<f64>,
}

/// Bounds of the deadlines, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Deadlines {
    pub(super) floor_ms: Option<u64>,
    pub(super) initial_ms: Option<u64>,
    pub(super) ceiling_ms: Option<u64>,
}

/// The keys of each table; a test keeps them equal to the structures above. Those of codecs come on
/// top.
const KEYS: [(&str, &[&str]); 8] = [
    (
        "synchronization",
        &[
            "inner_steps",
            "round_time",
            "pace",
            "switch_round",
            "switch_inner_steps",
            "decay_every",
            "mode",
            "enough",
            "grace",
            "grace_ms",
            "fraction",
            "lead",
            "lead_most",
            "buffer",
            "staleness",
            "compensation",
        ],
    ),
    (
        "architecture",
        &[
            "exchange",
            "schedule",
            "contribution",
            "topology",
            "degree",
            "group",
            "every",
            "budget",
            "owners",
            "rate",
        ],
    ),
    ("compression", &["codec", "error_feedback"]),
    (
        "overlap",
        &[
            "cut",
            "fragments",
            "layers",
            "stagger",
            "late_steps",
            "latency_ms",
            "mbit_s",
            "backward_ms",
            "blend",
        ],
    ),
    (
        "outer",
        &[
            "optimizer",
            "lr",
            "momentum",
            "betas",
            "eps",
            "every",
            "spread",
            "alpha",
            "pull",
            "penalty",
            "clip",
        ],
    ),
    (
        "aggregation",
        &["rule", "liars", "radius", "iterations", "bucket"],
    ),
    (
        "inner",
        &[
            "optimizer",
            "lr",
            "momentum",
            "weight_decay",
            "betas",
            "eps",
            "freeze",
            "correction",
            "mu",
            "beta",
        ],
    ),
    ("deadlines", &["floor_ms", "initial_ms", "ceiling_ms"]),
];

/// Keys that choose a method. A configuration that chooses another one than its preset does not
/// inherit the preset's other keys of that table: they are parameters of the old one.
const SELECTORS: [(&str, &[&str]); 6] = [
    ("synchronization", &["mode"]),
    ("architecture", &["exchange"]),
    ("compression", &["codec"]),
    ("outer", &["optimizer"]),
    ("inner", &["optimizer"]),
    ("aggregation", &["rule"]),
];

/// How long a round trains, and how that changes: whoever chooses one of the first two chooses it for good.
const BUDGET: [&str; 6] = [
    "inner_steps",
    "round_time",
    "pace",
    "switch_round",
    "switch_inner_steps",
    "decay_every",
];

/// Where fragments begin: whoever chooses the first chooses all of it.
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

/// Refuses tables and keys that do not exist.
pub(super) fn check_keys(config: &toml::Table) -> Result<(), StrategyError> {
    let tables = KEYS.map(|(name, _)| name);
    for (name, value) in config {
        let Some((_, keys)) = KEYS.iter().find(|(table, _)| table == name) else {
            return Err(StrategyError::UnknownKey {
                key: name.clone(),
                hint: hint(name, &tables),
            });
        };
        let Some(table) = value.as_table() else {
            let message = format!("found {}, needs a table: [{name}]", value.type_str());
            return Err(StrategyError::Type {
                key: name.clone(),
                message,
            });
        };
        let mut keys = keys.to_vec();
        if name == "compression" {
            keys.extend(parameter_names());
        }
        if let Some(key) = table.keys().find(|key| !keys.contains(&key.as_str())) {
            let full = format!("{name}.{key}");
            return Err(StrategyError::UnknownKey {
                key: full,
                hint: hint(key, &keys),
            });
        }
    }
    Ok(())
}

/// Lays a configuration over its preset, key by key. Both have passed [`check_keys`].
pub(super) fn lay_over(preset: &mut toml::Table, config: toml::Table) {
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

/// Reads the tables.
pub(super) fn read(config: &toml::Table) -> Result<Tables, StrategyError> {
    Ok(Tables {
        synchronization: table(config, "synchronization")?,
        architecture: table(config, "architecture")?,
        compression: table(config, "compression")?,
        overlap: table(config, "overlap")?,
        outer: table(config, "outer")?,
        aggregation: table(config, "aggregation")?,
        inner: table(config, "inner")?,
        deadlines: Some(table(config, "deadlines")?),
    })
}

fn table<T: DeserializeOwned + Default>(
    config: &toml::Table,
    name: &str,
) -> Result<T, StrategyError> {
    let Some(value) = config.get(name) else {
        return Ok(T::default());
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_lists_are_those_of_the_structures() {
        for (name, keys) in KEYS {
            if name == "compression" {
                // Takes any key, those of codecs: looked at in `check_keys`.
                continue;
            }
            // An unknown key makes serde list the ones it knows, in the order of the structure.
            let text = format!("[{name}]\nno_such_key = 1");
            let error = toml::from_str::<Tables>(&text)
                .unwrap_err()
                .message()
                .to_owned();
            for key in keys {
                assert!(error.contains(&format!("`{key}`")), "{error}: {key}");
            }
            assert_eq!(error.matches('`').count(), 2 * (keys.len() + 1), "{error}");
        }
    }
}
