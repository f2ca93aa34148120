//! Random scenarios: each is a strategy on a network with faults, drawn from a seed.
//!
//! The strategy is a preset with random changes of exchange, schedule, topology, codec and
//! fragments, as far as the grid accepts them. A second scenario of each seed is a swarm in rows and
//! columns.
//!
//! A scenario tests safety while there are faults: the invariants hold after every event. The
//! faults end long before the rounds do, and the rest tests liveness: every machine that is up must
//! finish, and after an all-reduce all machines hold the same bits.

mod draw;
mod grid;
mod point;

pub use draw::{random_scenario, random_scenario_of};
pub use grid::random_grid;

use crate::error::SimError;
use crate::report::Report;
use crate::run::{RunOptions, run_scenario};
use crate::scenario::Scenario;
use crate::task::ToyTasksOnly;
use murmurate_strategies::grid::Strategy;

/// A seed whose scenario failed.
#[derive(Debug, thiserror::Error)]
#[error("seed {seed}: {what}\nthe scenario, to be run by itself:\n{scenario}")]
pub struct SeedFailure {
    /// The seed.
    pub seed: u64,
    /// The error.
    pub what: String,
    /// The scenario as TOML.
    pub scenario: String,
}

/// Runs the scenario of one seed.
///
/// # Errors
/// If an invariant breaks, an order fails, machines do not finish, or their bits differ.
pub fn run_seed(seed: u64) -> Result<Report, Box<SeedFailure>> {
    run_scenario_of(seed, random_scenario(seed))
}

/// Runs the scenario of one seed with one of these presets.
///
/// # Errors
/// As [`run_seed`].
pub fn run_seed_of(seed: u64, presets: &[&str]) -> Result<Report, Box<SeedFailure>> {
    run_scenario_of(seed, random_scenario_of(seed, presets))
}

/// Runs the grid of one seed.
///
/// # Errors
/// As [`run_seed`].
pub fn run_grid_of(seed: u64) -> Result<Report, Box<SeedFailure>> {
    run_scenario_of(seed, random_grid(seed))
}

fn run_scenario_of(seed: u64, text: String) -> Result<Report, Box<SeedFailure>> {
    let outcome = run_text(seed, &text);
    outcome.map_err(|what| {
        Box::new(SeedFailure {
            seed,
            what,
            scenario: text,
        })
    })
}

fn run_text(seed: u64, text: &str) -> Result<Report, String> {
    let file = format!("seed-{seed}");
    let run = || -> Result<(Report, bool), SimError> {
        let scenario = Scenario::from_toml(text, &file, &file)?;
        let agrees = scenario_agrees(&scenario)?;
        let report = run_scenario(&scenario, &ToyTasksOnly, RunOptions::default())?;
        Ok((report, agrees))
    };
    let (report, agreed) = run().map_err(|error| error.to_string())?;
    // Only orders on slices of a lying machine may fail.
    let lies = report.counters.lies > 0;
    let refused = |failure: &&String| lies && failure.contains("BadSlice");
    if let Some(failure) = report.counters.failures.iter().find(|f| !refused(f)) {
        return Err(format!("an order failed: {failure}"));
    }
    // Faults end long before the run.
    if agreed && report.consensus_distance > 0.0 {
        let (live, apart) = (report.live, report.consensus_distance);
        return Err(format!("{live} peers end {apart} apart"));
    }
    Ok(report)
}

/// Set if peers must end with the same bits, because they agree on each round.
fn scenario_agrees(scenario: &Scenario) -> Result<bool, SimError> {
    let strategy = Strategy::from_table(scenario.strategy.clone(), None)?;
    Ok(strategy.exchange().agrees())
}

/// Runs both scenarios of each seed, one after the other. Calls `done` after each success.
///
/// # Errors
/// At the first seed that fails.
pub fn run_seeds(
    seeds: core::ops::Range<u64>,
    done: &mut dyn FnMut(u64, &Report),
) -> Result<(), Box<SeedFailure>> {
    for seed in seeds {
        for run in [run_seed, run_grid_of] {
            let report = run(seed)?;
            done(seed, &report);
        }
    }
    Ok(())
}
