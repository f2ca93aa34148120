//! Compares presets on the same tasks and samples over several networks.
//!
//! Each run is a separate scenario, combined from parts of the comparison. Its result is a curve
//! over rounds, bytes and virtual seconds, and what the preset needed to reach the target.
//!
//! - `spec` reads the TOML file, `outcome` is one run, `report` is all runs as JSON.
//! - `html` and `plot` write a self-contained page.

mod html;
mod outcome;
mod plot;
mod report;
mod spec;

pub use outcome::{Outcome, Point, Reached};
pub use report::ComparisonReport;
pub(crate) use report::bytes;
pub use spec::{Comparison, Data, NetworkChoice, Target, TaskChoice};
pub(crate) use spec::{compose, merge, whole};

use crate::error::SimError;
use crate::run::{RunOptions, run_scenario};
use crate::task::TrainerFactory;
use spec::Cell;

/// Runs the whole comparison. Before each run it calls `progress` with the number of completed runs, the number of all
/// runs, and the next run. If a task refuses a preset or a run fails, the reason is in its [`Outcome`].
///
/// # Errors
/// When a part of the comparison cannot be a scenario whatever the preset.
pub fn run_comparison(
    comparison: &Comparison,
    factory: &dyn TrainerFactory,
    progress: &mut dyn FnMut(usize, usize, &str),
) -> Result<ComparisonReport, SimError> {
    let cells = comparison.cells();
    let mut outcomes = Vec::with_capacity(cells.len());
    for (done, cell) in cells.iter().enumerate() {
        progress(done, cells.len(), &cell.to_string());
        outcomes.push(play(comparison, cell, factory)?);
    }
    Ok(ComparisonReport::new(comparison, outcomes))
}

fn play(
    comparison: &Comparison,
    cell: &Cell<'_>,
    factory: &dyn TrainerFactory,
) -> Result<Outcome, SimError> {
    let scenario = match comparison.scenario(cell) {
        Ok(scenario) => scenario,
        Err(SimError::Strategy(refusal)) => return Ok(Outcome::failed(cell, refusal.to_string())),
        Err(error) => return Err(error),
    };
    match run_scenario(&scenario, factory, RunOptions::default()) {
        Ok(report) => Ok(Outcome::new(cell, &report)),
        Err(error @ (SimError::Scenario(_) | SimError::Task(_))) => Err(error),
        Err(error) => Ok(Outcome::failed(cell, error.to_string())),
    }
}
