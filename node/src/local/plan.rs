//! The plan of a local swarm: one configuration for each daemon, derived from a common one.

use super::LocalError;
use super::args::KillEvery;
use super::network::Place;
use super::options::LocalOptions;
use crate::config::{Config, ConfigError, Overrides, TrainerArg};
use crate::faults::Fault;
use crate::goal::Target;
use crate::lies::Lie;
use crate::membership;
use crate::splits::Split;
use murmurate_protocol::{Grouping, StepBudget};
use murmurate_tasks::TaskConfig;
use murmurate_tasks::data::ShardKind;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

#[derive(Clone, Debug)]
pub(super) struct LocalPlan {
    pub(super) children: Vec<ChildPlan>,
    pub(super) program: PathBuf,
    pub(super) preset: String,
    pub(super) seed: u64,
    pub(super) alone: bool,
    /// What every daemon must reach.
    pub(super) target: Target,
    pub(super) kill_every: Option<KillEvery>,
    /// The name of the run that a stranger attacks, if there is one.
    pub(super) stranger: Option<String>,
    pub(super) sides: Option<String>,
    /// A note for the user about a default that was chosen.
    pub(super) note: Option<&'static str>,
}

impl LocalPlan {
    /// Writes one configuration per daemon below `dir`. `places` are the daemons' addresses on an
    /// emulated network; empty without one.
    pub(super) fn new(
        options: &LocalOptions,
        dir: &Path,
        places: &[Place],
    ) -> Result<Self, LocalError> {
        options.check()?;
        let mut base = Base::new(options)?;
        base.found_run(dir)?;
        base.places = places.to_vec();
        Self::with(options, dir, &base)
    }

    fn with(options: &LocalOptions, dir: &Path, base: &Base) -> Result<Self, LocalError> {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        let threads = (threads / options.nodes).max(1);
        let children = (0..options.nodes)
            .map(|index| base.child(options, dir, index, threads))
            .collect::<Result<_, _>>()?;
        let program = std::env::current_exe().map_err(|e| LocalError::Spawn {
            index: 0,
            reason: e.to_string(),
        })?;
        Ok(Self {
            children,
            program,
            preset: base.config.strategy.name().to_owned(),
            seed: base.config.run.seed,
            target: options.target(&base.config),
            alone: !base.config.strategy.exchange().facts().exchanges,
            kill_every: options.kill_every,
            stranger: options.stranger.then(|| base.config.run.name.clone()),
            sides: options.partition.as_ref().map(super::PartitionAt::words),
            note: choose(options, &base.config.task).1,
        })
    }

    /// The daemons of `nodes` with preset `none`, without faults and without an end.
    pub(super) fn baseline(
        options: &LocalOptions,
        dir: &Path,
        nodes: &[usize],
    ) -> Result<Self, LocalError> {
        let mut plain = options.clone();
        plain.rounds = Some(u64::from(u32::MAX));
        plain.record = None;
        plain.kill_every = None;
        plain.stranger = false;
        (plain.kills, plain.stops, plain.lates) = (Vec::new(), Vec::new(), Vec::new());
        plain.liars = Vec::new();
        plain.partition = None;
        plain.cuts = Vec::new();
        plain.heal = None;
        let mut base = Base::new(&plain)?.alone()?;
        base.found_run(dir)?;
        plain.shards = choose(options, &base.config.task).0;
        let mut plan = Self::with(&plain, &dir.join("baseline"), &base)?;
        plan.children.retain(|child| nodes.contains(&child.index));
        Ok(plan)
    }
}

/// Configuration and arguments of one daemon.
#[derive(Clone, Debug)]
pub(super) struct ChildPlan {
    pub(super) index: usize,
    pub(super) dir: PathBuf,
    pub(super) config: PathBuf,
    pub(super) faults: Vec<Fault>,
    pub(super) lies: Vec<Lie>,
    pub(super) split: Option<Split>,
    pub(super) record: Option<PathBuf>,
    pub(super) late: Option<u64>,
    pub(super) threads: usize,
    pub(super) ranks: usize,
    /// Its training loop, if that is a process of its own.
    pub(super) command: Vec<OsString>,
    /// Set where it announces an address at which others can join.
    pub(super) joinable: bool,
}

/// Inner steps after which a run without `--rounds` ends.
const INNER_STEPS_LIMIT: u64 = 6_000;

