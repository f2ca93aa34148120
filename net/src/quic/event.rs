//! Types of the events from the transport to the swarm.

use crate::quic::error::Error;
use crate::quic::muxer::Muxer;
use futures::future::Ready;
use libp2p::PeerId;
use libp2p::core::transport::TransportEvent;

/// An inbound connection. Its handshake is complete before the swarm receives it.
pub type Upgrade = Ready<Result<(PeerId, Muxer), Error>>;

pub(super) type Event = TransportEvent<Upgrade, Error>;
