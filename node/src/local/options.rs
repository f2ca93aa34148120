//! The flags of `murmurate local`, and checks for contradictions between them.

use super::args::{NODES_MAX, ShardsArg};
use super::kill_every::KillEvery;
use super::{Cut, FaultAt, HealAt, LateAt, LiarAt, LocalError, PartitionAt};
use crate::config::as_share;
use crate::faults::{Fault, FaultAction};
use crate::goal::Target;
use crate::lies::Lie;
use murmurate_net::emulate::{LinkSpec, NatKind};
use murmurate_tasks::TaskConfig;
use murmurate_tasks::config::DataSource;
use std::ffi::OsString;
use std::path::PathBuf;

/// The default accuracy that ends a run.
const TARGET_ACCURACY: f64 = 0.96;

/// The flags of `murmurate local`.
#[derive(Clone, Debug, Default)]
pub struct LocalOptions {
    /// `--nodes`: number of daemons.
    pub nodes: usize,
    /// `--quiet`: show errors and results only.
    pub quiet: bool,
    /// `--islands`: number of trainers of each daemon, if it is not that of the configuration.
    pub ranks: Option<u32>,
    /// `--preset`.
    pub preset: Option<String>,
    /// `--config`: file with the common configuration.
    pub config: Option<PathBuf>,
    /// `--rounds`.
    pub rounds: Option<u64>,
    /// `--until-accuracy`.
    pub until_accuracy: Option<f64>,
    /// `--until-loss`.
    pub until_loss: Option<f64>,
    /// `--shards`.
    pub shards: Option<ShardsArg>,
    /// `--seed`.
    pub seed: Option<u64>,
    /// `--data`.
    pub data: Option<String>,
    /// `--init`.
    pub init: Option<PathBuf>,
    /// `--device`.
    pub device: Option<String>,
    /// `--dir`.
    pub dir: Option<PathBuf>,
    /// `--kill`.
    pub kills: Vec<FaultAt>,
    /// `--kill-every`.
    pub kill_every: Option<KillEvery>,
    /// `--stop`.
    pub stops: Vec<FaultAt>,
    /// `--late`.
    pub lates: Vec<LateAt>,
    /// `--liar`.
    pub liars: Vec<LiarAt>,
    /// `--partition`.
    pub partition: Option<PartitionAt>,
    /// `--heal`.
    pub heal: Option<HealAt>,
    /// `--cut`: daemons that cannot reach each other.
    pub cuts: Vec<Cut>,
    /// `--record`: directory for the daemons' records.
    pub record: Option<PathBuf>,
    /// `--baseline`: seconds that the same daemons train with preset `none`; zero skips this.
    pub baseline_s: f64,
    /// `--link`: the emulated link of every daemon.
    pub link: Option<LinkSpec>,
    /// `--stranger`: let a peer without a certificate try what it can.
    pub stranger: bool,
    /// `--nat`: the emulated router of every daemon except the first.
    pub nat: Option<NatKind>,
    /// Of `--demo`: seconds of training in a round, in place of a number of inner steps.
    pub round_time_s: Option<f64>,
    /// `--demo`: tell the story of the run in sentences.
    pub narrated: bool,
    /// `--open-browser`: show the page of the swarm in a browser.
    pub open_browser: bool,
    /// After `--`: the training loop of every daemon.
    pub command: Vec<OsString>,
    /// The command line, for the report.
    pub args: Vec<String>,
}

impl LocalOptions {
    /// What every daemon must reach: what was requested; otherwise an accuracy of 0.96 on the bundled
    /// images, or nothing if rounds were requested or the preset has no exchange. What other data allow
    /// is not known.
    pub fn target(&self, preset: &str, task: &TaskConfig) -> Target {
        let asked = Target {
            accuracy: self.until_accuracy,
            loss: self.until_loss,
        };
        let known = matches!(task.data(), Some(DataSource::Bundled));
        let usual = self.rounds.is_none() && preset != "none" && known;
        if !usual || asked.is_set() {
            return asked;
        }
        Target {
            accuracy: Some(TARGET_ACCURACY),
            loss: None,
        }
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
        let accuracy = self.until_accuracy;
        if let Some(given) = accuracy.filter(|share| !(0.0..=1.0).contains(share)) {
            let message = format!("give a share from 0 to 1{}", as_share(given));
            return wrong("--until-accuracy", message);
        }
        if self.until_loss.is_some_and(|loss| !loss.is_finite()) {
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
    use murmurate_tasks::config::{AttachedConfig, ImageConfig};

    fn options() -> LocalOptions {
        LocalOptions {
            nodes: 4,
            ..LocalOptions::default()
        }
    }

    #[test]
    fn the_target_is_for_those_who_can_reach_it() {
        let task = &TaskConfig::default();
        let target = |options: LocalOptions, preset| options.target(preset, task);
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
            until_accuracy: Some(0.5),
            ..options()
        };
        assert_eq!(target(asked, "none").accuracy, Some(0.5));
        let loss = LocalOptions {
            until_loss: Some(0.5),
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
        assert!(!options().target("diloco", &images).is_set());
        let attached = TaskConfig::Attached(AttachedConfig::default());
        assert!(!options().target("diloco", &attached).is_set());
    }
}
