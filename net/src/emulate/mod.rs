//! Emulated links and NATs in user space: rate, delay, jitter, loss and queues, for UDP and TCP.
//!
//! # How daemons join the network
//!
//! Daemons need no support for it. On Linux all of 127.0.0.0/8 is this machine, so a [`Relay`]
//! takes a block of it and gives each daemon two addresses: an *inner* one, which the daemon binds,
//! and a *public* one, which the relay binds and the daemon announces. A datagram to a public
//! address reaches the relay. The relay knows the sender by its inner address, passes the datagram
//! through the sender's router and link and the receiver's link and router, and sends it from the
//! socket that is the sender's outer port:
//!
//! ```text
//! daemon A  127.64.0.129:4001 ──> 127.64.0.2:4002 (B's outer port, a socket of the relay)
//!                                   A's router, A's link up, B's link down, B's router
//!           A's outer port, 127.64.0.1:4001 ──> 127.64.0.130:4002  daemon B
//! ```
//!
//! B therefore sees A as A's outer port, answers to it, and tells others about it. Addresses from
//! identify, hole punching, connections that move to another port, congestion marks and
//! segmentation offload all work as on a real network, with every UDP stack, including libp2p's own
//! QUIC. A socket in the daemon that encapsulates datagrams could do no more, and every daemon
//! would need it.
//!
//! A daemon must bind the inner address for UDP and TCP, and announce only the public one. Ports of
//! daemons on one network must differ: libp2p dials TCP from its listening port of *all* addresses,
//! so the port alone identifies the daemon to the relay.
//!
//! # Parts
//!
//! [`LinkSpec`] is a link as people write it, [`Shaper`] is one direction of a link, and [`Nat`] is
//! a router. They and the network behind [`Relay`] use neither sockets nor clocks.

mod block;
mod counters;
mod deliver;
mod error;
mod fabric;
mod loss;
mod nat;
mod outer;
mod rate;
mod relay;
mod seats;
mod shaper;
mod shared;
mod spec;
mod tcp;

pub use counters::{FlowCounters, LinkCounters, Tally};
pub use error::{RelayError, SpecError};
pub use nat::{MAPPING_LIFETIME, Nat, NatKind, Ports, Refusal};
pub use rate::Rate;
pub use relay::{KernelDrops, Relay};
pub use seats::{Seat, SeatId};
pub use shaper::{Fate, Shaper, ShaperSpec};
pub use spec::{Direction, LinkSpec};
