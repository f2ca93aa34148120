//! A daemon's report about its reachability.

use crate::net::nat::reach::Reach;
use murmurate_protocol::PeerId;

/// Current load of a daemon that relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Serving {
    /// Peers that are reachable through it.
    pub reservations: u64,
    /// Open circuits through it.
    pub circuits: u64,
    /// Requests refused since the start.
    pub refused: u64,
}

/// Reachability of a daemon, its relays and the results of hole punching.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatReport {
    /// Whether others can dial it, with the reason.
    pub reach: Reach,
    /// Relays through which others reach it.
    pub relays: Vec<PeerId>,
    /// The load of its relay, if it relays for others.
    pub serving: Option<Serving>,
    /// Successful attempts at hole punching.
    pub punched: u64,
    /// Failed attempts at hole punching.
    pub punches_failed: u64,
}
