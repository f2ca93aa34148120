//! What the daemons of a local swarm are told: one configuration each, derived from one.

use super::network::Place;
use super::shards::{ShardsArg, choose};
use super::{KillAt, KillEvery, LateAt, LocalError, StopAt};
use crate::config::{Config, ConfigError, Overrides};
use crate::faults::{Fault, FaultAction};
use murmurate_net::emulate::{LinkSpec, NatKind};
use murmurate_protocol::StepBudget;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Daemons of one local swarm: as many as one group holds.
const NODES_MAX: usize = murmurate_protocol::limits::GROUP_MEMBERS_MAX;

/// The accuracy that ends a run by default.
const TARGET_ACCURACY: f64 = 0.96;

/// Inner steps after which a run without `--rounds` ends at the latest.
const INNER_STEPS_LIMIT: u64 = 6_000;

/// Inner steps between looks at held data, about.
const EVALUATE_STEPS: u64 = 50;

/// Rounds after which such a run ends where a round is a time.
const TIMED_ROUNDS_LIMIT: u64 = 200;

/// Keys of `[strategy.inner]` that say how gradients are corrected.
const CORRECTION_KEYS: [&str; 3] = ["correction", "mu", "beta"];

/// What `murmurate local` is told.
#[derive(Clone, Debug, Default)]
pub struct LocalOptions {
    /// How many daemons.
    pub nodes: usize,
    /// `--preset`.
    pub preset: Option<String>,
    /// `--config`: what all daemons have in common.
    pub config: Option<PathBuf>,
    /// `--rounds`.
    pub rounds: Option<u64>,
    /// `--until-accuracy`.
    pub until_accuracy: Option<f64>,
    /// `--shards`.
    pub shards: Option<ShardsArg>,
    /// `--seed`.
    pub seed: Option<u64>,
    /// `--data`.
    pub data: Option<String>,
    /// `--device`.
    pub device: Option<String>,
    /// `--dir`.
    pub dir: Option<PathBuf>,
    /// `--kill`.
    pub kills: Vec<KillAt>,
    /// `--kill-every`.
    pub kill_every: Option<KillEvery>,
    /// `--stop`.
    pub stops: Vec<StopAt>,
    /// `--late`.
    pub lates: Vec<LateAt>,
    /// `--record`: where the daemons' records go.
    pub record: Option<PathBuf>,
    /// `--baseline`: seconds that the same daemons train with preset `none`; zero for not at all.
    pub baseline_s: f64,
    /// `--link`: every daemon behind such an emulated link.
    pub link: Option<LinkSpec>,
    /// `--nat`: every daemon but the first behind such an emulated router.
    pub nat: Option<NatKind>,
    /// The command line, for the report.
    pub args: Vec<String>,
}

impl LocalOptions {
    /// The accuracy to stop at: the one asked for; by default 0.96, but none where rounds were
    /// asked for or nobody exchanges anything.
    pub fn until_accuracy(&self, preset: &str) -> Option<f64> {
        let usual = self.rounds.is_none() && preset != "none";
        self.until_accuracy.or(usual.then_some(TARGET_ACCURACY))
    }

    fn check(&self) -> Result<(), LocalError> {
        let wrong = |flag, message| Err(LocalError::Flag { flag, message });
        if !(1..=NODES_MAX).contains(&self.nodes) {
            return wrong(
                "--nodes",
                format!("{} daemons; give 1 to {NODES_MAX}", self.nodes),
            );
        }
        if self
            .until_accuracy
            .is_some_and(|a| !(0.0..=1.0).contains(&a))
        {
            return wrong("--until-accuracy", "give a share from 0 to 1".to_owned());
        }
        let named = [
            ("--kill", self.kills.iter().map(|k| k.node).max()),
            ("--stop", self.stops.iter().map(|s| s.node).max()),
            ("--late", self.lates.iter().map(|l| l.node).max()),
        ];
        for (flag, node) in named {
            if let Some(node) = node.filter(|n| *n >= self.nodes) {
                let last = self.nodes - 1;
                return wrong(
                    flag,
                    format!("there is no daemon {node}; they are 0 to {last}"),
                );
            }
        }
        if self.lates.iter().any(|l| l.node == 0) {
            return wrong(
                "--late",
                "daemon 0 is the one that others join first".to_owned(),
            );
        }
        Ok(())
    }
}

