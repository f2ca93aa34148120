//! Aggregation rules: they combine contributions into one aggregate. One file each.
//!
//! In an all-reduce the owner of a shard applies the rule to that shard alone: distances and norms
//! are those of the shard, as in the butterfly of Gorbunov et al. (ICML 2022), and each rule's
//! bound holds shard by shard.

mod bucketing;
mod bulyan;
mod centered_clip;
mod clipped_gossip;
mod fed_nova;
mod geometric_median;
mod kernels;
mod kind;
mod krum;
mod median;
mod nearest;
mod norm_clip;
mod quarantine;
mod sign_majority;
mod trimmed_mean;
mod weighted_mean;

pub use bucketing::Bucketing;
pub use bulyan::Bulyan;
pub use centered_clip::CenteredClip;
pub use clipped_gossip::ClippedGossip;
pub use fed_nova::FedNova;
pub use geometric_median::GeometricMedian;
pub use kind::AggregationKind;
pub use krum::Krum;
pub use median::Median;
pub use nearest::NearestMeans;
pub use norm_clip::NormClip;
pub use quarantine::{Norm, Quarantined, RMS_MAX, all_finite, norm, quarantine, quarantine_change};
pub use sign_majority::SignMajority;
pub use trimmed_mean::TrimmedMean;
pub use weighted_mean::{shares, weighted_mean};

/// A decoded contribution and its weight.
pub type Input<'a> = (&'a [f32], f32);

/// How much of the contributions a rule must see at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Each coordinate for itself: sub-slices give the same as the whole.
    Coordinate,
    /// All of them: it goes by norms or distances.
    Whole,
}

/// A rule that needs all contributions at the same time. Its inputs are finite (quarantined), in
/// `PeerId` order, and as long as `out`; weights are above zero.
pub trait Aggregator: Send {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

    /// How much it must see at once.
    fn scope(&self) -> Scope;

    /// The aggregate of `inputs` into `out`; zeros where there are none.
    ///
    /// # Panics
    /// If an input is shorter than `out`.
    fn aggregate(&mut self, inputs: &[Input<'_>], out: &mut [f32]);
}
