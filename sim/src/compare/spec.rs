//! A comparison file: tasks, data, networks, presets, sizes and seeds as TOML.

use crate::error::SimError;
use crate::scenario::{Checker, Scenario, ScenarioError, explain, read_file};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::grid::registry::PRESETS;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Inner steps of a round, for presets whose rounds have a fixed time instead of a count.
const STEPS_OF_A_TIMED_ROUND: u64 = 10;

/// The target. Exactly one of the two is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Mean loss over the peers at most this, in nats.
    pub loss: Option<f64>,
    /// Mean accuracy over the peers at least this.
    pub accuracy: Option<f64>,
}

/// A distribution of a task's data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Its name in the report.
    pub name: String,
    /// Part of the scenario.
    pub scenario: toml::Table,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskChoice {
    /// Its name in the report.
    pub name: String,
    /// Inner steps of each peer. Presets with longer rounds have fewer rounds.
    pub inner_steps: u64,
    /// The target.
    pub target: Target,
    /// Part of the scenario.
    pub scenario: toml::Table,
    /// The data distributions to run.
    pub data: Vec<Data>,
}

/// One network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkChoice {
    /// Its name in the report.
    pub name: String,
    /// Part of the scenario.
    pub scenario: toml::Table,
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Presets; if empty, all that exchange something.
    #[serde(default)]
    pub presets: Vec<String>,
    /// Sizes of the swarm.
    pub peers: Vec<usize>,
    /// Seeds. Each run is repeated with each seed.
    pub seeds: Vec<u64>,
    /// Measurements of a run.
    pub points: u64,
    /// The tasks.
    pub task: Vec<TaskChoice>,
    /// The networks.
    pub network: Vec<NetworkChoice>,
    /// Name of the file in errors and in the report.
    #[serde(skip_deserializing, default)]
    pub file: String,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell<'a> {
    pub(super) task: &'a TaskChoice,
    pub(super) data: &'a Data,
    pub(super) peers: usize,
    pub(super) network: &'a NetworkChoice,
    pub(super) preset: &'a str,
    pub(super) seed: u64,
}

impl std::fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (task, data, network) = (&self.task.name, &self.data.name, &self.network.name);
        let (peers, preset, seed) = (self.peers, self.preset, self.seed);
        write!(
            f,
            "{preset}: {task}, {data}, {peers} peers, {network}, seed {seed}"
        )
    }
}

impl Comparison {
    /// Reads a comparison file.
    ///
    /// # Errors
    /// One line that names the file, the key, and what to do.
    pub fn from_file(path: &Path) -> Result<Self, ScenarioError> {
        let (text, file) = read_file(path)?;
        Self::from_toml(&text, &file)
    }

    /// Reads a comparison from text. `file` is its name in errors.
    ///
    /// # Errors
    /// As [`Comparison::from_file`].
    pub fn from_toml(text: &str, file: &str) -> Result<Self, ScenarioError> {
        let mut comparison: Self =
            toml::from_str(text).map_err(|error| explain(&error, text, file))?;
        file.clone_into(&mut comparison.file);
        let check = Checker::new(file, text);
        let lists = [
            ("peers", comparison.peers.len()),
            ("seeds", comparison.seeds.len()),
            ("task", comparison.task.len()),
            ("network", comparison.network.len()),
        ];
        check.runs(lists, comparison.points)?;
        for (index, task) in comparison.task.iter().enumerate() {
            let key = |leaf: &str| format!("task[{index}].{leaf}");
            if task.inner_steps == 0 {
                return Err(check.refuse(&key("inner_steps"), "is 0: nothing would be learned"));
            }
            if task.target.loss.is_some() == task.target.accuracy.is_some() {
                let reason = "needs either `loss` or `accuracy`";
                return Err(check.refuse(&key("target"), reason));
            }
            if task.data.is_empty() {
                return Err(check.refuse(&key("data"), "is empty: nothing would run"));
            }
        }
        for preset in &comparison.presets {
            Strategy::preset(preset).map_err(|error| check.refuse("presets", error.to_string()))?;
        }
        Ok(comparison)
    }

    /// The presets that it compares.
    pub fn presets(&self) -> Vec<&str> {
        if !self.presets.is_empty() {
            return self.presets.iter().map(String::as_str).collect();
        }
        let all = PRESETS.iter().map(|entry| entry.name);
        all.filter(|name| *name != "none").collect()
    }

    /// All runs, grouped by chart.
    pub(super) fn cells(&self) -> Vec<Cell<'_>> {
        let mut cells = Vec::new();
        for task in &self.task {
            for data in &task.data {
                for &peers in &self.peers {
                    for network in &self.network {
                        for preset in self.presets() {
                            cells.extend(self.seeds.iter().map(|&seed| Cell {
                                task,
                                data,
                                peers,
                                network,
                                preset,
                                seed,
                            }));
                        }
                    }
                }
            }
        }
        cells
    }

    pub(super) fn scenario(&self, cell: &Cell<'_>) -> Result<Scenario, SimError> {
        let mut table = toml::Table::new();
        for part in [
            &cell.task.scenario,
            &cell.data.scenario,
            &cell.network.scenario,
        ] {
            merge(&mut table, part);
        }
        let strategy = table
            .entry("strategy")
            .or_insert_with(|| toml::Table::new().into());
        if let toml::Value::Table(strategy) = strategy {
            strategy.insert("preset".to_owned(), cell.preset.into());
            let strategy = Strategy::from_table(strategy.clone(), None)?;
            let all = cell.task.inner_steps;
            let timed = || all.div_ceil(STEPS_OF_A_TIMED_ROUND);
            let rounds = strategy.rounds(all).unwrap_or_else(timed);
            table.insert("rounds".to_owned(), whole(rounds));
            let every = (rounds / self.points).max(1);
            table.insert("evaluate_every".to_owned(), whole(every));
        }
        let file = format!("{} ({cell})", self.file);
        compose(table, cell.peers, cell.seed, &file, cell.preset)
    }
}

/// The scenario that this table is with a number of peers and a seed.
pub(crate) fn compose(
    mut table: toml::Table,
    peers: usize,
    seed: u64,
    file: &str,
    name: &str,
) -> Result<Scenario, SimError> {
    table.insert("peers".to_owned(), whole(peers as u64));
    table.insert("seed".to_owned(), whole(seed));
    let text = toml::to_string(&table).expect("what was TOML can be written as TOML");
    Ok(Scenario::from_toml(&text, file, name)?)
}

/// A count as TOML.
pub(crate) fn whole(value: u64) -> toml::Value {
    toml::Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Applies a part: tables are merged, other values are replaced.
pub(crate) fn merge(table: &mut toml::Table, part: &toml::Table) {
    for (key, value) in part {
        match (table.get_mut(key), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => merge(old, new),
            _ => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}