/// What one daemon is told.
#[derive(Clone, Debug)]
pub(super) struct ChildPlan {
    pub(super) index: usize,
    pub(super) dir: PathBuf,
    pub(super) config: PathBuf,
    pub(super) faults: Vec<Fault>,
    pub(super) record: Option<PathBuf>,
    pub(super) late: Option<u64>,
    pub(super) threads: usize,
    /// Whether it announces an address by which others can join it.
    pub(super) joinable: bool,
}

/// What the whole swarm is told.
#[derive(Clone, Debug)]
pub(super) struct LocalPlan {
    pub(super) children: Vec<ChildPlan>,
    pub(super) program: PathBuf,
    pub(super) preset: String,
    pub(super) seed: u64,
    pub(super) alone: bool,
    pub(super) kill_every: Option<KillEvery>,
    /// What a person should know of the choices made for them.
    pub(super) note: Option<&'static str>,
}

impl LocalPlan {
    /// Writes one configuration per daemon below `dir`. `places` are theirs on an emulated network, if there
    /// is one.
    pub(super) fn new(
        options: &LocalOptions,
        dir: &Path,
        places: &[Place],
    ) -> Result<Self, LocalError> {
        options.check()?;
        let mut base = Base::new(options)?;
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
            alone: !base.config.strategy.exchange().facts().exchanges,
            kill_every: options.kill_every,
            note: choose(options, &base.config.task).1,
        })
    }

    /// The same daemons (those of `nodes`) with preset `none`, without faults and without end.
    pub(super) fn baseline(
        options: &LocalOptions,
        dir: &Path,
        nodes: &[usize],
    ) -> Result<Self, LocalError> {
        let mut plain = options.clone();
        plain.rounds = Some(u64::from(u32::MAX));
        plain.record = None;
        plain.kill_every = None;
        (plain.kills, plain.stops, plain.lates) = (Vec::new(), Vec::new(), Vec::new());
        let base = Base::new(&plain)?.alone()?;
        plain.shards = choose(options, &base.config.task).0;
        let mut plan = Self::with(&plain, &dir.join("baseline"), &base)?;
        plan.children.retain(|child| nodes.contains(&child.index));
        Ok(plan)
    }
}

fn table_from(text: &str) -> Result<Table, LocalError> {
    toml::from_str(text).map_err(|e: toml::de::Error| LocalError::Flag {
        flag: "--config",
        message: e.message().to_owned(),
    })
}

/// Whether a file that has been read already has `daemon.evaluate_every`: with its default a swarm whose rounds
/// are short would do little else.
fn says_when_to_evaluate(file: Option<&Path>) -> bool {
    let text = file.and_then(|file| std::fs::read_to_string(file).ok());
    let table = text.and_then(|text| text.parse::<Table>().ok());
    let daemon = table.as_ref().and_then(|table| table.get("daemon"));
    daemon.is_some_and(|daemon| daemon.get("evaluate_every").is_some())
}

/// What all daemons have in common.
struct Base {
    table: Table,
    config: Config,
    places: Vec<Place>,
    /// Whether the file given says how often to look at held data.
    says_when_to_evaluate: bool,
}

impl Base {
    fn new(options: &LocalOptions) -> Result<Self, LocalError> {
        let overrides = Overrides {
            preset: options.preset.clone(),
            seed: options.seed,
            rounds: options.rounds,
            data: options.data.clone(),
            device: options.device.clone(),
            no_mdns: true,
            ..Overrides::default()
        };
        let config = Config::load(options.config.as_deref(), &overrides)?;
        let table = table_from(&config.effective)?;
        Ok(Self {
            table,
            config,
            places: Vec::new(),
            says_when_to_evaluate: says_when_to_evaluate(options.config.as_deref()),
        })
    }

