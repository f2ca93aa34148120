//! The story that the logs of four daemons tell.

use super::{DEMO_ROUNDS_MIN, Narrator, demo};
use crate::events::{Entry, Kind, NAME, VERSION};
use crate::local::LocalOptions;
use crate::local::plan::Base;
use crate::report::NodeReport;
use murmurate_protocol::{SortedSet, StepBudget};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Four daemons with logs, and their narrator. Time begins at 100 s.
struct Stage {
    dir: tempfile::TempDir,
    narrator: Narrator,
}

fn id(index: usize) -> String {
    format!("{index:064x}")
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let homes: Vec<PathBuf> = (0..4).map(|n| dir.path().join(n.to_string())).collect();
        homes
            .iter()
            .for_each(|home| std::fs::create_dir(home).unwrap());
        let sides = vec![vec![0, 1], vec![2, 3]];
        let mut narrator = Narrator::new(homes.iter().map(PathBuf::as_path), &sides);
        narrator.begins(100.0, &[0, 1, 2]);
        (0..4).for_each(|index| narrator.is_called(index, &id(index)));
        Self { dir, narrator }
    }

    fn log(&self, index: usize, time: f64, round: u64, kind: Kind) {
        let entry = Entry {
            v: VERSION,
            seq: 0,
            time,
            daemon: id(index),
            round,
            kind,
        };
        let file = self.dir.path().join(index.to_string()).join(NAME);
        let mut file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(file)
            .unwrap();
        writeln!(file, "{}", serde_json::to_string(&entry).unwrap()).unwrap();
    }

    fn decided(&self, index: usize, time: f64, round: u64, contributors: &[usize]) {
        let contributors = contributors.iter().map(|index| id(*index)).collect();
        let (fragment, ballot) = (0, 0);
        let kind = Kind::Decided {
            fragment,
            ballot,
            contributors,
        };
        self.log(index, time, round, kind);
    }

    fn ended(&self, index: usize, time: f64, round: u64) {
        let (seconds, digest) = (0.1, "d1".to_owned());
        self.log(index, time, round, Kind::RoundEnded { seconds, digest });
    }

    /// The new sentences.
    fn told(&mut self) -> Vec<String> {
        self.narrator.look();
        self.narrator.news()
    }
}

#[test]
fn the_first_round_is_told_when_all_have_ended_it() {
    let mut stage = Stage::new();
    assert_eq!(
        stage.told(),
        ["  0.0 s  Daemons 0, 1 and 2 start, each as a process of its own."]
    );
    stage.ended(0, 101.0, 0);
    stage.ended(1, 101.1, 0);
    assert!(stage.told().is_empty());
    stage.ended(2, 101.2, 0);
    stage.ended(0, 101.3, 1);
    let line = "  1.2 s  Daemons 0, 1 and 2 have trained for one round, averaged what they learned, and \
                hold the same model.";
    assert_eq!(stage.told(), [line]);
}

#[test]
fn a_death_is_told_with_how_the_others_went_on() {
    let mut stage = Stage::new();
    stage.told();
    stage
        .narrator
        .killed(110.0, (2, 10, "exchange"), SortedSet::from([0, 1]));
    let line = " 10.0 s  Daemon 2 was killed during the exchange of round 10.";
    assert_eq!(stage.told(), [line]);
    stage.ended(0, 109.9, 9);
    stage.decided(0, 112.0, 10, &[0, 1]);
    stage.ended(0, 112.0, 10);
    assert!(stage.told().is_empty(), "not before the last of the others");
    stage.ended(1, 112.1, 10);
    let line = " 12.1 s  The others decided round 10 without it after 2.1 s.";
    assert_eq!(stage.told(), [line]);
}

#[test]
fn training_that_was_sent_before_a_death_counts() {
    let mut stage = Stage::new();
    stage.told();
    stage
        .narrator
        .killed(110.0, (2, 10, "exchange"), SortedSet::from([0]));
    stage.decided(0, 110.5, 10, &[0, 2]);
    stage.ended(0, 110.5, 10);
    let lines = stage.told();
    assert!(
        lines[1].contains("the others decided round 10 with it."),
        "{lines:?}"
    );
    stage.decided(0, 112.6, 11, &[0]);
    stage.decided(0, 112.7, 12, &[0]);
    let line =
        " 12.6 s  The others waited for it in round 11, and decided that without it after 2.6 s.";
    assert_eq!(stage.told(), [line]);
    stage
        .narrator
        .killed(120.0, (1, 20, "train"), SortedSet::from([0]));
    stage.ended(0, 121.0, 20);
    let lines = stage.told();
    assert!(
        lines[1].contains("went on without a result of round 20 after 1.0 s"),
        "{lines:?}"
    );
}

