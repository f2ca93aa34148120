//! The choice between QUIC and TLS over TCP for the bulk streams to each peer.
//!
//! [`Chooser`] decides, as a value. [`Ways`] offers, dials and keeps the connections over TCP.

mod chooser;
mod handle;

pub(super) use handle::{Ways, accept};
