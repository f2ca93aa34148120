//! What the planner says of one preset.

use super::advice::Advice;
use murmurate_strategies::plan::Cost;
use serde::Serialize;

/// One preset.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PresetPlan {
    /// Its name.
    pub preset: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Cost of one round.
    #[serde(flatten)]
    pub cost: Cost,
    /// The advice.
    #[serde(flatten)]
    pub advice: Advice,
}
