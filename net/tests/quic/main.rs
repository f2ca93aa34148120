//! The QUIC endpoint with itself and with hostile remotes, over loopback only. `interop/` has the tests with
//! libp2p's own QUIC.
//!
//! Waits end with events. The time limit around each only ends a test that hangs.

#![allow(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

mod bulk;
mod contract;
mod echo;
mod hostile;
mod jumbo;
mod punch;
mod support;
