//! Counters and measurements of the links. Bulk transfer and the network both use this module, so
//! that neither depends on the other.

mod counters;
mod meters;

pub use counters::{CounterSnapshot, Counters, Traffic};

pub(crate) use counters::{Tally, WireCells};
pub(crate) use meters::{LinkMeters, Reading};
