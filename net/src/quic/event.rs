//! What the transport tells the swarm.

use crate::quic::error::Error;
use crate::quic::muxer::Muxer;
use futures::future::Ready;
use libp2p::PeerId;
use libp2p::core::transport::TransportEvent;

/// An inbound connection. Its handshake is done when the swarm hears of it.
pub type Upgrade = Ready<Result<(PeerId, Muxer), Error>>;

pub(super) type Event = TransportEvent<Upgrade, Error>;
