//! A trial as TOML: one task, sizes of the swarm, distributions of the data, networks and entrants.

use crate::compare::{Data, NetworkChoice, compose, merge, whole};
use crate::error::SimError;
use crate::scenario::{Checker, PEERS_MAX, Scenario, ScenarioError, explain, read_file};
use murmurate_strategies::grid::Strategy;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A strategy of the trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entrant {
    /// Its name in the report.
    pub name: String,
    /// The `[strategy]` of a scenario.
    pub strategy: toml::Table,
}

/// A size of the swarm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Number of peers.
    pub peers: usize,
    /// Inner steps that each peer takes, a multiple of every entrant's inner steps of a round.
    pub inner_steps: u64,
    /// Seeds. Each run is repeated with each of them.
    pub seeds: Vec<u64>,
}

/// A trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EqualTrial {
    /// The entrant whose loss the others' are compared with.
    pub baseline: String,
    /// The entrant whose bytes and seconds all others may use.
    pub budget: String,
    /// Measurements of a run.
    pub points: u64,
    /// Milliseconds of an inner step, for the seconds.
    pub step_ms: f64,
    /// The task, with its kind.
    pub task: toml::Table,
    /// Sizes of the swarm.
    pub size: Vec<Size>,
    /// Distributions of the data.
    pub data: Vec<Data>,
    /// Networks, for the seconds.
    pub network: Vec<NetworkChoice>,
    /// The strategies.
    pub entrant: Vec<Entrant>,
    /// Name of the file in errors.
    #[serde(skip_deserializing, default)]
    pub file: String,
}

/// One run: an entrant on data of a distribution with a seed.
#[derive(Clone, Copy, Debug)]
pub struct EqualCell<'a> {
    /// The entrant.
    pub entrant: &'a Entrant,
    /// The distribution of the data.
    pub data: &'a Data,
    /// The size of the swarm.
    pub size: &'a Size,
    /// The seed.
    pub seed: u64,
}

impl std::fmt::Display for EqualCell<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (entrant, data) = (&self.entrant.name, &self.data.name);
        let (peers, seed) = (self.size.peers, self.seed);
        write!(f, "{entrant}: {data}, {peers} peers, seed {seed}")
    }
}

impl EqualTrial {
    /// Reads a trial.
    ///
    /// # Errors
    /// One line that names the file, the key, and what to do.
    pub fn from_file(path: &Path) -> Result<Self, ScenarioError> {
        let (text, file) = read_file(path)?;
        Self::from_toml(&text, &file)
    }

    /// Reads a trial from text. `file` is its name in errors.
    ///
    /// # Errors
    /// As [`EqualTrial::from_file`].
    pub fn from_toml(text: &str, file: &str) -> Result<Self, ScenarioError> {
        let mut trial: Self = toml::from_str(text).map_err(|error| explain(&error, text, file))?;
        file.clone_into(&mut trial.file);
        let check = Checker::new(file, text);
        let lists = [
            ("size", trial.size.len()),
            ("data", trial.data.len()),
            ("network", trial.network.len()),
            ("entrant", trial.entrant.len()),
        ];
        check.runs(lists, trial.points)?;
        check.within("step_ms", trial.step_ms, (1e-3, 1e9))?;
        trial.names(&check)?;
        trial.sizes(&check)?;
        Ok(trial)
    }

    /// Every name once, and those that are referred to.
    fn names(&self, check: &Checker<'_>) -> Result<(), ScenarioError> {
        let entrants: Vec<&str> = self.entrant.iter().map(|e| e.name.as_str()).collect();
        let data = self.data.iter().map(|d| d.name.as_str()).collect();
        let networks = self.network.iter().map(|n| n.name.as_str()).collect();
        for (key, names) in [
            ("entrant", entrants.clone()),
            ("data", data),
            ("network", networks),
        ] {
            for (at, name) in names.iter().enumerate() {
                if names[..at].contains(name) {
                    let key = format!("{key}[{at}].name");
                    return Err(check.refuse(&key, format!("is `{name}` a second time")));
                }
            }
        }
        for (key, name) in [("baseline", &self.baseline), ("budget", &self.budget)] {
            if !entrants.contains(&name.as_str()) {
                let known = entrants.join("`, `");
                return Err(check.refuse(key, format!("is `{name}`: give one of `{known}`")));
            }
        }
        Ok(())
    }

    fn sizes(&self, check: &Checker<'_>) -> Result<(), ScenarioError> {
        for (at, size) in self.size.iter().enumerate() {
            let key = |leaf: &str| format!("size[{at}].{leaf}");
            let Size { peers, seeds, .. } = size;
            if !(2..=PEERS_MAX).contains(peers) {
                let reason = format!("is {peers}: give 2 to {PEERS_MAX}");
                return Err(check.refuse(&key("peers"), reason));
            }
            if self.size[..at].iter().any(|other| other.peers == *peers) {
                return Err(check.refuse(&key("peers"), format!("is {peers} a second time")));
            }
            if seeds.is_empty() {
                return Err(check.refuse(&key("seeds"), "is empty: nothing would run"));
            }
            for (number, entrant) in self.entrant.iter().enumerate() {
                let strategy = Strategy::from_table(entrant.strategy.clone(), None);
                let strategy = strategy.map_err(|error| {
                    check.refuse(&format!("entrant[{number}].strategy"), error.to_string())
                })?;
                if let Err(reason) = rounds(&strategy, size) {
                    let reason = format!("{reason} (entrant `{}`)", entrant.name);
                    return Err(check.refuse(&key("inner_steps"), reason));
                }
            }
        }
        Ok(())
    }

