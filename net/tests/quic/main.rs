//! The QUIC endpoint with libp2p's own QUIC, with itself, and with hostile remotes, over loopback
//! only.
//!
//! Waits end with events. The time limit around each only ends a test that hangs.

#![allow(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

mod bulk;
mod echo;
mod hostile;
mod interop;
mod jumbo;
mod punch;
mod support;
