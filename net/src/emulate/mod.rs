//! Emulated links and NATs in user space: rate, delay, jitter, loss and queues, for UDP and TCP.
//!
//! # How daemons get onto the network
//!
//! They need not know of it. All of 127.0.0.0/8 is this machine (on Linux), so a [`Relay`] takes a block of it and
//! gives each daemon two addresses: an *inner* one, which the daemon binds, and a *public* one, which the relay
//! binds and the daemon announces. Whatever a daemon sends to a public address reaches the relay, which
//! knows the sender by its inner address, takes the datagram through the sender's router and link and the
//! receiver's link and router, and sends it on from the socket that is the sender's outer port:
//!
//! ```text
//! daemon A  127.64.0.129:4001 ──> 127.64.0.2:4002 (B's outer port, a socket of the relay)
//!                                   A's router, A's link up, B's link down, B's router
//!           A's outer port, 127.64.0.1:4001 ──> 127.64.0.130:4002  daemon B
//! ```
//!
//! So B sees A as A's outer port, answers to it, tells A and others of it, and everything in it is true: addresses
//! learned by identify, hole punching, a connection that moves to another port, congestion marks, segmentation
//! offload. It works for every UDP stack, libp2p's stock QUIC included. An encapsulating socket in the daemon (the
//! destination before each datagram) could do no more, and would have to be in each of them.
//!
//! What it asks of a daemon: bind the inner address, UDP and TCP, and announce nothing but the public one.
//! Ports of daemons on one network must differ (libp2p dials TCP from its listening port of *all* addresses,
//! by which alone the relay then knows it).
//!
//! # Parts
//!
//! [`LinkSpec`] is what people write, [`Shaper`] one direction of a link, [`Nat`] a router; all without sockets and
//! clocks, as is the network of them behind [`Relay`].

mod block;
mod counters;
mod deliver;
mod error;
mod fabric;
mod kernel;
mod loss;
mod nat;
mod outer;
mod pipes;
mod rate;
mod relay;
mod seat;
mod shaper;
mod shared;
mod spec;
mod tcp;

pub use counters::{FlowCounters, LinkCounters, Tally};
pub use error::{RelayError, SpecError};
pub use fabric::SeatId;
pub use nat::{MAPPING_LIFETIME, Nat, NatKind, Ports, Refusal};
pub use rate::Rate;
pub use relay::{KernelDrops, Relay};
pub use seat::Seat;
pub use shaper::{Fate, Shaper, ShaperSpec};
pub use spec::{Direction, LinkSpec};
