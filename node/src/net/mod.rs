//! The network: one task that owns a libp2p swarm, and the tasks of its streams.
//!
//! It handles peers, links, frames and bulk transfers. It does not look into frames and does not
//! know the [`Peer`](murmurate_protocol). [`start`] returns a handle for commands and a bounded
//! queue of events. A connection becomes a link after both ends have passed the gate
//! (`/murmurate/gate/2`). Links speak `/murmurate/control/1` (frames), `/murmurate/bulk/1` and
//! `/murmurate/vitals/1` (what daemons say of themselves). Daemons find others by the records that links
//! exchange, and optionally by mDNS. Peers behind routers are reached through relays and hole punching.

mod behaviour;
mod bootstrap;
mod bucket;
mod config;
mod control;
mod discovery;
mod event;
mod gate;
mod handle;
mod lifecycle;
mod links;
mod listen;
mod nat;
mod paths;
mod proxy;
mod quic;
mod record;
mod streams;
mod swarm;
mod unproven;
mod view;
mod vitals;
mod ways;
mod wiretap;

pub use config::NetConfig;
pub(crate) use config::{ListenFailure, NetError};
pub use event::NetEvent;
pub(crate) use gate::now_s;
pub use gate::{GateError, Membership};
pub use handle::{Net, start};
pub use nat::Path;
pub(crate) use nat::{NatReport, Reachability};
pub(crate) use paths::BulkPath;
pub use proxy::Proxy;
pub use record::{from_libp2p, verify};
pub(crate) use record::{is_loopback, public_key, public_network};
pub(crate) use view::LinkView;
pub(crate) use vitals::{SeenElsewhere, SeenVitals};

#[cfg(test)]
pub(crate) mod tests;
