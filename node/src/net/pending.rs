//! Work of the network's task, kept in the order in which it arose.

use crate::net::NetEvent;
use crate::net::latch::Latch;
use libp2p::Stream;
use murmurate_protocol::PeerId;

/// An item of work, in order with the events.
#[derive(Debug)]
pub(super) enum Pending {
    /// Send an event to the driver.
    Event(NetEvent),
    /// Tell the driver that a link is down. No event of that link may follow.
    Down(PeerId, Latch),
    /// Begin to read an inbound control stream, because its link is now up.
    Read(PeerId, Stream),
}
