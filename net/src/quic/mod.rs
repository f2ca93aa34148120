//! QUIC over one UDP socket: the endpoint, its identities and limits, and a libp2p transport on it.
//!
//! Two kinds of connection share an [`Endpoint`]. The protocol negotiated in TLS (ALPN) tells them
//! apart:
//!
//! * [`Kind::Control`] (`libp2p`): the /quic-v1 transport of every libp2p peer. [`Transport`] passes
//!   these connections to a swarm.
//! * [`Kind::Bulk`] (`murmurate-bulk/1`): connections whose streams carry slices and states, without
//!   libp2p. [`Endpoint::dial_bulk`] opens one, [`Endpoint::accept_bulk`] returns inbound ones.
//!
//! Both kinds verify libp2p-tls certificates in both directions, obey the same [`Admission`] and
//! [`Limits`], and use the same port, NAT mapping, ciphers and congestion control.
//!
//! # Memory
//!
//! A remote controls how fast it sends and how slowly it reads, but not how much data waits for it:
//!
//! * Before it has proved its identity: at most [`Limits::handshakes_max`] handshakes at a time,
//!   each limited to [`Config::handshake_timeout`], and a token bucket for each source address.
//! * After that: at most [`Limits::control_per_peer`] and [`Limits::bulk_per_peer`] connections per
//!   peer, and [`Limits::connections_max`] in all. A connection buffers at most its receive window
//!   of data that arrived ([`Windows::control`] or [`Windows::bulk`]) and its send window of data
//!   not yet acknowledged (at most [`Windows::control`], or [`Windows::send`]). So a peer costs at
//!   most `control_per_peer * 2 * control + bulk_per_peer * (bulk + send)` bytes (448 MiB with the
//!   defaults), and only if the streams are not read.

mod addr;
mod admission;
mod arrivals;
mod batches;
mod buffers;
mod bulk;
mod bulk_tls;
mod certificate;
mod close;
mod config;
mod counts;
mod der;
mod dial;
mod endpoint;
mod error;
mod flights;
mod hybrid;
mod ids;
mod inbound;
mod limits;
mod listener;
mod muxer;
mod port;
mod punch;
mod registry;
mod route;
mod shared;
mod stats;
mod stream;
mod tls;
mod transport;
mod verifier;

pub use addr::{QuicAddr, multiaddr_of};
pub use admission::{Admission, Kind};
pub(crate) use arrivals::Arrivals;
pub use buffers::{BufferCap, SocketBuffers};
pub use bulk::BulkConnection;
pub(crate) use bulk_tls::{BulkTls, peer_of_certificates};
pub use close::CloseCode;
pub use config::{Config, Congestion, Windows};
pub use counts::InboundCounts;
pub use endpoint::{Endpoint, LinkStats};
pub use error::{Error, Mismatch};
pub use limits::{Limits, Unproven};
pub use muxer::{Muxer, Upgrade};
pub use stats::{PathStats, Traffic};
pub use stream::Stream;
pub use tls::{Cipher, remote_peer_id};
pub use transport::Transport;

pub use quinn::{
    ConnectionError, ReadError, ReadExactError, RecvStream, SendStream, StoppedError, VarInt,
    WriteError,
};
