//! A daemon's place on an emulated network.

use super::fabric::SeatId;
use std::net::Ipv4Addr;

/// A daemon's place on an emulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Index of the daemon.
    pub id: SeatId,
    /// The address to which the daemon must bind all its UDP and TCP sockets.
    pub inner: Ipv4Addr,
    /// The address that other daemons see.
    pub public: Ipv4Addr,
}
