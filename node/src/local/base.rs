//! The configuration that all daemons of a local swarm share, and what each of them adds.

use super::network::Place;
use super::options::LocalOptions;
use super::shards::ShardsArg;
use super::split::choose;
use super::{ChildPlan, LocalError};
use crate::config::{Config, ConfigError, Overrides};
use crate::membership;
use murmurate_protocol::{Grouping, StepBudget};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Inner steps after which a run without `--rounds` ends.
const INNER_STEPS_LIMIT: u64 = 6_000;

/// Approximate inner steps between two evaluations.
const EVALUATE_STEPS: u64 = 50;

/// Rounds after which a run without `--rounds` ends if rounds have a fixed duration.
const TIMED_ROUNDS_LIMIT: u64 = 200;

/// Keys of `[strategy.inner]` that correct gradients.
const CORRECTION_KEYS: [&str; 3] = ["correction", "mu", "beta"];

fn table_from(text: &str) -> Result<Table, LocalError> {
    toml::from_str(text).map_err(|e: toml::de::Error| LocalError::Flag {
        flag: "--config",
        message: e.message().to_owned(),
    })
}

/// Whether a file, which was read before, sets `daemon.evaluate_every`. With its default, a swarm
/// with short rounds would mostly evaluate.
fn says_when_to_evaluate(file: Option<&Path>) -> bool {
    let text = file.and_then(|file| std::fs::read_to_string(file).ok());
    let table = text.and_then(|text| text.parse::<Table>().ok());
    let daemon = table.as_ref().and_then(|table| table.get("daemon"));
    daemon.is_some_and(|daemon| daemon.get("evaluate_every").is_some())
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
    /// Whether the given file sets `daemon.evaluate_every`.
    pub(super) says_when_to_evaluate: bool,
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
            attached: !options.command.is_empty(),
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
            says_when_to_evaluate: says_when_to_evaluate(options.config.as_deref()),
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
        let text = toml::to_string(&self.table).map_err(|e| LocalError::Flag {
            flag,
            message: e.to_string(),
        })?;
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
    pub(super) fn found_run(&mut self, dir: &Path) -> Result<(), LocalError> {
        self.key = dir.join("run.key");
        if self.config.run.open || self.config.run.key.is_some() || self.key.exists() {
            return Ok(());
        }
        let created = std::fs::create_dir_all(dir);
        created.map_err(|e| LocalError::Directory {
            path: dir.to_owned(),
            reason: e.to_string(),
        })?;
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
        std::fs::create_dir_all(&home).map_err(|e| LocalError::Directory {
            path: home.clone(),
            reason: e.to_string(),
        })?;
        let late = options
            .lates
            .iter()
            .find(|l| l.node == index)
            .map(|l| l.round);
        let table = self.table_of(options, &home, index, late.is_some());
        let path = home.join("node.toml");
        let text = toml::to_string(&table).map_err(|e| LocalError::Flag {
            flag: "--config",
            message: e.to_string(),
        })?;
        // Checked here, so that an inconsistency is reported once and not by every child.
        let config = Config::from_text(&path, &text, &Overrides::default())?;
        let rate = config.strategy.learning_rate(config.run.rounds);
        rate.map_err(|e| LocalError::Flag {
            flag: "--config",
            message: e.to_string(),
        })?;
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
            split: options
                .partition
                .as_ref()
                .map(|partition| partition.of(index, options.heal, dir))
                .transpose()?,
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
        let text = |s: &str| Value::String(s.to_owned());
        let count = |n: u64| Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
        let alone = !self.config.strategy.exchange().facts().exchanges;
        let first = options.nodes - options.lates.len();
        let start_with = if late || alone { 1 } else { first as u64 };
        let (shards, _) = choose(options, &self.config.task);
        let list = |all: &[String]| Value::Array(all.iter().map(|a| text(a)).collect());
        let own = ["/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/0"].map(str::to_owned);
        let place = self.places.get(index);
        let mut set = |section: &str, key: &str, value: Value| {
            let inner = table
                .entry(section)
                .or_insert_with(|| Value::Table(Table::new()));
            if let Some(inner) = inner.as_table_mut() {
                inner.insert(key.to_owned(), value);
            }
        };
        set("run", "rounds", count(self.rounds()));
        set("run", "start_with", count(start_with));
        if let Some(ranks) = options.ranks {
            set("island", "ranks", count(ranks.into()));
        }
        // A daemon that is away or late when the others finish must find a peer to fetch the result
        // from. So all of them stay, and this program ends them.
        set("daemon", "stay", Value::Boolean(true));
        if !self.says_when_to_evaluate {
            set("daemon", "evaluate_every", count(self.evaluate_every()));
        }
        match shards {
            None => {}
            Some(ShardsArg::Dealt) => set("shards", "kind", text("dealt")),
            Some(ShardsArg::Iid) => set("shards", "kind", text("iid")),
            Some(ShardsArg::ByLabel) => set("shards", "kind", text("by-label")),
            Some(ShardsArg::Dirichlet(alpha)) => {
                set("shards", "kind", text("dirichlet"));
                set("shards", "alpha", Value::Float(alpha));
            }
        }
        let numbered = match shards {
            Some(split) => split != ShardsArg::Dealt,
            None => self.config.shards.kind.is_numbered(),
        };
        if numbered {
            set("shards", "index", count(index as u64));
            set("shards", "of", count(options.nodes as u64));
        }
        set("network", "listen", list(place.map_or(&own, |p| &p.listen)));
        if let Some(place) = place {
            set("network", "announce", list(&place.announce));
            set("network", "relay", Value::Boolean(place.relay));
            set("network", "payload_max", count(place.payload_max.into()));
            if let Some(port) = place.bulk_port {
                set("network", "bulk_port", count(port.into()));
            }
        }
        set("network", "join", Value::Array(Vec::new()));
        if !self.config.run.open && self.config.run.key.is_none() {
            set("run", "key", text(&self.key.to_string_lossy()));
        }
        set("daemon", "dir", text(&home.to_string_lossy()));
        set("daemon", "name", text(&format!("node-{index}")));
        set("daemon", "http", text("127.0.0.1:0"));
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
        let mut inner = table;
        for key in ["strategy", "agreement"] {
            let entry = inner
                .entry(key)
                .or_insert_with(|| Value::Table(Table::new()));
            match entry.as_table_mut() {
                Some(next) => inner = next,
                None => return,
            }
        }
        inner.insert("grouping".to_owned(), Value::String("grid".to_owned()));
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