/// Approximate inner steps between two evaluations.
const EVALUATE_STEPS: u64 = 50;

/// Rounds after which a run without `--rounds` ends if rounds have a fixed duration.
const TIMED_ROUNDS_LIMIT: u64 = 200;

/// Keys of `[strategy.inner]` that correct gradients.
const CORRECTION_KEYS: [&str; 3] = ["correction", "mu", "beta"];

fn table_from(text: &str) -> Result<Table, LocalError> {
    let table = toml::from_str(text);
    table.map_err(|e: toml::de::Error| LocalError::of_flag("--config")(e.message()))
}

/// Set if a configuration file, which was read before, has this key.
fn file_sets(file: Option<&Path>, section: &str, key: &str) -> bool {
    let text = file.and_then(|file| std::fs::read_to_string(file).ok());
    let table = text.and_then(|text| text.parse::<Table>().ok());
    let section = table.as_ref().and_then(|table| table.get(section));
    section.is_some_and(|section| section.get(key).is_some())
}

/// A section of a configuration, which is made if it is not there. `None` if something else has its name.
fn section<'a>(table: &'a mut Table, name: &str) -> Option<&'a mut Table> {
    let section = table
        .entry(name)
        .or_insert_with(|| Value::Table(Table::new()));
    section.as_table_mut()
}

fn set(table: &mut Table, name: &str, key: &str, value: impl Into<Value>) {
    if let Some(section) = section(table, name) {
        section.insert(key.to_owned(), value.into());
    }
}

