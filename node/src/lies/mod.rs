//! Lies on request: a daemon that breaks the protocol in a chosen way, so that tests and `murmurate
//! local --liar` can show what the others survive. It is the ordinary daemon with a thin layer where
//! its outputs leave:
//!
//! - `liar` changes, drops and adds messages and pushes between the peer and the network
//! - `forger` changes encoded bytes and pinned states between the Executor and the depot
//! - `store` changes what the depot serves to others
//! - `forged` and `noise` make messages up
//!
//! The peer and the Executor know nothing of it: they work honestly.

mod forged;
mod forger;
mod liar;
mod lie;
mod noise;
mod store;

pub(crate) use forger::Forger;
pub(crate) use liar::Liar;
pub use lie::Lie;
#[cfg(test)]
pub(crate) use lie::LieMode;
pub(crate) use lie::{LieError, parse};
pub(crate) use store::LyingStore;
