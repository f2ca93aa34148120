//! The plan of a local swarm: one configuration for each daemon, derived from a common one.

use super::base::Base;
use super::kill_every::KillEvery;
use super::network::Place;
use super::options::LocalOptions;
use super::split::choose;
use super::{ChildPlan, LocalError};
use crate::goal::Target;
use std::path::{Path, PathBuf};

/// The plan of the whole swarm.
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
    /// The sides of a split, in words.
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
            target: options.target(base.config.strategy.name(), &base.config.task),
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
            cuts: vec!["0-4".parse().unwrap()],
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
}
