//! An all-reduce whose schedule is found again for links that the run measures: machines get slower in
//! mid-run, noise changes nothing, and deaths leave the same bits. The invariants hold after every event.

use crate::common::{crash, cut_off_in, learned, noisy_lines, waits_are_bounded};
use murmurate_protocol::{Certificate, LinkCodes, LinkPlan, LinkTable, Round};
use murmurate_sim::Report;
use std::collections::BTreeSet;

/// Rounds of an epoch in most runs.
const EVERY: u64 = 4;

fn run(text: &str) -> Report {
    crate::common::run(text, None)
}

/// Checks that `live` machines are up, and held the same bits when something was measured last.
fn together(report: &Report, live: usize, what: &str) {
    let last = crate::common::last(report);
    let state = (report.live, last.consensus_distance);
    assert_eq!(state, (live, 0.0), "{what}: {report}");
}

/// Six machines with a message of 4 MB, and lines of 1000 Mbit/s; `more` is the rest of the network.
fn timing(rounds: u64, architecture: &str, more: &str) -> Report {
    run(&format!(
        "seed = 9\npeers = 6\nrounds = {rounds}\nevaluate_every = 1\n\
         [task]\nkind = \"timing\"\nparameters = 1_000_000\n\
         [strategy]\npreset = \"local-sgd\"\n\
         [strategy.synchronization]\ninner_steps = 1\n\
         [strategy.compression]\ncodec = \"f32\"\n\
         [strategy.architecture]\n{architecture}\n\
         [strategy.deadlines]\nfloor_ms = 20000\ninitial_ms = 20000\nceiling_ms = 60000\n\
         [compute]\nstep_ms = 10.0\n\
         [network]\nlatency_ms = 2.0\nuplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n{more}"
    ))
}

fn measured() -> String {
    format!("schedule = \"synthesized\"\nlink_rounds = {EVERY}\nlink_latency_ms = 2.0")
}

/// A machine whose line carries `mbit` from a time on.
fn slow(peer: usize, at_s: f64, mbit: f64) -> String {
    format!(
        "[[network.trace]]\npeer = {peer}\nat_s = [{at_s:.3}]\n\
         uplink_mbit = [{mbit:.3}]\ndownlink_mbit = [{mbit:.3}]\n"
    )
}

/// Seconds of a round between two counts of rounds: runs of the same seed are the same as long as they last.
fn round_s(of: impl Fn(u64) -> Report, from: u64, to: u64) -> f64 {
    let [first, last] = [from, to].map(|rounds| {
        let report = of(rounds);
        assert_eq!(report.counters.rounds_ended, 6 * rounds, "{report}");
        report.virtual_s
    });
    (last - first) / (to - from) as f64
}

/// Seconds of a message of 4 MB by the planner's model, and of the butterfly, where one line is slow and rates
/// are known.
fn planned(slow_mbit: u32) -> (f64, f64) {
    let rate = |i: usize, j: usize| if i.min(j) == 0 { slow_mbit } else { 1000 };
    let rows = (0..6).map(|i| (0..6).map(|j| rate(i, j)).collect());
    let table = LinkTable::new(rows.collect()).expect("a square table");
    let plan = LinkPlan {
        every: EVERY as u16,
        latency_micros: 2_000,
        start: LinkCodes::of(&table),
    };
    let (trees, butterfly) = plan.micros(6, 4_000_000).expect("links of six");
    (trees as f64 * 1e-6, butterfly as f64 * 1e-6)
}

/// The rounds in which the schedule changed; all members agree on them and on what it costs.
fn changes(report: &Report) -> Vec<(u64, Certificate)> {
    let all = &report.counters.rescheduled;
    let rounds: BTreeSet<Round> = all.iter().map(|(_, round, _)| *round).collect();
    let of = |round: Round| {
        let mut here = all.iter().filter(|(_, other, _)| *other == round);
        let (_, _, first) = *here.next().expect("a change");
        assert!(
            here.clone().all(|(_, _, other)| *other == first),
            "{round}: {all:?}"
        );
        assert_eq!(here.count() + 1, report.live, "{round}: {all:?}");
        (round.0, first)
    };
    rounds.into_iter().map(of).collect()
}

#[test]
fn a_line_that_gets_slow_in_mid_run_is_measured_and_sent_around() {
    // After some fast rounds a line carries 2.5 MB/s.
    let fall = slow(3, 3.0, 20.0);
    let adapting = |rounds| timing(rounds, &measured(), &fall);
    let report = adapting(48);
    let changes = changes(&report);
    println!("{changes:?}\n{report}");
    // It falls in the first rounds, and two epochs later all go around it.
    assert!((1..=2).contains(&changes.len()), "{changes:?}");
    let (changed, _) = changes[0];
    assert!(changed > EVERY && changed <= 9 * EVERY, "{changes:?}");
    // Two epochs long after that, of which one round in four measures, and three rounds of one.
    let (trees, star) = planned(20);
    let epochs = round_s(adapting, 40, 48);
    let ordinary = round_s(adapting, 41, 44);
    let butterfly = round_s(
        |rounds| timing(rounds, "schedule = \"butterfly\"", &fall),
        40,
        48,
    );
    println!(
        "{ordinary:.2} s along trees, {trees:.2} by the model; {epochs:.2} with rounds that measure; {butterfly:.2} by the butterfly, {star:.2} by the model"
    );
    // Training, group and votes add some latencies; measured rates are told in steps of 9 %.
    assert!(
        (0.95 * trees..1.15 * trees + 0.05).contains(&ordinary),
        "{ordinary} {trees}"
    );
    assert!(ordinary < 0.75 * butterfly, "{ordinary} {butterfly}");
    assert!(epochs < 0.9 * butterfly, "{epochs} {butterfly}");
    assert_eq!(report.trace, adapting(48).trace, "it repeats to the bit");
}

