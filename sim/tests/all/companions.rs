//! Control variates in the simulator, under the faults of every all-reduce. The invariants hold
//! after every event, and the result is the common optimum although the peers' data differ.
//! `neighbours.rs` tests trackers.

use crate::common::{QUIET, crash, crash_for};
use murmurate_sim::Report;

const PEERS: usize = 6;

/// Six machines for some rounds of 20 inner steps.
fn run(correction: &str, rounds: u64, seed: u64, more: &str) -> Report {
    let text = format!(
        "seed = {seed}\npeers = {PEERS}\nrounds = {rounds}\nsave_every_s = 0.3\n\
         [task]\nkind = \"quadratic\"\ndim = 32\nnoise = 0.0\nheterogeneity = 0.3\n\
         [strategy]\npreset = \"scaffold\"\n[strategy.synchronization]\ninner_steps = 20\n\
         [strategy.inner]\ncorrection = \"{correction}\"\n[strategy.overlap]\nfragments = 2\n\
         [strategy.deadlines]\nfloor_ms = 500\ninitial_ms = 4000\n\
         [compute]\nstep_ms = 5.0\n[limits]\nvirtual_s = 3600.0\n{more}"
    );
    crate::common::run(&text, None)
}

const LOSSY: &str = "[network]\nlatency_ms = 5.0\njitter_ms = 15.0\nloss = 0.03\n";

fn last_loss(report: &Report) -> f64 {
    let last = report.samples.last().expect("samples");
    assert_eq!(last.consensus_distance, 0.0, "{report}");
    last.loss.expect("a loss")
}

#[test]
fn variates_reach_the_optimum_where_plain_averaging_keeps_its_bias() {
    let plain = last_loss(&run("none", 150, 2, QUIET));
    let corrected = last_loss(&run("scaffold", 150, 2, QUIET));
    assert!(plain > 1e-3 && corrected < 1e-8, "{corrected:e} {plain:e}");
}

/// With loss most rounds miss a peer, and the mean gradient is that of the others, with or without
/// variates. So on average over the rounds variates help little. They still remove the drift: after
/// a round with all peers, plain averaging is no closer to the optimum than its bias.
#[test]
fn loss_and_jitter_break_nothing_and_variates_still_take_the_drift_out() {
    let mut nearest = [f64::MAX; 2];
    for seed in 0..6 {
        for (correction, nearest) in ["none", "scaffold"].into_iter().zip(&mut nearest) {
            let report = run(correction, 150, seed, LOSSY);
            assert_eq!(report.live, PEERS, "{report}");
            assert!(report.counters.pushes_lost > 50, "{report}");
            // A peer that missed one fragment of the round catches up after the sample.
            assert_eq!(report.consensus_distance, 0.0, "{report}");
            let losses = report.samples.iter().filter_map(|s| s.loss);
            *nearest = losses.fold(*nearest, f64::min);
        }
    }
    let [plain, corrected] = nearest;
    assert!(plain > 5e-4 && corrected < 1e-4, "{corrected:e} {plain:e}");
}

#[test]
fn a_crash_and_a_restart_leave_no_bias() {
    for phase in ["train", "exchange", "apply"] {
        let fault = crash_for(2, 9, phase, 0.004, 1.5);
        let report = run("scaffold", 200, 5, &format!("{QUIET}{fault}"));
        assert_eq!(report.live, PEERS, "{report}");
        assert!(last_loss(&report) < 1e-8, "{phase}: {report}");
    }
}

#[test]
fn a_death_in_any_phase_leaves_the_others_with_the_same_bits() {
    for phase in ["train", "exchange", "apply"] {
        for delay in [0.0, 0.008, 0.016, 0.024] {
            let fault = crash(1, 4, phase, delay);
            let report = run("scaffold", 20, 1, &format!("{QUIET}{fault}"));
            assert_eq!(report.live, PEERS - 1, "{report}");
            last_loss(&report);
        }
    }
}
