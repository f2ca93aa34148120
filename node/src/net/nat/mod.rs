//! Peers behind routers: finding out whether others can dial this daemon, being reached through a
//! relay where they cannot, and leaving the relay behind by hole punching.
//!
//! The pieces: [`behaviours`] are libp2p's own protocols (AutoNAT v2, circuit relay v2, DCUtR),
//! [`reach`] weighs what they found, [`relays`] says where to reserve, [`connections`] chooses the
//! connection that carries a link, and [`network`] joins them to the network's task. What a
//! router does is not modelled here; see `murmurate_net::emulate` for one.

mod behaviours;
mod circuits;
mod connections;
mod network;
mod observed;
mod path;
mod punches;
mod quiet;
mod reach;
mod relays;
mod report;
mod traversal;

pub use path::Path;
pub use reach::{Reach, Reachability};
pub use report::{NatReport, Serving};

pub(super) use behaviours::{Behaviours, BehavioursEvent};
pub(super) use circuits::Members;
pub(super) use connections::{Connection, Connections, Sign};
pub(super) use path::{is_relayed, relay_of};
pub(super) use traversal::Traversal;

#[cfg(test)]
mod tests;
