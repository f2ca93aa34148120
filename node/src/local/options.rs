//! The flags of `murmurate local`, and checks for contradictions between them.

use super::args::{IslandsArg, KillEvery, NODES_MAX, shards_of};
use super::{Cut, FaultAt, HealAt, LateAt, LiarAt, LocalError, PartitionAt};
use crate::config::{Config, as_share};
use crate::faults::{Fault, FaultAction};
use crate::goal::Target;
use crate::lies::Lie;
use clap::Args;
use murmurate_net::emulate::{LinkSpec, NatKind};
use murmurate_tasks::config::DataSource;
use murmurate_tasks::data::ShardKind;
use std::ffi::OsString;
use std::path::PathBuf;

/// The default accuracy that ends a run.
const TARGET_ACCURACY: f64 = 0.96;

/// Seconds of the training for comparison, unless the user says so.
const BASELINE_S: f64 = 2.0;

/// What `--demo` decides itself.
const DEMO_DECIDES: [&str; 17] = [
    "nodes",
    "islands",
    "preset",
    "config",
    "until_accuracy",
    "until_loss",
    "shards",
    "kills",
    "kill_every",
    "lates",
    "liars",
    "partition",
    "heal",
    "cuts",
    "stops",
    "link",
    "nat",
];

/// Daemons are numbered from 0; daemon 0 is the one that the others join first.
#[derive(Clone, Debug, Default, Args)]
pub struct LocalOptions {
    /// Number of daemons
    #[arg(long, default_value_t = 4)]
    pub nodes: usize,
    /// Number of daemons and of trainers in each: 2x4 is two peers that are islands of four ranks
    #[arg(long, value_name = "PEERSxRANKS", conflicts_with = "nodes")]
    pub islands: Option<IslandsArg>,
    /// Strategy preset [default: diloco for images with mlp, else local-adam]; `murmurate strategies`
    /// lists all
    #[arg(long)]
    pub preset: Option<String>,
    /// Configuration for all daemons, as for `murmurate run`
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// End after this many rounds [default: enough for 6000 inner steps]
    #[arg(long)]
    pub rounds: Option<u64>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a comment would be printed above the flags")]
    pub goal: Goal,
    /// Division of the data: dealt, iid, by-label, dirichlet:ALPHA [default: by-label for images, but iid
    /// with --kill or --stop, because a lost daemon takes its classes with it]
    #[arg(long, value_parser = shards_of)]
    pub shards: Option<ShardKind>,
    /// Seed of model, data division and order
    #[arg(long)]
    pub seed: Option<u64>,
    /// Data: a path, or `bundled`
    #[arg(long, value_name = "PATH")]
    pub data: Option<String>,
    /// Model to start from, the same for all daemons: a file or folder as `murmurate export` writes
    #[arg(long, value_name = "PATH")]
    pub init: Option<PathBuf>,
    /// Device that trains: flex (CPU), wgpu, wgpu:N, cuda, cuda:N
    #[arg(long)]
    pub device: Option<String>,
    /// Parent of the daemons' directories [default: a temporary one, removed on success]
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Open the page of the swarm in a browser
    #[arg(long)]
    pub open_browser: bool,
    /// Show in about a minute what a swarm survives: a daemon that joins late, a network that is cut and
    /// whole again, and a daemon that is killed during an exchange, with a sentence for each. --rounds makes
    /// it shorter or longer than 110 rounds
    #[arg(long, conflicts_with_all = DEMO_DECIDES)]
    pub demo: bool,
    /// Show what `murmurate top` shows, of the first daemon that lives, in place of a line for each
    #[arg(long)]
    pub top: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub json: bool,
    /// Kill daemon N (SIGKILL) in round R: N@round:R[:train|exchange|apply]
    #[arg(long = "kill", value_name = "N@round:R")]
    pub kills: Vec<FaultAt>,
    /// Kill a random daemon (SIGKILL) at this interval and restart it after 2 s, until a daemon has
    /// completed all rounds: 5s, 500ms, 1min; --seed determines the choice
    #[arg(long, value_name = "TIME")]
    pub kill_every: Option<KillEvery>,
    /// Start daemon N when the others have reached round R
    #[arg(long = "late", value_name = "N@round:R")]
    pub lates: Vec<LateAt>,
    /// Let daemon N break the protocol, from round ROUND if one is given: `N@MODE[:ROUND]` with weight,
    /// poison, sign-flip, owner-lie, equivocate, propose, decided, behind, state, slot, withhold,
    /// silent, flood, random, ballot, void, rare or slow-donor; may be given several times. The results are
    /// those of the honest daemons
    #[arg(long = "liar", value_name = "N@MODE")]
    pub liars: Vec<LiarAt>,
    /// Split the swarm in round R: cut all links between the sides. Each side goes on, and after --heal
    /// they are merged by weight
    #[arg(long, value_name = "0,1|2,3@round:R")]
    pub partition: Option<PartitionAt>,
    /// Let the sides of --partition reach each other again when they are in round S
    #[arg(long, value_name = "@round:S")]
    pub heal: Option<HealAt>,
    /// Let daemons A and B not reach each other: A-B for the whole run, or A-B@START+LENGTH such as
    /// 2-3@5s+10s. With A>B only what A sends to B is lost. Their link then goes through another daemon. May
    /// be given several times
    #[arg(long = "cut", value_name = "A-B")]
    pub cuts: Vec<Cut>,
    /// Record the inputs of daemon N's peer in DIR/N.rec, for `murmurate sim --replay`
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// Stop daemon N (SIGSTOP) in round R
    #[arg(long = "stop", value_name = "N@round:R")]
    pub stops: Vec<FaultAt>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a comment would be printed above the flags")]
    pub emulated: Emulated,
    /// Let a peer without a certificate attack the daemons while they train
    #[arg(long)]
    pub stranger: bool,
    /// Afterwards train the same daemons with preset none for this many seconds, to compute
    /// utilization; 0 skips this [default: 2, or 0 with a training loop, which would be started again]
    #[arg(long, value_name = "SECONDS")]
    pub baseline: Option<f64>,
    /// After `--`: the training loop of every daemon, which attaches to it
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Show errors and results only
    #[arg(skip)]
    pub quiet: bool,
    /// Of `--demo`: seconds of training in a round, in place of a number of inner steps
    #[arg(skip)]
    pub round_time_s: Option<f64>,
    /// The command line, for the report
    #[arg(skip)]
    pub args: Vec<String>,
}

