//! Aggregation rules: they combine contributions into one aggregate. Each has an entry
//! beside its code, and a line in [`RULES`].
//!
//! In an all-reduce the owner of a shard applies the rule to that shard alone: distances and norms
//! are those of the shard, as in the butterfly of Gorbunov et al. (ICML 2022), and each rule's
//! bound holds shard by shard.

mod bucketing;
mod bulyan;
mod by_coordinate;
mod centered_clip;
mod clipped_gossip;
mod geometric_median;
mod kernels;
mod kind;
mod krum;
mod means;
mod nearest;
mod private_mean;
mod quarantine;
mod secure_mean;

pub use bucketing::Bucketing;
pub use by_coordinate::{Median, TrimmedMean};
pub use centered_clip::CenteredClip;
pub use geometric_median::GeometricMedian;
pub use kind::{AggregationKind, AggregationSpec, Aggregator, Input, Nature};
pub use krum::Krum;
pub(crate) use private_mean::Noised;
pub use private_mean::Privacy;
pub use quarantine::{Norm, Quarantined, RMS_MAX, all_finite, norm, quarantine, quarantine_change};
pub(crate) use secure_mean::{MEMBERS_LEAST, Pairs, RANGE, open};

use crate::kind::Spec;
use crate::parameter::Parameters;

/// All rules. Random scenarios are drawn from the list: a new one goes to its end.
pub static RULES: &[&AggregationSpec] = &[
    &bulyan::SPEC,
    &centered_clip::SPEC,
    &clipped_gossip::SPEC,
    &means::FED_NOVA,
    &kind::GAUNTLET,
    &geometric_median::SPEC,
    &krum::SPEC,
    &by_coordinate::MEDIAN,
    &krum::MULTI,
    &nearest::SPEC,
    &means::NORM_CLIP,
    &by_coordinate::SIGN_MAJORITY,
    &by_coordinate::TRIMMED_MEAN,
    &means::SPEC,
    &private_mean::SPEC,
    &secure_mean::SPEC,
];

impl Spec for AggregationSpec {
    const KEY: &'static str = "aggregation.rule";

    fn list() -> &'static [&'static Self] {
        RULES
    }

    fn usual() -> &'static Self {
        &means::SPEC
    }

    fn keys(&self) -> Parameters {
        Parameters::new("aggregation", self.name, self.parameters)
    }
}

impl AggregationKind {
    /// The weighted mean.
    pub fn weighted_mean() -> Self {
        Self::of(&means::SPEC, &[]).expect("it has no parameters")
    }
}
