//! Partial all-reduces in random groups (Prague): cells that each round draws from the roll.

use crate::cells::drawn;
use crate::common::{
    churn, crash, crash_and_return, intact, joins_in, loss, run_with, slow, waits_are_bounded,
};
use murmurate_sim::Report;

/// A quadratic with a different optimum for each machine.
const HETEROGENEOUS: &str = "kind = \"quadratic\"\ndim = 32\nheterogeneity = 0.3";
const TIMING: &str = "kind = \"timing\"\nparameters = 100_000";

/// Machines with the preset, with short deadlines.
fn text(peers: usize, rounds: u64, task: &str, more: &str) -> String {
    format!(
        "seed = 5\npeers = {peers}\nrounds = {rounds}\nsave_every_s = 0.5\nevaluate_every = 20\n\
         [task]\n{task}\n[strategy]\npreset = \"prague\"\n\
         [strategy.deadlines]\nfloor_ms = 200\ninitial_ms = 2000\nceiling_ms = 5000\n\
         [limits]\nvirtual_s = 3600.0\nevents = 8_000_000\n[compute]\nstep_ms = 20.0\n{more}"
    )
}

const QUIET: &str = "[network]\nlatency_ms = 5.0\ndetection_ms = 300.0\n";

/// A network that loses this part of all messages, and of all attempts at a slice, for good.
fn lossy(part: f64) -> String {
    format!("[network]\nlatency_ms = 5.0\njitter_ms = 20.0\nloss = {part}\nretry_ms = 50.0\n")
}

fn run(text: &str) -> Report {
    crate::common::run(text, None)
}

#[test]
fn the_mean_of_the_machines_finds_the_optimum_of_all() {
    let report = run(&text(8, 300, HETEROGENEOUS, QUIET));
    let counters = &report.counters;
    intact(&report, 8);
    assert_eq!(counters.voided + counters.waits_expired, 0, "{report}");
    assert_eq!(counters.rounds_ended, 8 * 300, "{report}");
    assert!(loss(&report) < 0.05, "{report}");
}

#[test]
fn a_round_leaves_what_random_groups_leave_of_the_variance() {
    let (peers, cell, rounds) = (16, 4, 4);
    let still = "[strategy.inner]\nlr = 1e-30\n";
    let text = text(
        peers,
        rounds,
        "kind = \"drawn\"",
        &format!("{QUIET}{still}"),
    );
    let text = text.replace("evaluate_every = 20", "evaluate_every = 1");
    let mut parts = Vec::new();
    for seed in 0..30 {
        let report = run_with(&text, Some(seed), &drawn);
        assert_eq!(report.counters.voided, 0, "{report}");
        let distances: Vec<f64> = report
            .samples
            .iter()
            .map(|s| s.consensus_distance)
            .collect();
        let squares = distances.iter().map(|distance| distance.powi(2));
        parts.extend(squares.clone().zip(squares.skip(1)).map(|(a, b)| b / a));
    }
    let found = parts.iter().sum::<f64>() / parts.len() as f64;
    let (n, g) = (f64::from(peers as u32), f64::from(cell));
    let law = (n - g) / (g * (n - 1.0));
    println!(
        "{} rounds leave {found:.3}, by the law {law:.3}: {parts:?}",
        parts.len()
    );
    assert!(parts.len() >= 75, "{parts:?}");
    // Four standard errors of some 90 rounds, whose parts deviate by 0.15.
    assert!((found - law).abs() < 0.065, "{found}, not {law}");
}

#[test]
fn a_peer_sends_what_an_all_reduce_in_its_group_takes() {
    // 8 in groups of 4, and 10 in groups of 4, 3 and 3.
    for (peers, sizes) in [(8, &[4, 4][..]), (10, &[4, 3, 3])] {
        let rounds = 30;
        let report = run(&text(peers, rounds, TIMING, QUIET));
        let counters = &report.counters;
        assert_eq!(counters.voided, 0, "{report}");
        // Each of g members sends g - 1 shards of its own, and its shard's mean to g - 1 others.
        let of = |g: &usize| 2.0 * (*g as f64 - 1.0);
        let models: f64 = sizes.iter().map(of).sum();
        let bytes = models * 400_000.0 * rounds as f64;
        let found = counters.bytes_encoded as f64 / bytes;
        println!("{peers} peers: {found} of the bytes of the formula");
        // The heads of slices are less than one part in a thousand.
        assert!((1.0..1.001).contains(&found), "{found}: {report}");
    }
}

