//! The transport of model deltas between machines.
//!
//! It contains a libp2p [`Transport`](libp2p::core::Transport) over one quinn endpoint, so that
//! control streams, hole punching and bulk connections share one UDP socket, one NAT mapping, one
//! congestion control and one choice of ciphers. It also contains the congestion controller for
//! long lossy links, and emulated links and NATs to test all of this without privileges. It handles
//! bytes and peers only. Rounds and slices are known to `node`, and the choice of peers to
//! `protocol`.

pub mod congestion;
pub mod emulate;
pub mod free;
pub mod mux;
pub mod places;
pub mod quic;
pub mod tcp;
