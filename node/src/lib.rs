//! The Murmurate daemon: sockets, threads, disks and the interface to people. It joins the peer,
//! the arithmetic and the models, which are other crates.

pub mod api;
pub mod bulk;
pub mod config;
pub mod daemon;
mod depot;
mod descriptors;
pub mod directive;
pub mod events;
pub mod faults;
mod goal;
mod lanes;
pub mod lies;
mod lines;
pub mod local;
pub mod membership;
mod metrics;
pub mod net;
pub mod ports;
pub mod progress;
pub mod report;
mod spans;
pub mod splits;
pub mod store;
mod telemetry;
mod traffic;
pub mod unit;

#[cfg(test)]
mod tests;
