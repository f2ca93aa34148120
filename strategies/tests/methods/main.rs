//! Aggregation rules, optimizers, corrections and topologies, each against its paper, without peers.
#![expect(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

mod aggregate;
mod bandwidth_matching;
mod corrections;
mod inner;
mod outer;
mod spectra;
mod topologies;

use murmurate_protocol::InnerStep;
use murmurate_strategies::{Proceed, StepControl};

/// A number of inner steps.
struct Count(u64);

impl StepControl for Count {
    fn before(&mut self, step: InnerStep) -> Proceed {
        match step.0 < self.0 {
            true => Proceed::Go,
            false => Proceed::Stop,
        }
    }
}
