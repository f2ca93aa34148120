//! Aggregation rules: contributions in, one aggregate out. One file each.

mod quarantine;
mod weighted_mean;

pub use quarantine::{Quarantined, RMS_MAX, norm, quarantine};
pub use weighted_mean::{shares, weighted_mean};

use serde::{Deserialize, Serialize};

/// An aggregation rule: what `aggregation.rule` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AggregationKind {
    /// [`weighted_mean()`].
    #[default]
    WeightedMean,
}

impl AggregationKind {
    /// Its name in the configuration.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::WeightedMean => "weighted-mean",
        }
    }
}
