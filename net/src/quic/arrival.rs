//! Events of listeners for the transport.

use crate::quic::muxer::Muxer;
use libp2p::PeerId;
use libp2p::core::transport::ListenerId;
use std::net::SocketAddr;

/// An event of a listener.
pub(super) enum Arrival {
    /// A control connection that is ready for use.
    Control {
        listener: ListenerId,
        local: SocketAddr,
        remote: SocketAddr,
        peer: PeerId,
        muxer: Box<Muxer>,
    },
    /// The listener's socket failed, or was shut down.
    Stopped { listener: ListenerId },
}
