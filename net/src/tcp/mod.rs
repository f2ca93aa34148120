//! Bulk connections over TLS 1.3 and TCP, beside those over QUIC.
//!
//! On a clean, fast link the system's TCP moves a byte for a third of the CPU time that QUIC needs.
//! On a lossy or long one QUIC is better, so this is an offer and not a replacement:
//!
//! 1. The end that accepted a bulk connection over QUIC sends an [`Offer`] on it: a port and a
//!    token, which is for that peer alone.
//! 2. The other end may [`dial`](Endpoint::dial) the port. Both prove the same identities as on
//!    QUIC, with certificates of libp2p, and the token ties the connection to the one over QUIC.
//! 3. A [`Session`](crate::mux::Session) divides it into streams.
//!
//! # Memory
//!
//! A stranger can open TCP connections: at most [`Limits::handshakes_max`](crate::quic::Limits) of
//! them are in a handshake at a time, each for [`handshake_timeout`](crate::quic::Config) at most,
//! with a token bucket for each source. Only a peer with a token gets further, at most two
//! connections each. A session's memory is bounded as [`mux`](crate::mux) tells.

mod accept;
mod choice;
mod connection;
mod dial;
mod endpoint;
mod error;
mod holds;
mod info;
mod offer;
mod shared;
mod tokens;

pub use choice::{BulkChoice, UnknownBulkChoice};
pub use connection::Connection;
pub use endpoint::Endpoint;
pub use error::Error;
pub use info::Info;
pub use offer::{OFFER_BYTES, Offer};

/// The protocol that is negotiated in TLS.
const ALPN: &[u8] = b"murmurate-bulk-tls/1";

/// The listening end's answer to a good token.
const WELCOME: u8 = 1;

/// Plain bytes that TLS takes before it writes them to the socket.
const WRITE_BYTES: usize = 512 << 10;