    /// The same with preset `none`: of the strategy only the inner optimizer stays, because what
    /// is said of exchanges would contradict it. So would a correction: it comes with what is exchanged.
    fn alone(mut self) -> Result<Self, LocalError> {
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
        let text = toml::to_string(&self.table).map_err(|e| LocalError::Flag {
            flag: "--baseline",
            message: e.to_string(),
        })?;
        self.config = Config::from_text(Path::new("the baseline"), &text, &Overrides::default())?;
        Ok(self)
    }

    fn child(
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
        // The first thing that does not go together is said here, not by N children.
        Config::from_text(&path, &text, &Overrides::default())?;
        std::fs::write(&path, &text).map_err(|e| ConfigError::Unwritable {
            path: path.clone(),
            reason: e.to_string(),
        })?;
        let kills = options
            .kills
            .iter()
            .filter(|k| k.node == index)
            .map(|k| Fault {
                action: FaultAction::Kill,
                round: k.round,
                phase: k.phase,
            });
        let stops = options
            .stops
            .iter()
            .filter(|s| s.node == index)
            .map(|s| Fault {
                action: FaultAction::Stop,
                round: s.round,
                phase: s.phase,
            });
        let faults = kills.chain(stops).collect();
        Ok(ChildPlan {
            index,
            dir: home,
            config: path,
            faults,
            record: options
                .record
                .as_ref()
                .map(|dir| dir.join(format!("{index}.rec"))),
            late,
            threads,
            joinable: self
                .places
                .get(index)
                .is_none_or(|p| !p.announce.is_empty()),
        })
    }

    fn table_of(&self, options: &LocalOptions, home: &Path, index: usize, late: bool) -> Table {
        let mut table = self.table.clone();
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
        // Whoever is away or has not begun when the others are done finds somebody to take the result over
        // from; this program ends them all.
        set("daemon", "stay", Value::Boolean(true));
        if !self.says_when_to_evaluate {
            set("daemon", "evaluate_every", count(self.evaluate_every()));
        }
        match shards {
            None => {}
            Some(ShardsArg::Iid) => set("shards", "kind", text("iid")),
            Some(ShardsArg::ByLabel) => set("shards", "kind", text("by-label")),
            Some(ShardsArg::Dirichlet(alpha)) => {
                set("shards", "kind", text("dirichlet"));
                set("shards", "alpha", Value::Float(alpha));
            }
        }
        set("shards", "index", count(index as u64));
        set("shards", "of", count(options.nodes as u64));
        set("network", "listen", list(place.map_or(&own, |p| &p.listen)));
        if let Some(place) = place {
            set("network", "announce", list(&place.announce));
            set("network", "relay", Value::Boolean(place.relay));
        }
        set("network", "join", Value::Array(Vec::new()));
        set("daemon", "dir", text(&home.to_string_lossy()));
        set("daemon", "http", text("127.0.0.1:0"));
        table
    }

    /// Rounds between looks at held data: a look costs about as much as a few inner steps.
    fn evaluate_every(&self) -> u64 {
        match self.config.strategy.budget() {
            StepBudget::Steps(steps) => (EVALUATE_STEPS / u64::from(steps.max(1))).max(1),
            StepBudget::Time(_) => 1,
        }
    }

    /// Rounds as told; without, as many as make a certain number of inner steps.
    fn rounds(&self) -> u64 {
        let counted = || self.config.strategy.rounds(INNER_STEPS_LIMIT);
        match self.config.run.rounds {
            0 => counted().unwrap_or(TIMED_ROUNDS_LIMIT),
            rounds => rounds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(line(none), "--nodes: 0 daemons; give 1 to 64");
        let beyond = LocalOptions {
            kills: vec!["4@round:1".parse().unwrap()],
            ..options()
        };
        assert_eq!(
            line(beyond),
            "--kill: there is no daemon 4; they are 0 to 3"
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
    fn the_target_is_for_those_who_can_reach_it() {
        assert_eq!(options().until_accuracy("diloco"), Some(TARGET_ACCURACY));
        assert_eq!(options().until_accuracy("none"), None);
        assert_eq!(
            LocalOptions {
                rounds: Some(3),
                ..options()
            }
            .until_accuracy("bsp"),
            None
        );
        let asked = LocalOptions {
            until_accuracy: Some(0.5),
            ..options()
        };
        assert_eq!(asked.until_accuracy("none"), Some(0.5));
    }
}
