//! The Murmurate daemon: everything that touches sockets, threads, disks and people. The peer, the
//! arithmetic and the models are other crates; this one joins them.

pub mod api;
pub mod bulk;
pub mod config;
pub mod daemon;
pub mod depot;
pub mod faults;
pub mod lanes;
pub mod local;
pub mod net;
pub mod progress;
pub mod report;
mod spans;
pub mod store;
pub mod traffic;