#[test]
fn a_line_that_recovers_is_used_again() {
    let trace = "[[network.trace]]\npeer = 3\nat_s = [0.0, 60.0]\n\
                 uplink_mbit = [20.0, 1000.0]\ndownlink_mbit = [20.0, 1000.0]\n";
    let adapting = |rounds| timing(rounds, &measured(), trace);
    let changes = changes(&adapting(64));
    let (slow, fast) = (round_s(adapting, 17, 20), round_s(adapting, 57, 60));
    println!("{slow:.2} s, then {fast:.2} s; {changes:?}");
    assert!(changes.len() <= 3, "{changes:?}");
    assert!(slow > 1.5 && fast < 0.2, "{slow} {fast}");
}

#[test]
fn noise_of_a_tenth_does_not_make_the_schedule_flap() {
    // One line is slow, and all change twice a second.
    let trace = noisy_lines(400, |peer| if peer == 3 { 20.0 } else { 400.0 });
    let report = timing(80, &measured(), &trace);
    let changes = changes(&report);
    println!("{changes:?}");
    assert!((1..=2).contains(&changes.len()), "{changes:?}");
    assert!(
        changes.iter().all(|(round, _)| *round <= 3 * EVERY),
        "{changes:?}"
    );
}

/// A run with tensors, whose links are given so that trees are there from the beginning.
fn tensors(seed: u64, network: &str, more: &str) -> Report {
    let links = "link_mbit = [[0, 100, 5, 100, 100, 100], [100, 0, 5, 100, 100, 100], \
                 [5, 5, 0, 5, 5, 5], [100, 100, 5, 0, 100, 100], [100, 100, 5, 100, 0, 100], \
                 [100, 100, 5, 100, 100, 0]]";
    run(&format!(
        "seed = {seed}\npeers = 6\nrounds = 14\n\
         [task]\nkind = \"quadratic\"\ndim = 96\nheterogeneity = 1.0\n\
         [strategy]\npreset = \"local-sgd\"\n\
         [strategy.synchronization]\ninner_steps = 5\n\
         [strategy.inner]\noptimizer = \"sgd\"\nlr = 0.1\n\
         [strategy.architecture]\nschedule = \"synthesized\"\nlink_rounds = 5\n\
         link_latency_ms = 0.001\n{links}\n\
         [strategy.overlap]\nfragments = 3\n\
         [strategy.deadlines]\nfloor_ms = 300\ninitial_ms = 1000\nceiling_ms = 5000\n\
         [limits]\nvirtual_s = 600.0\n[compute]\nstep_ms = 10.0\nspread = 0.2\n\
         [network]\nlatency_ms = 1.0\n{network}\n{more}"
    ))
}

#[test]
fn all_hold_the_same_bits_and_learn() {
    for seed in 0..2 {
        for network in ["", "jitter_ms = 1.0", "jitter_ms = 1.0\nloss = 0.02"] {
            let report = tensors(seed, network, "");
            together(&report, 6, network);
            learned(&report, network);
            assert_eq!(report.trace, tensors(seed, network, "").trace, "{seed}");
            assert!(waits_are_bounded(&report), "{report}");
        }
    }
}

#[test]
fn a_death_in_any_phase_leaves_five_that_hold_the_same_bits() {
    let network = "jitter_ms = 0.5\ndetection_ms = 100.0";
    // Round five measures, round six goes along trees.
    for (round, peer) in [(5, 0), (5, 4)]
        .into_iter()
        .chain((0..6).map(|peer| (6, peer)))
    {
        for delay in [0.0, 0.002, 0.005, 0.01, 0.02, 0.04] {
            let fault = crash(peer, round, "exchange", delay);
            let report = tensors(2, network, &fault);
            together(&report, 5, &fault);
            assert_eq!(crate::common::last(&report).peers, 5, "{fault}: {report}");
            assert!(report.counters.rounds_ended >= 5 * 14, "{fault}: {report}");
        }
    }
}

#[test]
fn one_that_falls_silent_unnoticed_is_left_out_and_comes_back() {
    for peer in 0..6 {
        let fault = cut_off_in(peer, 6, 0.03, 4.0);
        let report = tensors(5, "detection_ms = 100000.0", &fault);
        together(&report, 6, &fault);
        assert!(report.counters.rounds_ended >= 5 * 14, "{peer}: {report}");
    }
}