/// How far apart the machines are at most, from round 100 on.
fn apart(report: &Report) -> f64 {
    let samples = report.samples.iter().filter(|sample| sample.round >= 100);
    samples.map(|s| s.consensus_distance).fold(0.0, f64::max)
}

#[test]
fn where_messages_are_lost_for_good_the_peers_stay_together() {
    // What training drives apart where no machine hears of another.
    let alone = text(8, 300, HETEROGENEOUS, QUIET).replace("prague", "none");
    let alone = apart(&run(&alone));
    for (part, most) in [(0.05, 0.2), (0.2, 0.35)] {
        for seed in crate::common::seeds(4) {
            let report = crate::common::run(&text(8, 300, HETEROGENEOUS, &lossy(part)), Some(seed));
            let counters = &report.counters;
            intact(&report, 8);
            assert!(waits_are_bounded(&report), "{report}");
            let (apart, rounds) = (apart(&report), Vec::from_iter(counters.places.values()));
            println!("{part} lost, seed {seed}: {apart:.3} apart, {alone:.3} alone; {rounds:?}");
            assert!(apart < most * alone, "{apart}, {alone} alone: {report}");
            // No machine runs ahead of the others by itself.
            assert!(rounds.iter().all(|rounds| **rounds > 150), "{rounds:?}");
            assert!(loss(&report) < 0.3, "{report}");
        }
    }
}

#[test]
fn a_machine_that_stalls_holds_its_groups_and_no_others() {
    // One step of one machine takes longer than all other rounds of the others.
    let stalls = slow(3, 4.0, 1000.0, 2.5);
    let report = run(&text(16, 150, TIMING, &format!("{QUIET}{stalls}")));
    let counters = &report.counters;
    intact(&report, 16);
    // Its group of the round waits for a deadline, and later ones do not wait for it.
    let mut rounds: Vec<u64> = counters.places.values().copied().collect();
    rounds.sort_unstable();
    assert!(rounds[1..].iter().all(|rounds| *rounds > 130), "{rounds:?}");
    assert!(rounds[0] < 100, "the machine stalled: {rounds:?}");
}

#[test]
fn a_death_in_any_phase_leaves_seven_that_finish() {
    for phase in ["train", "exchange", "apply"] {
        for delay in 0..12 {
            let fault = crash(2, 9, phase, f64::from(delay) * 0.002);
            let report = run(&text(8, 40, HETEROGENEOUS, &format!("{QUIET}{fault}")));
            let counters = &report.counters;
            assert_eq!(report.live, 7, "{phase} {delay}: {report}");
            assert_eq!(counters.rule_breaks, 0, "{report}");
            // Only its own group can lose the round in which it dies.
            assert!(counters.voided <= 3, "{phase} {delay}: {report}");
            assert!(waits_are_bounded(&report), "{report}");
        }
    }
}

#[test]
fn a_restarted_peer_takes_part_again() {
    for (delay, network) in [(0.003, QUIET.to_owned()), (0.003, lossy(0.2))] {
        let fault = crash_and_return(2, 9, "exchange", delay);
        let report = run(&text(8, 300, HETEROGENEOUS, &format!("{network}{fault}")));
        assert_eq!(report.live, 8, "{report}");
        assert!(loss(&report) < 0.3, "{report}");
        let rounds = &report.counters.places;
        println!("{rounds:?}");
        assert!(rounds.values().all(|rounds| *rounds > 100), "{rounds:?}");
    }
}

#[test]
fn a_newcomer_gets_a_place_and_is_drawn() {
    let text = text(9, 200, HETEROGENEOUS, &format!("{QUIET}{}", joins_in(8, 5)));
    for seed in 0..3 {
        let report = crate::common::run(&text, Some(seed));
        intact(&report, 9);
        let groups = &report.counters.places;
        assert_eq!(groups.len(), 9, "all were in groups: {groups:?}");
        assert!(groups.values().all(|rounds| *rounds > 80), "{groups:?}");
        let voided = report.counters.voided as f64 / report.counters.rounds_ended as f64;
        assert!(voided < 0.05, "{report}");
    }
}

#[test]
fn machines_that_die_and_come_back_stop_no_other() {
    let more = lossy(0.01) + &churn(2.0, 12.0, 3.0, 4);
    let text = text(24, 150, TIMING, &more);
    let report = run(&text.replace("step_ms = 20.0", "step_ms = 80.0"));
    let counters = &report.counters;
    println!("{report}");
    assert!(counters.faults.len() >= 3, "{report}");
    intact(&report, 24);
    let voided = counters.voided as f64 / counters.rounds_ended as f64;
    assert!(voided < 0.05, "{voided} of the rounds: {report}");
}