#[test]
fn a_newcomer_is_told_until_its_training_counts() {
    let mut stage = Stage::new();
    stage.told();
    stage.narrator.comes_late(120.0, 3, 15);
    stage.log(3, 120.8, 16, Kind::CatchUp { to: 16, donors: 3 });
    stage.decided(0, 121.0, 16, &[0, 1, 2]);
    stage.decided(1, 122.5, 18, &[0, 1, 2, 3]);
    stage.decided(3, 122.6, 18, &[0, 1, 2, 3]);
    let lines = [
        " 20.0 s  Daemon 3 starts now, when the others are in round 15.",
        " 20.8 s  Daemon 3 fetches the state of round 16 from 3 daemons at the same time.",
        " 22.5 s  The training of daemon 3 counts from round 18 on, 2.5 s after its start.",
    ];
    assert_eq!(stage.told(), lines);
}

#[test]
fn a_split_is_told_from_the_cut_to_the_merge() {
    let mut stage = Stage::new();
    stage.told();
    stage.narrator.split(130.0, 40);
    stage.decided(0, 129.0, 39, &[0, 1, 2, 3]);
    stage.decided(0, 132.0, 40, &[0, 1]);
    stage.decided(3, 132.5, 40, &[2, 3]);
    stage.decided(2, 133.0, 41, &[2, 3]);
    let lines = [
        " 30.0 s  The network is cut in round 40: daemons 0 and 1 cannot reach daemons 2 and 3.",
        " 32.0 s  Daemons 0 and 1 go on among themselves after 2.0 s, from round 40 on.",
        " 32.5 s  Daemons 2 and 3 go on among themselves after 2.5 s, from round 40 on.",
    ];
    assert_eq!(stage.told(), lines);
    stage.narrator.healed(140.0, 55);
    stage.narrator.merged(141.0, 57, 2);
    let lines = [
        " 40.0 s  The network is whole again; the first daemon is in round 55.",
        " 41.0 s  Round 57 merged what both sides had learned: all hold the same model again.",
    ];
    assert_eq!(stage.told(), lines);
}

#[test]
fn the_end_says_what_the_survivors_hold() {
    let mut stage = Stage::new();
    stage.told();
    let report = |digest: &str| NodeReport {
        rounds: 110,
        test_accuracy: Some(0.9725),
        longest_wait_s: 2.01,
        digest: Some(digest.to_owned()),
        ..NodeReport::default()
    };
    let (one, same, other) = (report("a"), report("a"), report("b"));
    stage.narrator.ends(160.0, &[(0, &one), (1, &same)]);
    let line = " 60.0 s  Daemons 0 and 1 finished 110 rounds with the same model, bit by bit. It recognises \
                97.2 % of the test images. The longest wait for another daemon was 2.0 s.";
    assert_eq!(stage.told(), [line]);
    stage.narrator.ends(160.0, &[(0, &one), (1, &other)]);
    assert!(stage.told()[0].contains("with models that differ."));
    stage.narrator.ends(160.0, &[]);
    assert_eq!(stage.told(), [" 60.0 s  No daemon finished."]);
}

#[test]
fn the_demo_is_a_set_of_options_that_can_work() {
    let options = demo(LocalOptions::default());
    options.check().unwrap();
    assert!(options.demo);
    let base = Base::new(&options).unwrap();
    let budget = base.config.strategy.budget();
    assert_eq!(budget, StepBudget::Time(Duration::from_millis(350)));
    assert_eq!(base.config.strategy.name(), "diloco");
    assert_eq!(options.faults_of(2).len(), 1);
}

#[test]
fn a_demo_of_any_length_has_the_same_story() {
    for rounds in [DEMO_ROUNDS_MIN, 60, 110, 1000] {
        let options = demo(LocalOptions {
            rounds: Some(rounds),
            ..LocalOptions::default()
        });
        options.check().unwrap();
        assert_eq!(options.rounds, Some(rounds));
        let moments = [
            options.lates[0].round,
            options.partition.as_ref().unwrap().round,
            options.heal.unwrap().round,
            options.kills[0].round,
            rounds,
        ];
        let apart = moments.windows(2).all(|pair| pair[1] >= pair[0] + 6);
        assert!(apart && moments[0] >= 6, "{moments:?}");
    }
}
