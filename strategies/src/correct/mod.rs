//! Local corrections: what a peer adds to its gradients or takes off its parameters so that peers with
//! different data reach the common optimum. One file each.
//!
//! All are arithmetic on flat slices with their state. Those that need nothing of others but the
//! parameters ([`FedProx`], [`QuasiGlobal`]) are a [`Correction`]: the train lane hands them every gradient
//! of a trainer's inner steps. [`Scaffold`] changes gradients too, by what needs a message of its own;
//! [`fed_nova`] fixes weights; the others say what is sent in a round and what is done with the mix
//! `sum_j W[i][j] message_j` that comes back. They need exchanges that carry a second message beside the
//! parameters: the grid refuses them with that reason.

pub mod fed_nova;

mod beer;
mod cedas;
mod correction;
mod exact_diffusion;
mod fed_prox;
mod gradient_tracking;
mod kind;
mod momentum_tracking;
mod quasi_global;
mod scaffold;

pub use beer::Beer;
pub use cedas::{Cedas, Estimate};
pub use correction::Correction;
pub use exact_diffusion::ExactDiffusion;
pub use fed_prox::{FedProx, Spring};
pub use gradient_tracking::GradientTracking;
pub use kind::CorrectionKind;
pub use momentum_tracking::MomentumTracking;
pub use quasi_global::QuasiGlobal;
pub use scaffold::Scaffold;

/// A compressor as a function: reads values, writes what the receiver will decode.
pub type Compressor<'a> = &'a mut dyn FnMut(&[f32], &mut [f32]);
