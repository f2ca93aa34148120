//! Random small scenarios with faults for a while, then none. Every live peer must finish. A
//! failure prints the scenario, which is enough to repeat it. `MURMURATE_SEED` sets the first seed
//! and `MURMURATE_SEEDS` the number of seeds, at least 1.

use murmurate_sim::Report;
use murmurate_sim::seeds::{SeedFailure, random_scenario, run_grid_of, run_seed, run_seed_of};
use rayon::prelude::*;

/// Presets whose peers wait for each other in every round.
const IN_STEP: [&str; 4] = ["local-sgd", "diloco", "bsp", "d-psgd"];

/// Presets that exchange in pairs or without waiting.
const PAIRWISE: [&str; 6] = [
    "choco",
    "d2",
    "ad-psgd",
    "osgp",
    "gradient-tracking",
    "beer",
];

#[test]
fn random_swarms_keep_their_invariants_and_finish() {
    hold(run_seed);
}

#[test]
fn random_grids_keep_their_invariants_and_finish() {
    hold(run_grid_of);
}

#[test]
fn random_swarms_in_step_keep_their_invariants_and_finish() {
    hold(|seed| run_seed_of(seed, &IN_STEP));
}

#[test]
fn random_swarms_of_pairwise_exchanges_keep_their_invariants_and_finish() {
    hold(|seed| run_seed_of(seed, &PAIRWISE));
}

#[test]
fn random_swarms_that_relay_sums_keep_their_invariants_and_finish() {
    hold(|seed| run_seed_of(seed, &["relaysgd"]));
}

/// Runs all seeds and fails with every scenario that did not hold.
fn hold(run: impl Fn(u64) -> Result<Report, Box<SeedFailure>> + Sync + Send) {
    let seeds = crate::common::seeds(50);
    let count = seeds.end - seeds.start;
    let runs: Vec<_> = seeds.into_par_iter().map(run).collect();
    let failures: Vec<String> = runs
        .into_iter()
        .filter_map(|run| run.err().map(|failure| failure.to_string()))
        .collect();
    let lines: Vec<&str> = failures.iter().filter_map(|f| f.lines().next()).collect();
    assert!(
        failures.is_empty(),
        "{} of {count} swarms failed:\n{}\n\nthe first:\n{}",
        failures.len(),
        lines.join("\n"),
        failures[0]
    );
}

/// Cases: a round given up half-way must stop its timers; an inbox must hold forty fragments
/// without losing mass; a goodbye that overtakes acknowledged slices must not make the receiver
/// reject them; a peer that took over another anchor after the last round must not give away its
/// old pinned state.
#[test]
fn seeds_that_once_broke_an_invariant_hold() {
    for seed in [66, 214, 230, 241, 1493, 1554, 1664, 4072] {
        if let Err(failure) = run_seed_of(seed, &IN_STEP) {
            panic!("{failure}");
        }
    }
}

/// Case: slices of a neighbour that is gone must not count for a session with its next life.
#[test]
fn pairwise_seeds_that_once_broke_an_invariant_hold() {
    for seed in [199] {
        if let Err(failure) = run_seed_of(seed, &PAIRWISE) {
            panic!("{failure}");
        }
    }
}

#[test]
fn a_seed_is_its_scenario_and_its_trace() {
    assert_eq!(random_scenario(7), random_scenario(7));
    assert_ne!(random_scenario(7), random_scenario(8));
    let trace = |seed| run_seed(seed).expect("it holds").trace;
    assert_eq!(trace(7), trace(7));
}
