//! Own messages: while they are made, and while they are pushed.

use crate::{PeerId, SliceMeta};
use std::collections::BTreeSet;

/// A message that is being made.
#[derive(Clone, Copy, Debug)]
pub(in crate::exchange::neighbours) struct Passing {
    pub(super) to: PeerId,
    /// How many peers' parameters it is the mean of.
    pub(super) count: u32,
    /// Whether it goes to the parent.
    pub(super) up: bool,
}

/// A message whose push is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) meta: SliceMeta,
    /// How often it was pushed again.
    pub(super) again: u8,
}

/// Who gets a message of a fragment in a round.
#[derive(Debug, Default)]
pub(in crate::exchange::neighbours) struct Served {
    /// Peers that a message was made for.
    pub(super) served: BTreeSet<PeerId>,
    /// Peers that get one as soon as they have acknowledged an earlier one.
    pub(super) unserved: BTreeSet<PeerId>,
}
