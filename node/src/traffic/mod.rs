//! Counters and measurements of the links. Bulk transfer and the network both use this module, so
//! that neither depends on the other.

mod counters;

pub(crate) use counters::{
    CounterSnapshot, Counters, LinkMeters, Reading, Tally, Traffic, WireCells,
};
