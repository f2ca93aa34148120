//! Swarms in rows and columns: exact agreement above one group, and what each failure costs.

use crate::common::{churn, crash_at, crash_for_at, joins_in, loss, one_state, slow};
use murmurate_sim::Report;

/// Machines in rows of `row`, with short deadlines.
fn text(peers: usize, row: usize, rounds: u64, task: &str, more: &str) -> String {
    format!(
        "seed = 3\npeers = {peers}\nrounds = {rounds}\nevaluate_every = 1000\n[task]\n{task}\n\
         [strategy]\npreset = \"diloco\"\n\
         [strategy.agreement]\ngrouping = \"grid\"\nrow = {row}\n\
         [strategy.deadlines]\nfloor_ms = 200\ninitial_ms = 1000\nceiling_ms = 5000\n\
         [network]\nlatency_ms = 5.0\nuplink_mbit = 1000.0\ndownlink_mbit = 1000.0\n\
         detection_ms = 300.0\n[compute]\nstep_ms = 5.0\n{more}"
    )
}

const QUADRATIC: &str = "kind = \"quadratic\"\ndim = 1000\nnoise = 0.0";
const TIMING: &str = "kind = \"timing\"\nparameters = 100_000";

fn run(text: &str) -> Report {
    crate::common::run(text, None)
}

#[test]
fn all_peers_hold_the_bits_of_the_mean_over_all() {
    let flat = text(9, 0, 6, QUADRATIC, "").replace("\"grid\"", "\"flat\"");
    let flat = loss(&run(&flat));
    for (peers, row) in [(9, 3), (9, 2), (9, 1), (9, 9)] {
        let report = run(&text(peers, row, 6, QUADRATIC, ""));
        assert_eq!(report.consensus_distance, 0.0);
        assert_eq!(report.counters.voided + report.counters.catch_ups, 0);
        // Only the order of the sums differs.
        let difference = (loss(&report) / flat - 1.0).abs();
        assert!(difference < 1e-5, "{peers} in rows of {row}: {difference}");
    }
}

#[test]
fn nothing_is_lost_without_a_failure() {
    for (peers, row) in [(16, 4), (17, 4), (81, 9), (100, 0)] {
        let report = run(&text(peers, row, 4, TIMING, ""));
        let counters = &report.counters;
        assert_eq!(counters.rounds_ended, 4 * peers as u64, "{report}");
        assert_eq!(counters.voided + counters.catch_ups, 0, "{report}");
        assert_eq!(counters.waits_expired, 0, "{report}");
        assert_eq!(counters.rule_breaks, 0, "{report}");
    }
}

/// One machine dies at each of many instants of a run: the others go on with the same bits, which the
/// simulator checks after every event, and no round of theirs is void.
fn deaths(peers: usize, row: usize, victims: impl Iterator<Item = usize> + Clone, every_ms: u64) {
    let ends = |rounds| run(&text(peers, row, rounds, TIMING, "")).virtual_s * 1000.0;
    // Three rounds, from the moment when the swarm is founded and all have begun.
    let (first, last) = (ends(1) as u64, ends(4) as u64);
    for victim in victims {
        for ms in (first..last).step_by(every_ms as usize) {
            let at_s = ms as f64 / 1000.0;
            let report = run(&text(peers, row, 6, TIMING, &crash_at(victim, at_s)));
            let (counters, what) = (&report.counters, format!("{victim} dies at {ms} ms"));
            assert_eq!(counters.voided, 0, "{what}: {report}");
            assert_eq!(counters.catch_ups, 0, "{what}: {report}");
            assert_eq!(counters.rule_breaks, 0, "{what}: {report}");
            let least = 6 * (peers as u64 - 1);
            assert!(counters.rounds_ended >= least, "{what}: {report}");
        }
    }
}

#[test]
fn a_death_at_any_instant_makes_no_round_void_9() {
    deaths(9, 3, 0..9, 7);
}

#[test]
fn a_death_at_any_instant_makes_no_round_void_16() {
    deaths(16, 4, [0, 5, 15].into_iter(), 11);
}

#[test]
fn a_death_at_any_instant_makes_no_round_void_81() {
    deaths(81, 9, [0, 40, 80].into_iter(), 97);
}

#[test]
fn a_newcomer_gets_a_place_and_contributes() {
    let report = run(&text(10, 3, 30, QUADRATIC, &joins_in(9, 3)));
    assert_eq!(report.consensus_distance, 0.0);
    assert_eq!(report.counters.voided, 0, "{report}");
    assert!(report.counters.rounds_ended > 9 * 30 + 10, "{report}");
}

#[test]
fn a_swarm_that_loses_and_gains_machines_all_the_time_voids_nothing() {
    // Of 81 machines one dies every four seconds and comes back five seconds later.
    let text = text(81, 9, 20, TIMING, &churn(4.0, 20.0, 5.0, 10));
    let text = text.replace("step_ms = 5.0", "step_ms = 100.0");
    let report = run(&text);
    let counters = &report.counters;
    assert!(counters.faults.len() >= 3, "{report}");
    assert_eq!(counters.voided, 0, "{report}");
    assert_eq!(counters.rule_breaks, 0, "{report}");
}

