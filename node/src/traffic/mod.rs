//! Bytes and times of the links, counted and measured where they pass. Bulk transfer and the network both
//! report here; neither needs the other for it.

mod counters;
mod meters;

pub use counters::{CounterSnapshot, Counters, Traffic};

pub(crate) use counters::{Tally, WireCells};
pub(crate) use meters::{LinkMeters, Reading};
