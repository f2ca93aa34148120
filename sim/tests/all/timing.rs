//! Runs without tensors take as long as runs with tensors, and as long as the planner predicts.

use crate::common::{crash, play, shipped};
use murmurate_sim::Report;
use murmurate_sim::plan::{Cluster, Cost, Groups};
use murmurate_strategies::grid::Strategy;

/// Local SGD of a model of `task` on 8 machines, 80 Mbit/s and 20 ms apart.
fn local_sgd(task: &str, rounds: u64, more: &str) -> Report {
    among(8, task, rounds, more)
}

/// The same, on this number of machines.
fn among(peers: usize, task: &str, rounds: u64, more: &str) -> Report {
    let text = format!(
        "seed = 5\npeers = {peers}\nrounds = {rounds}\nevaluate_every = 1000\n[task]\n{task}\n\
         [strategy]\npreset = \"local-sgd\"\n\
         [strategy.deadlines]\nfloor_ms = 20000\ninitial_ms = 20000\nceiling_ms = 60000\n\
         [network]\nlatency_ms = 20.0\nuplink_mbit = 80.0\ndownlink_mbit = 80.0\n\
         [compute]\nstep_ms = 50.0\n{more}"
    );
    crate::common::run(&text, None)
}

#[test]
fn a_run_without_tensors_takes_as_long_as_one_with_them() {
    let with = local_sgd("kind = \"quadratic\"\ndim = 100_000\nnoise = 0.0", 6, "");
    let without = local_sgd("kind = \"timing\"\nparameters = 100_000", 6, "");
    let (a, b) = (with.virtual_s, without.virtual_s);
    assert!((a / b - 1.0).abs() < 0.01, "{a} s with, {b} s without");
    assert_eq!(with.counters.pushes, without.counters.pushes);
    assert_eq!(without.counters.rounds_ended, 48);
    assert!(without.samples.is_empty(), "there is nothing to look at");
}

#[test]
fn rounds_take_what_the_planner_says() {
    let rounds =
        |count| local_sgd("kind = \"timing\"\nparameters = 1_000_000", count, "").virtual_s;
    // The difference excludes the time to start a swarm.
    let simulated = (rounds(30) - rounds(10)) / 20.0;
    let cluster = Cluster::new(1e6, 50.0, "80mbit/20ms", 8, 0.8).expect("a cluster");
    let strategy = Strategy::preset("local-sgd").expect("a preset");
    let planned = Cost::of(&strategy, &cluster).expect("a cost").round_s;
    assert!(
        (simulated / planned - 1.0).abs() < 0.15,
        "{simulated} s simulated, {planned} s planned"
    );
}

#[test]
fn rounds_of_a_grid_take_what_the_planner_says() {
    for (peers, row) in [(100, 0), (144, 12)] {
        let grid = format!("[strategy.agreement]\ngrouping = \"grid\"\nrow = {row}\n");
        let task = "kind = \"timing\"\nparameters = 1_000_000";
        let [few, many] = [2, 8].map(|rounds| among(peers, task, rounds, &grid));
        let simulated = (many.virtual_s - few.virtual_s) / 6.0;
        let cluster = Cluster::new(1e6, 50.0, "80mbit/20ms", peers, 0.8).expect("a cluster");
        let text = format!("[agreement]\ngrouping = \"grid\"\nrow = {row}\n");
        let strategy = Strategy::parse(&text, Some("local-sgd")).expect("a strategy");
        let planned = Cost::of(&strategy, &cluster).expect("a cost");
        let Some(Groups::Grid(shape)) = planned.groups else {
            panic!("a grid is planned: {planned:?}");
        };
        let a_peer = |of: fn(&Report) -> u64| (of(&many) - of(&few)) as f64 / (6 * peers) as f64;
        let pushes = a_peer(|report| report.counters.pushes);
        let bytes = a_peer(|report| report.counters.bytes_encoded);
        let near = |a: f64, b: f64, by: f64| (a / b - 1.0).abs() < by;
        assert!(
            near(simulated, planned.round_s, 0.05),
            "{simulated} s simulated, {} s planned",
            planned.round_s
        );
        assert!(near(pushes, shape.pushes, 0.01), "{pushes} pushes");
        assert!(near(bytes, planned.bytes_up, 0.01), "{bytes} bytes");
    }
}

#[test]
fn deaths_without_tensors_leave_survivors_that_agree() {
    let crash = crash(3, 2, "exchange", 0.05);
    let report = local_sgd("kind = \"timing\"\nparameters = 100_000", 6, &crash);
    assert_eq!(report.live, 7, "{report}");
}

#[test]
fn a_thousand_timing_peers_cut_small_repeat_their_trace() {
    let mut small = shipped("timing-1000");
    (small.peers, small.rounds) = (200, 20);
    let [a, b, c] = [1, 1, 2].map(|seed| play(&small, Some(seed)));
    assert_eq!(a.trace, b.trace);
    assert_ne!(a.trace, c.trace);
    assert_eq!(a.live, 200);
}
