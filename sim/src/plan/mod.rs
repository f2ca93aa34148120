//! The planner: predicts what each preset achieves on a cluster.
//!
//! [`murmurate_strategies::plan`] computes the cost of a round; daemons use it, too.
//!
//! - `advice`: which presets to use. `choice`: those to try first, and what they cost in loss.
//!   `privacy`: what a promise of privacy costs. `report`: text and JSON.

mod advice;
mod choice;
mod privacy;
mod report;

pub use advice::{Advice, Learns, PresetPlan, Verdict};
pub use choice::{Choice, measured, measured_penalties};
pub use murmurate_strategies::plan::{Cluster, ClusterError, Cost, GridShape, Groups, Link};
pub use privacy::{NoiseFor, PrivacyCosts};
pub use report::PlanReport;

use murmurate_strategies::grid::registry::PRESETS;
use murmurate_strategies::grid::{Strategy, StrategyError};

/// Predicts every preset on a cluster.
///
/// # Errors
/// If a preset cannot work for a model of this size.
pub fn plan(cluster: &Cluster, learns: Learns) -> Result<PlanReport, StrategyError> {
    let presets = PRESETS.iter().map(|entry| {
        let strategy = Strategy::preset(entry.name)?;
        let cost = Cost::of(&strategy, cluster)?;
        Ok(PresetPlan {
            preset: entry.name,
            summary: entry.summary,
            advice: Advice::of(&strategy, &cost, cluster)?,
            cost,
        })
    });
    let presets = presets.collect::<Result<Vec<_>, StrategyError>>()?;
    let best = choice::choose(&presets, cluster, learns)?;
    Ok(PlanReport::new(cluster, presets, best))
}
