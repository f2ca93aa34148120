//! The bulk plane: what carries model deltas between machines.
//!
//! A libp2p [`Transport`](libp2p::core::Transport) of our own over one quinn endpoint, so that control
//! streams, hole punching and bulk connections share one UDP socket, one NAT mapping, one congestion
//! control and one choice of ciphers; the congestion controller for long lossy links; and emulated links
//! and NATs to test all of it without privileges. It knows bytes and peers; it knows neither rounds nor
//! what a slice means (`node`), nor who should talk to whom (`protocol`).

pub mod congestion;
pub mod emulate;
pub mod quic;
