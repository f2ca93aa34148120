//! The gate: until both ends of a connection have proven that they are members, only the gate's own
//! protocol and ping are spoken on it.

mod admission;
mod gated;
mod handshake;
mod membership;
mod news;
mod state;
mod step;
#[cfg(test)]
pub(super) mod tests;

pub(super) use gated::{Gated, Members};
pub use membership::Membership;
pub(crate) use membership::now_s;
pub(super) use state::Gate;
pub use step::GateError;
pub(super) use step::Passed;
