//! What to combine into a fragment.

use crate::Order;

/// What to combine into a fragment of this peer's parameters.
#[derive(Debug)]
pub(super) struct Mixture {
    /// The order to do so; none where there is nothing to combine.
    pub(super) order: Option<Order>,
    /// How many neighbours' slices it takes, for the report of the mix.
    pub(super) neighbours: u32,
    /// The weight to report: the push-sum weight afterwards, or how many peers' parameters the mix
    /// is the mean of.
    pub(super) weight: f64,
}
