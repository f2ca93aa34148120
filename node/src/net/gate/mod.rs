//! The gate: until both ends of a connection have proven that they are members, only the gate's own
//! protocol and ping are spoken on it.

mod admission;
mod cell;
#[cfg(test)]
mod crowd;
mod error;
mod gated;
mod handshake;
#[cfg(all(test, target_os = "linux"))]
mod hostile;
mod mask;
mod membership;
mod messages;
mod news;
mod pending;
mod repeat;
mod state;
mod step;
#[cfg(test)]
pub(super) mod tests;

pub(super) use cell::Members;
pub use error::GateError;
pub(super) use gated::Gated;
pub use membership::Membership;
pub(crate) use membership::now_s;
pub(super) use pending::network_of;
pub(super) use state::Gate;
pub(super) use step::Passed;
