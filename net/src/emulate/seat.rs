//! A daemon's place on an emulated network.

use super::fabric::SeatId;
use std::net::Ipv4Addr;

/// A daemon's place on an emulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Its number.
    pub id: SeatId,
    /// What the daemon must bind all its sockets to, UDP and TCP.
    pub inner: Ipv4Addr,
    /// What the others see it as.
    pub public: Ipv4Addr,
}
