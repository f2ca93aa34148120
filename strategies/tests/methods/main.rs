//! Aggregation rules, optimizers, corrections and topologies, each against its paper, without peers.

mod aggregate;
mod bandwidth_matching;
mod corrections;
mod inner;
mod outer;
mod spectra;
mod topologies;
