//! An island of built-in trainers: what its ranks train, and that it is their mean.

use murmurate_protocol::{InnerStep, Participants, PeerId};
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::state::MemoryState;
use murmurate_strategies::{Proceed, Rank, StepControl, Trainer};
use murmurate_tasks::config::{DataSource, ImageConfig, LanguageConfig};
use murmurate_tasks::data::{ShardKind, Shards};
use murmurate_tasks::{DeviceChoice, TaskConfig, TaskError, build, build_island, take_steps};

const RANKS: u32 = 4;

fn images() -> TaskConfig {
    TaskConfig::ImageClassifier(ImageConfig::default())
}

fn inner() -> InnerKind {
    InnerKind::sgd(0.05)
}

fn shards(kind: ShardKind) -> Shards {
    let numbered = kind.is_numbered();
    Shards {
        kind,
        index: u32::from(numbered),
        of: if numbered { 2 } else { 1 },
        seed: 5,
        ..Shards::whole()
    }
}

fn island(task: &TaskConfig, shards: &Shards, ranks: u32) -> Result<Box<dyn Trainer>, TaskError> {
    build_island(task, &inner(), &DeviceChoice::Flex, 5, (shards, ranks))
}

fn rank(task: &TaskConfig, shards: &Shards, rank: Rank) -> Box<dyn Trainer> {
    let shards = shards.for_rank(rank);
    build(task, &inner(), &DeviceChoice::Flex, 5, &shards).unwrap()
}

fn values(trainer: &mut dyn Trainer) -> Vec<f32> {
    let mut values = vec![0.0; trainer.layout().len()];
    trainer.read(0, &mut values);
    values
}

#[test]
fn an_island_is_the_mean_of_four_trainers_with_its_parts_of_the_data() {
    for kind in [ShardKind::Dealt, ShardKind::Iid, ShardKind::ByLabel] {
        let (task, shards) = (images(), shards(kind));
        let peer = |number| PeerId::from_bytes([number; 32]);
        let among = Participants::new(peer(1), [1, 2].map(peer));
        let mut island = island(&task, &shards, RANKS).unwrap();
        island.deal(&among);
        let report = take_steps(island.as_mut(), 3).unwrap();
        let mut sums = vec![0.0; island.layout().len()];
        let mut samples = 0;
        let mut first = Vec::new();
        for number in Rank::all(RANKS) {
            let mut alone = rank(&task, &shards, number);
            alone.deal(&among);
            samples += take_steps(alone.as_mut(), 3).unwrap().samples;
            let mine = values(alone.as_mut());
            assert_ne!(mine, first, "each rank has other data");
            for (sum, value) in sums.iter_mut().zip(&mine) {
                *sum += f64::from(*value) / f64::from(RANKS);
            }
            first = mine;
        }
        assert_eq!((report.steps, report.samples), (3, samples));
        let found = values(island.as_mut());
        let error = found
            .iter()
            .zip(&sums)
            .map(|(a, b)| (f64::from(*a) - b).abs());
        assert!(error.fold(0.0, f64::max) < 1e-6, "{}", kind.name());
    }
}

#[test]
fn a_resumed_island_repeats_every_bit() {
    let (task, shards) = (images(), shards(ShardKind::Dealt));
    let mut first = island(&task, &shards, 2).unwrap();
    take_steps(first.as_mut(), 2).unwrap();
    let (mut state, kept) = (MemoryState::default(), values(first.as_mut()));
    first.save(&mut state).unwrap();
    take_steps(first.as_mut(), 2).unwrap();
    let mut again = island(&task, &shards, 2).unwrap();
    again.load(&state).unwrap();
    again.write(0, &kept);
    take_steps(again.as_mut(), 2).unwrap();
    assert_eq!(values(first.as_mut()), values(again.as_mut()));
    // With another number of ranks it goes on too.
    island(&task, &shards, 3).unwrap().load(&state).unwrap();
    island(&task, &shards, 1).unwrap().load(&state).unwrap();
}

#[test]
fn the_ranks_divide_every_kind_of_shard() {
    let labels: Vec<u16> = (0..997).map(|sample| sample % 10).collect();
    let kinds = [
        ShardKind::Own,
        ShardKind::Iid,
        ShardKind::ByLabel,
        ShardKind::Dirichlet { alpha: 0.5 },
    ];
    for kind in kinds {
        let whole = shards(kind).samples(&labels, 1).unwrap();
        let parts = Rank::all(RANKS).map(|r| shards(kind).for_rank(r).samples(&labels, 1).unwrap());
        let mut all: Vec<u32> = parts.flatten().collect();
        all.sort_unstable();
        assert_eq!(all, whole, "{}", kind.name());
        if kind != ShardKind::ByLabel {
            let whole = shards(kind).range(1003, 1).unwrap();
            let mut at = whole.start;
            for r in Rank::all(RANKS) {
                let part = shards(kind).for_rank(r).range(1003, 1).unwrap();
                assert!(part.start == at && !part.is_empty());
                at = part.end;
            }
            assert_eq!(at, whole.end);
        }
    }
}

#[test]
fn too_little_data_for_the_ranks_is_one_line() {
    let labels = [0; 7];
    let last = Rank { index: 7, of: 8 };
    for kind in [ShardKind::Dealt, ShardKind::Own] {
        let error = shards(kind).for_rank(last).samples(&labels, 1).unwrap_err();
        let line = error.to_string();
        assert!(
            line.contains("`island.ranks` = 8") && !line.contains('\n'),
            "{line}"
        );
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "to be or not to be ".repeat(40)).unwrap();
    let text = TaskConfig::LanguageModel(LanguageConfig {
        context: 32,
        ..LanguageConfig::of(DataSource::Path(file.path().to_owned()))
    });
    for kind in [ShardKind::Dealt, ShardKind::Own] {
        let error = island(&text, &shards(kind), 64).err().unwrap().to_string();
        assert!(
            error.contains("set fewer ranks") && !error.contains('\n'),
            "{error}"
        );
    }
}

/// Halves the learning by a correction, in every step of every rank.
struct Halved(u64);

impl StepControl for Halved {
    fn before(&mut self, step: InnerStep) -> Proceed {
        match step.0 < self.0 {
            true => Proceed::Go,
            false => Proceed::Stop,
        }
    }

    fn correct(&mut self, _: usize, _: &[f32], gradient: &mut [f32]) {
        gradient.iter_mut().for_each(|g| *g *= 0.5);
    }
}

#[test]
fn corrections_reach_the_gradients_of_all_ranks() {
    let (task, shards) = (images(), shards(ShardKind::Iid));
    let mut island = island(&task, &shards, 2).unwrap();
    let start = values(island.as_mut());
    island.steps(&mut Halved(1)).unwrap();
    let mut halves = vec![0.0; start.len()];
    for number in Rank::all(2) {
        let mut alone = rank(&task, &shards, number);
        alone.steps(&mut Halved(1)).unwrap();
        for (sum, value) in halves.iter_mut().zip(values(alone.as_mut())) {
            *sum += f64::from(value) / 2.0;
        }
    }
    let found = values(island.as_mut());
    let error = found
        .iter()
        .zip(&halves)
        .map(|(a, b)| (f64::from(*a) - b).abs());
    assert!(error.fold(0.0, f64::max) < 1e-6);
}