fn count(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Keys of `[daemon]` that are left to this program: it ends the swarm when all have reached the goal.
const GOAL_KEYS: [&str; 2] = ["until_accuracy", "until_loss"];

/// Keys of `[daemon]` that say nothing of the daemons that train for comparison.
const WATCH_KEYS: [&str; 4] = ["patience_rounds", "keep_best", "metrics_dir", "ema"];

fn without(table: &mut Table, keys: &[&str]) {
    if let Some(Value::Table(daemon)) = table.get_mut("daemon") {
        daemon.retain(|key, _| !keys.contains(&key));
    }
}

/// The common configuration.
pub(super) struct Base {
    pub(super) table: Table,
    pub(super) config: Config,
    pub(super) places: Vec<Place>,
    /// The key of the swarm's own run.
    key: PathBuf,
    /// The given file sets `daemon.evaluate_every`. With its default, a swarm with short rounds would mostly evaluate.
    says_when_to_evaluate: bool,
}

impl Base {
    pub(super) fn new(options: &LocalOptions) -> Result<Self, LocalError> {
        let overrides = Overrides {
            preset: options.preset.clone(),
            seed: options.seed,
            rounds: options.rounds,
            data: options.data.clone(),
            init: options.init.clone(),
            device: options.device.clone(),
            trainer: (!options.command.is_empty()).then_some(TrainerArg::Attach),
            no_mdns: true,
            ..Overrides::default()
        };
        let config = Config::load(options.config.as_deref(), &overrides)?;
        let table = table_from(&config.effective)?;
        let base = Self {
            table,
            config,
            places: Vec::new(),
            key: PathBuf::new(),
            says_when_to_evaluate: file_sets(options.config.as_deref(), "daemon", "evaluate_every"),
        };
        match options.round_time_s {
            Some(seconds) => base.paced(seconds),
            None => Ok(base),
        }
    }

    /// The same configuration with rounds that take a time, not a number of inner steps.
    fn paced(mut self, seconds: f64) -> Result<Self, LocalError> {
        let mut strategy = table_from(&self.config.strategy.to_toml())?;
        if let Some(Value::Table(pace)) = strategy.get_mut("synchronization") {
            pace.remove("inner_steps");
            pace.insert("round_time".to_owned(), Value::Float(seconds));
        }
        self.table
            .insert("strategy".to_owned(), Value::Table(strategy));
        self.with_table("the demo", "--demo")
    }

    /// Reads the configuration again from its table, which was changed for a flag.
    fn with_table(mut self, name: &str, flag: &'static str) -> Result<Self, LocalError> {
        let text = toml::to_string(&self.table).map_err(LocalError::of_flag(flag))?;
        self.config = Config::from_text(Path::new(name), &text, &Overrides::default())?;
        Ok(self)
    }

    /// The same configuration with preset `none`. It keeps the inner optimizer only. Exchange keys
    /// would contradict the preset, and a correction needs exchanged values.
    pub(super) fn alone(mut self) -> Result<Self, LocalError> {
        let strategy = table_from(&self.config.strategy.to_toml())?;
        let mut alone = Table::new();
        alone.insert("preset".to_owned(), Value::String("none".to_owned()));
        if let Some(Value::Table(inner)) = strategy.get("inner") {
            let mut inner = inner.clone();
            inner.retain(|key, _| !CORRECTION_KEYS.contains(&key));
            alone.insert("inner".to_owned(), Value::Table(inner));
        }
        self.table
            .insert("strategy".to_owned(), Value::Table(alone));
        without(&mut self.table, &WATCH_KEYS);
        self.with_table("the baseline", "--baseline")
    }

    /// Makes the key of a run of the swarm's own in `dir`, unless it is there from before or the
    /// configuration says otherwise.
    fn found_run(&mut self, dir: &Path) -> Result<(), LocalError> {
        self.key = dir.join("run.key");
        if self.config.run.open || self.config.run.key.is_some() || self.key.exists() {
            return Ok(());
        }
        std::fs::create_dir_all(dir).map_err(LocalError::of_directory(dir))?;
        membership::found(&self.key, &self.config.run.name)?;
        Ok(())
    }

    pub(super) fn child(
        &self,
        options: &LocalOptions,
        dir: &Path,
        index: usize,
        threads: usize,
    ) -> Result<ChildPlan, LocalError> {
        let home = dir.join(format!("node-{index}"));
        std::fs::create_dir_all(&home).map_err(LocalError::of_directory(&home))?;
        let late = options.lates.iter().find(|late| late.node == index);
        let late = late.map(|late| late.round);
        let table = self.table_of(options, &home, index, late.is_some());
        let path = home.join("node.toml");
        let text = toml::to_string(&table).map_err(LocalError::of_flag("--config"))?;
        // Checked here, so that an inconsistency is reported once and not by every child.
        let config = Config::from_text(&path, &text, &Overrides::default())?;
        let rate = config.strategy.learning_rate(config.run.rounds);
        rate.map_err(LocalError::of_flag("--config"))?;
        std::fs::write(&path, &text).map_err(|e| ConfigError::Unwritable {
            path: path.clone(),
            reason: e.to_string(),
        })?;
        Ok(ChildPlan {
            index,
            dir: home,
            config: path,
            faults: options.faults_of(index),
            lies: options.lies_of(index),
            split: match &options.partition {
                Some(partition) => Some(partition.of(index, options.heal, dir)?),
                None => None,
            },
            record: options
                .record
                .as_ref()
                .map(|dir| dir.join(format!("{index}.rec"))),
            late,
            threads,
            ranks: config.island.ranks as usize,
            command: options.command.clone(),
            joinable: self
                .places
                .get(index)
                .is_none_or(|p| !p.announce.is_empty()),
        })
    }

    fn table_of(&self, options: &LocalOptions, home: &Path, index: usize, late: bool) -> Table {
        let mut table = self.table.clone();
        without(&mut table, &GOAL_KEYS);
        let alone = !self.config.strategy.exchange().facts().exchanges;
        let first = options.nodes - options.lates.len();
        let start_with = if late || alone { 1 } else { first as u64 };
        let (shards, _) = choose(options, &self.config.task);
        let own = ["/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/0"];
        let own = own.map(str::to_owned).to_vec();
        let place = self.places.get(index);
        set(&mut table, "run", "rounds", count(self.rounds()));
        set(&mut table, "run", "start_with", count(start_with));
        if let Some(islands) = options.islands {
            set(&mut table, "island", "ranks", count(islands.ranks));
        }
        // A daemon that is away or late when the others finish must find a peer to fetch the result
        // from. So all of them stay, and this program ends them.
        set(&mut table, "daemon", "stay", true);
        if !self.says_when_to_evaluate {
            let every = count(self.evaluate_every());
            set(&mut table, "daemon", "evaluate_every", every);
        }
        if let Some(split) = shards {
            set(&mut table, "shards", "kind", split.name());
            if let ShardKind::Dirichlet { alpha } = split {
                set(&mut table, "shards", "alpha", alpha);
            }
        }
        if shards.unwrap_or(self.config.shards.kind).is_numbered() {
            set(&mut table, "shards", "index", count(index));
            set(&mut table, "shards", "of", count(options.nodes));
        }
        let listen = place.map_or(own, |p| p.listen.clone());
        set(&mut table, "network", "listen", listen);
        if let Some(place) = place {
            set(&mut table, "network", "announce", place.announce.clone());
            set(&mut table, "network", "relay", place.relay);
            let payload = count(place.payload_max);
            set(&mut table, "network", "payload_max", payload);
            if let Some(port) = place.bulk_port {
                set(&mut table, "network", "bulk_port", count(port));
            }
        }
        set(&mut table, "network", "join", Value::Array(Vec::new()));
        if !self.config.run.open && self.config.run.key.is_none() {
            set(&mut table, "run", "key", &*self.key.to_string_lossy());
        }
        set(&mut table, "daemon", "dir", &*home.to_string_lossy());
        set(&mut table, "daemon", "name", format!("node-{index}"));
        set(&mut table, "daemon", "http", "127.0.0.1:0");
        self.group(&mut table, options.nodes);
        table
    }

    /// Says how the swarm is cut into groups where its size decides: all daemons must agree on it, and
    /// those that come later begin with fewer peers.
    fn group(&self, table: &mut Table, nodes: usize) {
        let strategy = &self.config.strategy;
        let grid = strategy.clone().for_peers(nodes).grouping();
        if strategy.grouping().is_some() || !grid.is_some_and(Grouping::is_grid) {
            return;
        }
        if let Some(strategy) = section(table, "strategy") {
            set(strategy, "agreement", "grouping", "grid");
        }
    }

    /// Rounds between evaluations. An evaluation costs about as much as a few inner steps.
    fn evaluate_every(&self) -> u64 {
        match self.config.strategy.budget() {
            StepBudget::Steps(steps) => (EVALUATE_STEPS / u64::from(steps.max(1))).max(1),
            StepBudget::Time(_) => 1,
        }
    }

    /// The requested rounds, or else those with [`INNER_STEPS_LIMIT`] inner steps.
    fn rounds(&self) -> u64 {
        let counted = || self.config.strategy.rounds(INNER_STEPS_LIMIT);
        match self.config.run.rounds {
            0 => counted().unwrap_or(TIMED_ROUNDS_LIMIT),
            rounds => rounds,
        }
    }
}

/// The note for a default that a fault changes.
const IID_NOTE: &str = "a killed, stopped or lying daemon takes its classes with it: the images \
                        are sharded iid, not by label (--shards by-label: all the same by label)";

/// The division of the data for a swarm; `None` keeps that of the configuration. Returns a note if the usual default
/// is not used. The usual default is `by-label`, because then daemons must cooperate to succeed.
fn choose(options: &LocalOptions, task: &TaskConfig) -> (Option<ShardKind>, Option<&'static str>) {
    let labelled = matches!(task, TaskConfig::ImageClassifier(_));
    let killed = !options.kills.is_empty() || options.kill_every.is_some();
    let loses = killed || !options.stops.is_empty() || !options.liars.is_empty();
    match &options.shards {
        Some(shards) => (Some(*shards), None),
        // A configuration file decides, if it says anything about shards.
        None if file_sets(options.config.as_deref(), "shards", "kind") => (None, None),
        // Not the default of `run`: the identities of daemons are random, so a division by them
        // would be another one in each run.
        None if options.config.is_some() => (Some(ShardKind::Iid), None),
        None if labelled && loses => (Some(ShardKind::Iid), Some(IID_NOTE)),
        None if labelled => (Some(ShardKind::ByLabel), None),
        None => (Some(ShardKind::Iid), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Overrides};
    use crate::local::LateAt;
    use murmurate_strategies::grid::registry;

    fn options() -> LocalOptions {
        LocalOptions {
            nodes: 4,
            ..LocalOptions::default()
        }
    }

    fn config_of(plan: &LocalPlan, index: usize) -> Config {
        Config::load(Some(&plan.children[index].config), &Overrides::default()).unwrap()
    }

    #[test]
    fn every_daemon_gets_a_shard_and_a_directory_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let late = LateAt { node: 3, round: 2 };
        let kill = "1@round:4:apply".parse().unwrap();
        let options = LocalOptions {
            lates: vec![late],
            kills: vec![kill],
            ..options()
        };
        let plan = LocalPlan::new(&options, dir.path(), &[]).unwrap();
        for index in 0..4 {
            let config = config_of(&plan, index);
            assert_eq!((config.shards.index, config.shards.of), (index as u32, 4));
            assert_eq!(config.shards.kind, murmurate_tasks::data::ShardKind::Iid);
            assert_eq!(config.daemon.dir, plan.children[index].dir);
            assert!(!config.network.mdns);
        }
        assert_eq!(config_of(&plan, 0).run.start_with, 3);
        assert_eq!(config_of(&plan, 3).run.start_with, 1);
        assert_eq!(plan.children[3].late, Some(2));
        assert_eq!(plan.children[1].faults[0].to_string(), "kill@4:apply");
    }

    #[test]
    fn the_baseline_is_the_same_daemons_alone() {
        let dir = tempfile::tempdir().unwrap();
        let kill = "1@round:4".parse().unwrap();
        let options = LocalOptions {
            kills: vec![kill],
            seed: Some(5),
            ..options()
        };
        let plan = LocalPlan::baseline(&options, dir.path(), &[0, 2]).unwrap();
        assert_eq!(
            plan.children.iter().map(|c| c.index).collect::<Vec<_>>(),
            [0, 2]
        );
        assert!(plan.alone && plan.preset == "none");
        assert!(plan.children.iter().all(|c| c.faults.is_empty()));
        let config = config_of(&plan, 1);
        assert_eq!(
            (config.shards.index, config.run.seed, config.run.start_with),
            (2, 5, 1)
        );
    }

    #[test]
    fn every_preset_has_a_baseline() {
        let dir = tempfile::tempdir().unwrap();
        let presets = registry::names(&registry::PRESETS);
        for preset in presets {
            let options = LocalOptions {
                preset: Some(preset.to_owned()),
                ..options()
            };
            let home = dir.path().join(preset);
            let plan = LocalPlan::baseline(&options, &home, &[0]);
            let plan = plan.unwrap_or_else(|error| panic!("{preset}: {error}"));
            assert_eq!(plan.preset, "none");
        }
    }

    #[test]
    fn impossible_flags_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let line = |options: LocalOptions| {
            LocalPlan::new(&options, dir.path(), &[])
                .unwrap_err()
                .to_string()
        };
        let none = LocalOptions {
            nodes: 0,
            ..options()
        };
        assert_eq!(line(none), "--nodes: 0 daemons; give 1 to 256");
        let beyond = LocalOptions {
            kills: vec!["4@round:1".parse().unwrap()],
            ..options()
        };
        assert_eq!(
            line(beyond),
            "--kill: there is no daemon 4; they are 0 to 3"
        );
        let missing = LocalOptions {
            cuts: vec!["1-4".parse().unwrap()],
            ..options()
        };
        assert_eq!(
            line(missing),
            "--cut: there is no daemon 4; they are 0 to 3"
        );
        let first = LocalOptions {
            lates: vec![LateAt { node: 0, round: 1 }],
            ..options()
        };
        assert_eq!(
            line(first),
            "--late: daemon 0 is the one that others join first"
        );
        let preset = LocalOptions {
            preset: Some("dilocco".to_owned()),
            ..options()
        };
        assert!(line(preset).starts_with("--preset: preset `dilocco` does not exist"));
    }

    #[test]
    fn labels_are_split_unless_a_daemon_would_take_its_own_away() {
        let task = TaskConfig::default();
        let plain = LocalOptions::default();
        assert_eq!(choose(&plain, &task), (Some(ShardKind::ByLabel), None));
        for flag in ["kill", "kill-every", "stop"] {
            let mut options = plain.clone();
            match flag {
                "kill" => options.kills.push("1@round:4".parse().unwrap()),
                "kill-every" => options.kill_every = Some("5s".parse().unwrap()),
                _ => options.stops.push("1@round:4".parse().unwrap()),
            }
            let (shards, note) = choose(&options, &task);
            assert_eq!(shards, Some(ShardKind::Iid), "{flag}");
            assert!(note.unwrap().contains("--shards by-label"), "{flag}");
            options.shards = Some(ShardKind::ByLabel);
            assert_eq!(choose(&options, &task), (Some(ShardKind::ByLabel), None));
        }
    }
}
