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

pub use forger::Forger;
pub use liar::{Acts, Liar};
pub(crate) use lie::parse;
pub use lie::{Lie, LieError, LieMode};
pub use store::LyingStore;
