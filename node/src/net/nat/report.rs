//! What a daemon reports of how it stands towards routers.

use crate::net::nat::reach::Reach;
use murmurate_protocol::PeerId;

/// What a daemon that relays does at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Serving {
    /// Peers that can be reached through it.
    pub reservations: u64,
    /// Circuits through it.
    pub circuits: u64,
    /// Requests that it refused.
    pub refused: u64,
}

/// How a daemon stands towards routers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatReport {
    /// Whether others can dial it, and how that is known.
    pub reach: Reach,
    /// Relays that others reach it through.
    pub relays: Vec<PeerId>,
    /// What it does for others, if it relays.
    pub serving: Option<Serving>,
    /// Holes that were punched.
    pub punched: u64,
    /// Attempts that failed.
    pub punches_failed: u64,
}
