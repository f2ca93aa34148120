//! A swarm of random scenarios: each a point of the grid on a network with faults drawn from a seed.
//!
//! First safety, with faults: the invariants hold after every event. Then liveness, without: the
//! faults end well before the rounds do, and every machine that is up must finish; after an
//! all-reduce all of them hold the same bits.

mod draw;

pub use draw::{random_scenario, random_scenario_of};

use crate::error::SimError;
use crate::report::Report;
use crate::run::{RunOptions, run_scenario};
use crate::scenario::Scenario;
use crate::task::ToyTasksOnly;

/// A seed whose scenario did not hold.
#[derive(Debug, thiserror::Error)]
#[error("seed {seed}: {what}\nthe scenario, to be run by itself:\n{scenario}")]
pub struct SeedFailure {
    /// The seed.
    pub seed: u64,
    /// What did not hold.
    pub what: String,
    /// The scenario as TOML.
    pub scenario: String,
}

/// Runs the scenario of one seed.
///
/// # Errors
/// When an invariant breaks, an order fails, machines do not finish, or end with other bits.
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
    let run = || -> Result<Report, SimError> {
        let scenario = Scenario::from_toml(text, &file, &file)?;
        run_scenario(&scenario, &ToyTasksOnly, RunOptions::default())
    };
    let report = run().map_err(|error| error.to_string())?;
    // What a machine that lies sent is refused, and nothing else fails.
    let lies = report.counters.lies > 0;
    let refused = |failure: &&String| lies && failure.contains("BadSlice");
    if let Some(failure) = report.counters.failures.iter().find(|f| !refused(f)) {
        return Err(format!("an order failed: {failure}"));
    }
    // Faults have long ended when a run does.
    let agreed = scenario_agrees(text);
    if agreed && report.consensus_distance > 0.0 {
        let (live, apart) = (report.live, report.consensus_distance);
        return Err(format!("{live} peers end {apart} apart"));
    }
    Ok(report)
}

/// Whether peers end with the same bits: after an all-reduce.
fn scenario_agrees(text: &str) -> bool {
    let mixing = [
        "d-psgd",
        "choco",
        "d2",
        "ad-psgd",
        "osgp",
        "deepsqueeze",
        "gradient-tracking",
        "beer",
    ];
    mixing
        .iter()
        .all(|preset| !text.contains(&format!("preset = \"{preset}\"")))
}

/// Runs the scenarios of seeds one after the other; `done` hears of each that held.
///
/// # Errors
/// At the first seed that does not hold.
pub fn run_seeds(
    seeds: core::ops::Range<u64>,
    done: &mut dyn FnMut(u64, &Report),
) -> Result<(), Box<SeedFailure>> {
    for seed in seeds {
        let report = run_seed(seed)?;
        done(seed, &report);
    }
    Ok(())
}