/// Nine in rows of three. One dies about every five seconds and is back two seconds later, before the
/// others notice that its link is gone.
fn under_kills(seed: u64) -> Report {
    let text = text(9, 3, 100, TIMING, &churn(5.0, 400.0, 2.0, 1))
        .replace("seed = 3", &format!("seed = {seed}"))
        .replace("step_ms = 5.0", "step_ms = 25.0")
        .replace("detection_ms = 300.0", "detection_ms = 2500.0")
        .replace("floor_ms = 200\ninitial_ms = 1000\nceiling_ms = 5000", "");
    run(&text)
}

#[test]
fn machines_that_die_and_come_back_all_the_time_hold_no_round_up_for_long() {
    // Seed 0: one that caught up took part in a round that the others had left, because nothing told it
    // how far they were, and its column was too small without it.
    for seed in [0, 1, 3, 6] {
        let report = under_kills(seed);
        let counters = &report.counters;
        assert_eq!(counters.voided, 0, "seed {seed}: {report}");
        assert_eq!(counters.rule_breaks, 0, "seed {seed}: {report}");
        // Without deaths it takes 25 s. The others notice each one after two seconds and wait once.
        let deaths = counters.faults.iter().filter(|f| f.what == "crash").count();
        let allowed = 26.0 + 3.0 * deaths as f64;
        assert!(report.virtual_s < allowed, "seed {seed}: {report}");
    }
}

#[test]
fn one_that_is_slow_for_some_seconds_stops_no_other() {
    // It fell rounds behind, and peers that waited for it never heard that the others had gone on.
    for at_s in [2.0, 3.0, 3.5, 5.1] {
        let slow = slow(10, at_s, 20.0, 3.0);
        let text = text(81, 9, 20, TIMING, &slow)
            .replace("\"diloco\"", "\"diloco\"\nsynchronization.inner_steps = 50")
            .replace("step_ms = 5.0", "step_ms = 10.0");
        let report = run(&text);
        let counters = &report.counters;
        assert_eq!(counters.voided, 0, "at {at_s}: {report}");
        assert!(counters.rounds_ended >= 20 * 80, "at {at_s}: {report}");
        assert!(report.virtual_s < 20.0, "at {at_s}: {report}");
    }
}

#[test]
fn a_row_that_is_gone_costs_its_contributions_and_no_round() {
    // A whole row dies at once: every column loses one member of four.
    let row = |peer: usize| crate::common::crash(peer, 3, "exchange", 0.01);
    let faults: String = (0..4).map(row).collect();
    let report = run(&text(16, 4, 12, QUADRATIC, &faults));
    assert_eq!(report.consensus_distance, 0.0, "{report}");
    assert_eq!(report.counters.rule_breaks, 0, "{report}");
}

/// The roll of 81 peers takes more bytes than this model. It once made every state too large to be taken.
#[test]
fn a_machine_that_was_away_takes_a_state_whose_roll_is_larger_than_the_model() {
    let fault = crash_for_at(30, 3.0, 3.0);
    let small = "kind = \"quadratic\"\ndim = 64";
    let report = run(&text(81, 9, 60, small, &fault));
    let counters = &report.counters;
    assert!(counters.catch_ups > 0, "{report}");
    one_state(&report, 81, "after the restart");
    assert_eq!(counters.voided + counters.rule_breaks, 0, "{report}");
}

/// A machine that sums rows for several shards may hear what a column decided, search for its bytes, and
/// only then finish a reduction of its own. That opened a second clock, and the search outlasted its own.
#[test]
fn a_reduction_that_ends_after_the_decision_opens_no_other_clock() {
    let report = run("seed = 29\n\
         peers = 23\n\
         rounds = 16\n\
         save_every_s = 0.5\n\
         [task]\n\
         kind = \"quadratic\"\n\
         dim = 48\n\
         [strategy]\n\
         preset = \"bsp\"\n\
         [strategy.compression]\n\
         codec = \"f32\"\n\
         [strategy.overlap]\n\
         fragments = 2\n\
         [strategy.agreement]\n\
         grouping = \"grid\"\n\
         row = 6\n\
         [strategy.deadlines]\n\
         floor_ms = 300\n\
         initial_ms = 1000\n\
         ceiling_ms = 5000\n\
         [limits]\n\
         virtual_s = 3600.0\n\
         events = 20_000_000\n\
         [network]\n\
         latency_ms = 13.0\n\
         jitter_ms = 4.0\n\
         loss = 0.01\n\
         uplink_mbit = 20.0\n\
         downlink_mbit = 50.0\n\
         labels = \"none\"\n\
         [[network.site]]\n\
         name = \"site-0\"\n\
         first = 0\n\
         last = 22\n\
         latency_ms = 1.0\n\
         uplink_mbit = 20.0\n\
         wan_uplink_mbit = 10.0\n\
         [compute]\n\
         step_ms = 10.0\n\
         spread = 1.0\n");
    assert!(report.counters.waits_expired > 0, "{report}");
}