/// The accuracy or loss that ends the run.
#[derive(Args, Clone, Debug, Default)]
pub struct Goal {
    /// End when every daemon has reached this accuracy; exit with an error if one does not
    /// [default: 0.96 for the bundled images, but none with --rounds or preset none]
    #[arg(long, value_name = "SHARE")]
    pub until_accuracy: Option<f64>,
    /// End when every daemon has reached this loss, in nats; exit with an error if one does not
    #[arg(long, value_name = "LOSS")]
    pub until_loss: Option<f64>,
}

/// The network between the daemons.
#[derive(Args, Clone, Debug, Default)]
pub struct Emulated {
    /// Put every daemon behind an emulated link: RATE/RTT/LOSS, such as 50mbit/100ms/1%, then keys
    /// such as /queue=100ms,jitter=5ms,burst=8,up=20mbit. The path between two daemons consists of
    /// their two links
    #[arg(long, value_name = "RATE/RTT/LOSS")]
    pub link: Option<LinkSpec>,
    /// Put every daemon except the first behind an emulated router: none, full-cone,
    /// port-restricted, symmetric
    #[arg(long, value_name = "KIND")]
    pub nat: Option<NatKind>,
}

impl LocalOptions {
    /// The goal of every daemon: the requested one; otherwise an accuracy of 0.96 on the bundled
    /// images, or none if rounds were requested or the preset has no exchange. The accuracy that other
    /// data allow is not known.
    pub fn target(&self, config: &Config) -> Target {
        let asked = Target {
            accuracy: self.goal.until_accuracy,
            loss: self.goal.until_loss,
        };
        let known = matches!(config.task.data(), Some(DataSource::Bundled));
        let usual = config.run.rounds == 0 && config.strategy.name() != "none" && known;
        if !usual || asked.is_set() {
            return asked;
        }
        Target {
            accuracy: Some(TARGET_ACCURACY),
            loss: None,
        }
    }

    /// Seconds that the same daemons train with preset `none`; zero skips this.
    pub(super) fn baseline_s(&self) -> f64 {
        // A training loop would write its results again.
        let usual = if self.command.is_empty() {
            BASELINE_S
        } else {
            0.0
        };
        self.baseline.unwrap_or(usual)
    }

    /// The faults to start one daemon with: its kills, then its stops.
    pub(super) fn faults_of(&self, node: usize) -> Vec<Fault> {
        let kills = self.kills.iter().map(|at| (FaultAction::Kill, at));
        let stops = self.stops.iter().map(|at| (FaultAction::Stop, at));
        let of_node = kills.chain(stops).filter(|(_, at)| at.node == node);
        let fault = |(action, at): (_, &FaultAt)| Fault {
            action,
            round: at.round,
            phase: at.phase,
        };
        of_node.map(fault).collect()
    }

    /// The lies to start one daemon with; none for an honest one.
    pub(super) fn lies_of(&self, node: usize) -> Vec<Lie> {
        let of_node = self.liars.iter().filter(|liar| liar.node == node);
        of_node.map(|liar| liar.lie).collect()
    }

