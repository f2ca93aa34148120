//! The network: one task that owns a libp2p swarm, and the tasks of its streams.
//!
//! It handles peers, links, frames and bulk transfers. It does not look into frames and does not
//! know the [`Peer`](murmurate_protocol). [`start`] returns a handle for commands and a bounded
//! queue of events. A connection becomes a link after both ends have passed the gate
//! (`/murmurate/gate/2`). Links speak `/murmurate/control/1` (frames), `/murmurate/bulk/1` and
//! `/murmurate/vitals/1` (what daemons say of themselves). Discovery
//! uses identify, Kademlia (whose protocol name contains the run) and optionally mDNS. Peers behind
//! routers are reached through relays and hole punching.

mod behaviour;
mod bootstrap;
mod bucket;
mod config;
mod control;
mod discovery;
mod event;
mod gate;
mod handle;
mod ids;
mod lifecycle;
mod links;
mod listen;
mod nat;
mod outboxes;
mod paths;
mod quic;
mod record;
mod streams;
mod swarm;
mod unproven;
mod view;
mod vitals;
mod ways;
mod wiretap;

pub use config::{ListenFailure, NetConfig, NetError};
pub use event::NetEvent;
pub(crate) use gate::now_s;
pub use gate::{GateError, Membership};
pub use handle::{Net, start};
pub(crate) use ids::public_key;
pub use ids::{address_with_peer, from_libp2p, to_libp2p};
pub(crate) use nat::is_loopback;
pub use nat::{NatReport, Path, Reach, Reachability, Serving};
pub use outboxes::Busy;
pub use paths::{BulkPath, PathView};
pub use record::{public_network, verify};
pub use view::{LinkView, QuicView};
pub use vitals::{SeenElsewhere, SeenVitals, VitalsBoard};

#[cfg(test)]
pub(crate) mod tests;
