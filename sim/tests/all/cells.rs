//! Swarms in cells: means of parameters over small groups that each round deals along another axis.

use crate::common::{churn, crash_at, intact, joins_at, joins_in, run_with};
use murmurate_sim::{Report, TrainerRequest};
use murmurate_strategies::Trainer;
use murmurate_strategies::toy::ToyTask;

/// Machines in cells of `cell`, with short deadlines.
fn text(peers: usize, cell: usize, rounds: u64, task: &str, more: &str) -> String {
    format!(
        "seed = 3\npeers = {peers}\nrounds = {rounds}\nevaluate_every = 1000\n[task]\n{task}\n\
         [strategy]\npreset = \"moshpit\"\n\
         [strategy.agreement]\ngrouping = \"cells\"\ncell = {cell}\n\
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
fn nothing_is_lost_without_a_failure() {
    for (peers, cell) in [(16, 4), (17, 4), (64, 4), (100, 16)] {
        let report = run(&text(peers, cell, 6, TIMING, ""));
        let counters = &report.counters;
        assert_eq!(counters.rounds_ended, 6 * peers as u64, "{report}");
        assert_eq!(counters.voided + counters.catch_ups, 0, "{report}");
        assert_eq!(counters.waits_expired, 0, "{report}");
        assert_eq!(counters.rule_breaks, 0, "{report}");
    }
}

/// Values of a drawn model.
const DIM: usize = 200;

const DRAWN: &str = "kind = \"drawn\"";

/// A trainer whose first parameters are drawn for each machine, and whose steps are too short to move them.
pub(crate) fn drawn(request: &TrainerRequest<'_>) -> Result<Box<dyn Trainer>, String> {
    let task = ToyTask::Quadratic {
        dim: DIM,
        heterogeneity: 0.0,
        noise: 0.0,
        inner: *request.inner,
    };
    let mut trainer = task.build(request.peer, request.peers, request.seed);
    let value = |at: usize| {
        let seed = (request.peer * DIM + at) as u64 + 1;
        let mut bits = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    let values: Vec<f32> = (0..DIM).map(value).collect();
    trainer.write(0, &values);
    Ok(trainer)
}

/// The consensus distances at the start of each round, of machines that only average, and at the end.
fn distances(peers: usize, cell: usize, rounds: u64, more: &str) -> Vec<f64> {
    let still = "[strategy.inner]\nlr = 1e-30\n";
    let text = text(peers, cell, rounds, DRAWN, &format!("{more}\n{still}"));
    let text = text.replace("evaluate_every = 1000", "evaluate_every = 1");
    let report = run_with(&text, None, &drawn);
    assert_eq!(report.counters.voided, 0, "{report}");
    let samples = report
        .samples
        .iter()
        .map(|sample| sample.consensus_distance);
    samples.chain([report.consensus_distance]).collect()
}

#[test]
fn all_hold_the_mean_over_all_after_a_round_for_each_axis() {
    for (peers, cell, axes) in [(16, 4, 2), (64, 4, 3), (25, 5, 2)] {
        let distances = distances(peers, cell, axes, "");
        let (first, last) = (distances[0], distances[distances.len() - 1]);
        assert!(first > 1.0 && last < 1e-5 * first, "{distances:?}");
    }
}

#[test]
fn a_round_leaves_one_part_in_a_cell_of_the_variance() {
    for (peers, cell) in [(64, 4), (64, 8), (256, 16)] {
        let distances = distances(peers, cell, 1, "");
        let (n, g) = (peers as f64, cell as f64);
        // Of values drawn between -1/2 and 1/2. The distance is measured from the mean of those drawn.
        let before = DIM as f64 / 12.0 * (1.0 - 1.0 / n);
        let left = distances[0].powi(2) / before;
        let expected = (1.0 / g - 1.0 / n) / (1.0 - 1.0 / n);
        println!("{peers} peers in cells of {cell}: {left:.4}, expected {expected:.4}");
        assert!(
            (left / expected - 1.0).abs() < 0.1,
            "{left}, not {expected}"
        );
    }
}

#[test]
fn shards_may_be_encoded_coarsely() {
    for (codec, most) in [("bf16", 0.01), ("int8", 0.02)] {
        let codec = format!("[strategy.compression]\ncodec = \"{codec}\"\n");
        let distances = distances(16, 4, 2, &codec);
        let left = distances[distances.len() - 1] / distances[0];
        assert!(left < most, "{codec}: {distances:?}");
    }
}

#[test]
fn a_peer_sends_less_than_two_models_in_a_round() {
    let (peers, rounds) = (64, 6);
    let report = run(&text(peers, 16, rounds, TIMING, ""));
    let counters = &report.counters;
    let rounds = (peers as u64 * rounds) as f64;
    let models = counters.bytes_encoded as f64 / rounds / 400_000.0;
    // Cells of 64 peers along two axes hold 8.
    let expected = 2.0 * 7.0 / 8.0;
    assert!(
        models <= expected * 1.001,
        "{models} models a peer and round: {report}"
    );
    // Signs of life, records and the founding go by time, and not by round.
    let of = |name| counters.bytes_by_message.get(name).copied().unwrap_or(0);
    let words: u64 = ["cell-ready", "cell-form", "cell-passed", "vote"]
        .into_iter()
        .map(of)
        .sum();
    let control = words as f64 / rounds;
    assert!(
        words > 0 && control < 6_000.0,
        "{control} bytes: {:?}",
        counters.bytes_by_message
    );
}

#[test]
fn machines_that_die_and_come_back_and_lost_messages_stop_no_other() {
    let text = text(64, 8, 40, TIMING, &churn(3.0, 20.0, 5.0, 6))
        .replace("step_ms = 5.0", "step_ms = 50.0")
        .replace("latency_ms = 5.0", "latency_ms = 5.0\nloss = 0.01");
    let report = run(&text);
    let counters = &report.counters;
    println!("{report}");
    assert!(counters.faults.len() >= 3, "{report}");
    intact(&report, 64);
    let voided = counters.voided as f64 / counters.rounds_ended as f64;
    assert!(voided < 0.02, "{voided} of the rounds: {report}");
}

#[test]
fn a_newcomer_gets_a_place_and_contributes() {
    let text =
        text(17, 4, 60, QUADRATIC, &joins_in(16, 3)).replace("step_ms = 5.0", "step_ms = 20.0");
    let report = run(&text);
    println!("{report}");
    intact(&report, 17);
    let groups = &report.counters.places;
    assert_eq!(groups.len(), 17, "all were in cells: {groups:?}");
    assert!(groups.values().all(|rounds| *rounds > 20), "{groups:?}");
}

/// A member that was in a cell with the dead machine gives its place to the newcomer. Another member adds one,
/// and then a machine is alone in every second round, because 17 places do not fill cells of 4.
#[test]
fn a_newcomer_takes_a_place_and_the_cells_go_on() {
    let faults = crash_at(5, 4.0) + &joins_at(16, 45.0);
    let text = text(17, 4, 160, TIMING, &faults).replace("step_ms = 5.0", "step_ms = 50.0");
    let mut taken = 0;
    for seed in 0..8 {
        let report = crate::common::run(&text, Some(seed));
        intact(&report, 16);
        let voided = report.counters.voided as f64 / report.counters.rounds_ended as f64;
        assert!(voided < 0.01, "{report}");
        let mut rounds: Vec<u64> = report.counters.places.values().copied().collect();
        rounds.sort_unstable();
        assert_eq!(rounds.len(), 17, "all were in cells");
        // From 45 s on there are some 58 rounds, of which it is in no cell for the first few.
        assert!(rounds[1] > 20, "{rounds:?}");
        taken += usize::from(rounds[1] > 45);
        println!("{seed}: {rounds:?}");
    }
    assert!(
        (1..8).contains(&taken),
        "{taken} of 8 newcomers took the place"
    );
}

#[test]
fn a_third_of_the_machines_vanishes_at_once_and_the_others_go_on() {
    let dead = (0..64).filter(|peer| peer % 3 == 1);
    let faults: String = dead.map(|peer| crash_at(peer, 5.0)).collect();
    let text = text(64, 8, 30, TIMING, &faults).replace("step_ms = 5.0", "step_ms = 50.0");
    let report = run(&text);
    println!("{report}");
    intact(&report, 43);
    // Only in the round in which they vanish can cells that had formed lose their majority.
    assert!(report.counters.voided <= 43, "{report}");
}