    /// Checks the flags that do not depend on a configuration.
    pub(super) fn check(&self) -> Result<(), LocalError> {
        let wrong = |flag, message| Err(LocalError::Flag { flag, message });
        if !(1..=NODES_MAX).contains(&self.nodes) {
            let message = format!("{} daemons; give 1 to {NODES_MAX}", self.nodes);
            return wrong("--nodes", message);
        }
        let accuracy = self.goal.until_accuracy;
        if let Some(given) = accuracy.filter(|share| !(0.0..=1.0).contains(share)) {
            let message = format!("give a share from 0 to 1{}", as_share(given));
            return wrong("--until-accuracy", message);
        }
        if self.goal.until_loss.is_some_and(|loss| !loss.is_finite()) {
            return wrong("--until-loss", "give a number: the loss in nats".to_owned());
        }
        let nodes = |most: Option<usize>| ("daemon", most.map(|n| n as u64), self.nodes as u64);
        // Without an end all rounds come.
        let rounds = self.rounds.filter(|rounds| *rounds > 0);
        let rounds = |most| ("round", most, rounds.unwrap_or(u64::MAX));
        let cut = self.cuts.iter().flat_map(|c| c.between).max();
        let split = self.partition.as_ref().map(|p| p.round);
        let named = [
            ("--kill", nodes(self.kills.iter().map(|k| k.node).max())),
            ("--stop", nodes(self.stops.iter().map(|s| s.node).max())),
            ("--late", nodes(self.lates.iter().map(|l| l.node).max())),
            ("--liar", nodes(self.liars.iter().map(|l| l.node).max())),
            ("--cut", nodes(cut)),
            ("--kill", rounds(self.kills.iter().map(|k| k.round).max())),
            ("--stop", rounds(self.stops.iter().map(|s| s.round).max())),
            ("--late", rounds(self.lates.iter().map(|l| l.round).max())),
            ("--partition", rounds(split)),
            ("--heal", rounds(self.heal.map(|h| h.round))),
        ];
        for (flag, (what, most, all)) in named {
            if let Some(number) = most.filter(|number| *number >= all) {
                let last = all - 1;
                let message = format!("there is no {what} {number}; they are 0 to {last}");
                return wrong(flag, message);
            }
        }
        if (0..self.nodes).all(|node| !self.lies_of(node).is_empty()) {
            return wrong("--liar", "no daemon is honest".to_owned());
        }
        if let Some(message) = self.partition.as_ref().and_then(|p| p.wrong(self.nodes)) {
            return wrong("--partition", message);
        }
        if let Some(heal) = self.heal
            && split.is_none_or(|from| from >= heal.round)
        {
            let message = "give --partition too, with an earlier round".to_owned();
            return wrong("--heal", message);
        }
        if self.lates.iter().any(|l| l.node == 0) {
            let message = "daemon 0 is the one that others join first".to_owned();
            return wrong("--late", message);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Overrides;
    use murmurate_tasks::TaskConfig;
    use murmurate_tasks::config::{AttachedConfig, ImageConfig};
    use std::path::Path;

    fn config(preset: &str, rounds: u64) -> Config {
        let text = format!("[run]\nrounds = {rounds}\n[strategy]\npreset = {preset:?}\n");
        Config::from_text(Path::new("node.toml"), &text, &Overrides::default()).unwrap()
    }

    fn options() -> LocalOptions {
        LocalOptions {
            nodes: 4,
            ..LocalOptions::default()
        }
    }

    #[test]
    fn the_target_is_for_those_who_can_reach_it() {
        let target = |options: LocalOptions, preset| {
            options.target(&config(preset, options.rounds.unwrap_or(0)))
        };
        let usual = Target {
            accuracy: Some(TARGET_ACCURACY),
            loss: None,
        };
        assert_eq!(target(options(), "diloco"), usual);
        assert!(!target(options(), "none").is_set());
        let rounds = LocalOptions {
            rounds: Some(3),
            ..options()
        };
        assert!(!target(rounds, "bsp").is_set());
        let asked = LocalOptions {
            goal: Goal {
                until_accuracy: Some(0.5),
                until_loss: None,
            },
            ..options()
        };
        assert_eq!(target(asked, "none").accuracy, Some(0.5));
        let loss = LocalOptions {
            goal: Goal {
                until_accuracy: None,
                until_loss: Some(0.5),
            },
            ..options()
        };
        let expected = Target {
            accuracy: None,
            loss: Some(0.5),
        };
        assert_eq!(target(loss, "diloco"), expected, "a loss takes its place");
    }

    #[test]
    fn own_data_have_no_target_unless_one_is_set() {
        let images = ImageConfig {
            data: DataSource::Path("photos".into()),
            ..ImageConfig::default()
        };
        let images = TaskConfig::ImageClassifier(images);
        let attached = TaskConfig::Attached(AttachedConfig::default());
        for task in [images, attached] {
            let mut config = config("diloco", 0);
            config.task = task;
            assert!(!options().target(&config).is_set());
        }
    }
}
