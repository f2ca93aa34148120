//! The state of wait-avoiding group means: what this peer published, what it makes for others, and
//! what it waits for.

use super::means::Means;
use super::parts::Parts;
use crate::{PeerId, PullPlan, SliceId, Time, Topology};
use core::time::Duration;
use std::collections::BTreeSet;

/// One fragment in one round: the mean, and how it is got.
#[derive(Debug, Default)]
pub(in crate::exchange::neighbours) struct Sought {
    /// Members that were asked for it.
    pub(super) tried: BTreeSet<PeerId>,
    /// Whether this peer makes it and it is not here yet.
    pub(super) makes: bool,
    /// The mean, how many are in it, and whether this peer's parameters of the round are.
    pub(super) got: Option<(SliceId, u32, bool)>,
}

/// The rule of wait-avoiding group means.
pub(in crate::exchange::neighbours) struct GroupMeans {
    pub(super) topology: Box<dyn Topology>,
    pub(super) bounds: PullPlan,
    pub(super) parts: Parts,
    pub(super) means: Means,
    /// When the wait for a mean ends, from when on parts are not waited for, and after which pauses
    /// it is asked for again.
    pub(super) deadline: Time,
    pub(super) closes: Time,
    pub(super) pause: Duration,
}

impl GroupMeans {
    pub(in crate::exchange::neighbours) fn new(
        topology: Box<dyn Topology>,
        bounds: PullPlan,
    ) -> Self {
        Self {
            topology,
            bounds,
            parts: Parts::new(bounds),
            means: Means::default(),
            deadline: Time::ZERO,
            closes: Time::ZERO,
            pause: Duration::ZERO,
        }
    }
}
