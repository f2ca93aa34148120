//! Support for peers behind routers: it determines whether others can dial this daemon, makes it
//! reachable through a relay if not, and replaces relayed connections by direct ones through hole
//! punching. Where two members cannot reach each other and others can, one of those carries their link.
//!
//! [`behaviours`] contains libp2p's protocols (AutoNAT v2, circuit relay v2, DCUtR), [`reach`]
//! evaluates their results, [`relays`] chooses where to reserve, [`gaps`] says which links are
//! missing, [`connections`] chooses the connection that carries a link, and [`network`] connects
//! these to the network's task.
//! `murmurate_net::emulate` emulates routers for tests.

mod behaviours;
mod connections;
mod gaps;
mod network;
mod reach;
mod relays;
mod traversal;

pub use connections::Path;
pub(crate) use reach::{NatReport, Reachability};

pub(super) use behaviours::{Behaviours, BehavioursEvent, agent};
pub(super) use connections::{Connection, Connections, Sign, relay_of};
pub(super) use traversal::Traversal;

#[cfg(test)]
mod tests;
