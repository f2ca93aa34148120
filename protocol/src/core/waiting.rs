//! What a peer waits for at this moment, for people. Nothing in the protocol depends on it.

use crate::core::Wait;
use crate::{FragmentId, PeerId, Time};

/// A wait that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// What is waited for.
    pub wait: Wait,
    /// The fragment that waits; the first one for waits of the whole round.
    pub fragment: FragmentId,
    /// Which peers, in `PeerId` order; empty where the wait is for peers that are not known yet, or
    /// for this peer's own work.
    pub peers: Vec<PeerId>,
    /// When the wait began.
    pub since: Time,
    /// When this peer gives up, or asks others.
    pub deadline: Time,
}
