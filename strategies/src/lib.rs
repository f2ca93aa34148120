//! The arithmetic of Murmurate over flat f32: the grid, codecs, topologies, optimizers, and the
//! [`Executor`](executor) that performs every work order of a peer.

pub mod aggregate;
pub mod compress;
pub mod inner;
pub mod outer;
pub mod slices;
pub mod state;
pub mod topology;
pub mod toy;

mod layout;
mod trainer;

pub use layout::{Layout, TensorSpec};
pub use trainer::{Proceed, StepControl, TrainError, TrainReport, Trainer};