    /// All runs, grouped by size and data.
    pub fn cells(&self) -> Vec<EqualCell<'_>> {
        let mut cells = Vec::new();
        for size in &self.size {
            for data in &self.data {
                for entrant in &self.entrant {
                    cells.extend(size.seeds.iter().map(|&seed| EqualCell {
                        entrant,
                        data,
                        size,
                        seed,
                    }));
                }
            }
        }
        cells
    }

    /// What identifies the result of a run: everything that it depends on but the network, as one line.
    pub fn recipe(&self, cell: &EqualCell<'_>) -> String {
        // A preset's own text may change.
        let strategy = Strategy::from_table(cell.entrant.strategy.clone(), None);
        let strategy = strategy.map(|strategy| strategy.to_toml());
        let task = (&self.task, &cell.data.scenario, strategy.ok());
        let numbers = (cell.size.peers, cell.size.inner_steps, cell.seed);
        serde_json::to_string(&(task, numbers, self.points, self.step_ms, &self.network))
            .expect("tables and numbers can be written as JSON")
    }

    /// The scenario of a run with tensors, and its rounds.
    pub(super) fn training(&self, cell: &EqualCell<'_>) -> Result<(Scenario, u64), SimError> {
        let strategy = Strategy::from_table(cell.entrant.strategy.clone(), None)?;
        let rounds = rounds(&strategy, cell.size).map_err(SimError::Task)?;
        let mut table = toml::Table::new();
        table.insert("task".to_owned(), self.task.clone().into());
        merge(&mut table, &cell.data.scenario);
        let every = (rounds / self.points).max(1);
        table.insert("evaluate_every".to_owned(), whole(every));
        Ok((self.scenario(table, cell, rounds)?, rounds))
    }

    /// The scenario of a run of this many rounds without tensors, for a model of this size.
    pub(super) fn timing(
        &self,
        cell: &EqualCell<'_>,
        network: &NetworkChoice,
        parameters: u64,
        rounds: u64,
    ) -> Result<Scenario, SimError> {
        let mut table = network.scenario.clone();
        let task = [
            ("kind".to_owned(), "timing".into()),
            ("parameters".to_owned(), whole(parameters)),
        ];
        table.insert("task".to_owned(), toml::Table::from_iter(task).into());
        // The learning rate costs no time, and its schedule may be longer than these rounds.
        let strategy = Strategy::from_table(cell.entrant.strategy.clone(), None)?;
        let mut strategy: toml::Table = strategy
            .to_toml()
            .parse()
            .expect("a strategy is written as TOML");
        if let Some(toml::Value::Table(inner)) = strategy.get_mut("inner") {
            for key in [
                "schedule",
                "warmup_rounds",
                "schedule_rounds",
                "final_rate",
                "decay_rounds",
            ] {
                inner.remove(key);
            }
        }
        table.insert("strategy".to_owned(), strategy.into());
        self.scenario(table, cell, rounds)
    }

    fn scenario(
        &self,
        mut table: toml::Table,
        cell: &EqualCell<'_>,
        rounds: u64,
    ) -> Result<Scenario, SimError> {
        let one = |key: &str, value: f64| toml::Table::from_iter([(key.to_owned(), value.into())]);
        let strategy = || cell.entrant.strategy.clone().into();
        table.entry("strategy").or_insert_with(strategy);
        table.insert("compute".to_owned(), one("step_ms", self.step_ms).into());
        table.insert("limits".to_owned(), one("virtual_s", 1e9).into());
        table.insert("rounds".to_owned(), whole(rounds));
        let file = format!("{} ({cell})", self.file);
        compose(table, cell.size.peers, cell.seed, &file, &cell.entrant.name)
    }
}

/// The rounds of an entrant, if they have the size's inner steps exactly.
pub(super) fn rounds(strategy: &Strategy, size: &Size) -> Result<u64, String> {
    let all = size.inner_steps;
    let Some(rounds) = strategy.rounds(all).filter(|rounds| *rounds > 0) else {
        return Err(format!(
            "is {all}: the rounds must be bounded by a number of inner steps"
        ));
    };
    let fewer = strategy.rounds(all.saturating_sub(1));
    let more = strategy.rounds(all + 1);
    // Whole rounds: one inner step less needs as many, and one more needs another.
    match fewer == Some(rounds) && more != Some(rounds) || all == rounds {
        true => Ok(rounds),
        false => Err(format!(
            "is {all}: give a multiple of the inner steps of a round"
        )),
    }
}
