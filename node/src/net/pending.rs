//! What the network's task still has to do, in the order in which it came up.

use crate::net::NetEvent;
use crate::net::gate::Gate;
use libp2p::Stream;
use murmurate_protocol::PeerId;

/// Something to do in order with the events.
#[derive(Debug)]
pub(super) enum Pending {
    /// Tell the driver.
    Event(NetEvent),
    /// Tell the driver that a link is down, after which nothing of it may follow.
    Down(PeerId, Gate),
    /// Begin to read an inbound control stream, now that its link is known to be up.
    Read(PeerId, Stream),
}
