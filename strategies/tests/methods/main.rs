//! Aggregation rules, optimizers, corrections and topologies, each against its paper, without peers.
#![expect(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

mod aggregate;
mod bandwidth_matching;
mod corrections;
mod inner;
#[path = "../numbers/mod.rs"]
mod numbers;
mod outer;
mod spectra;
mod topologies;

use murmurate_protocol::InnerStep;
use murmurate_strategies::topology::TopologyKind;
use murmurate_strategies::{Proceed, StepControl};

/// A topology of the list.
fn topology(name: &str, given: &[(&str, f64)]) -> TopologyKind {
    TopologyKind::new(name, given).expect("the values are in range")
}

/// `W x`.
fn mixed(w: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    let row = |row: &Vec<f64>| row.iter().zip(x).map(|(w, x)| w * x).sum();
    w.iter().map(row).collect()
}

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
