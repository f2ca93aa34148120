//! Local corrections: what a peer adds to its gradients or takes off its parameters so that peers with
//! different data reach the common optimum. One file each.
//!
//! All are arithmetic on flat slices with their state. What the grid can choose is a [`Correction`]: the train
//! lane hands it every gradient of a trainer's inner steps. Some need nothing of others but the parameters
//! ([`FedProx`], [`QuasiGlobal`]); others a [`Companion`] that travels beside them ([`Variates`] of SCAFFOLD,
//! the [`Tracker`] of gradient and momentum tracking, and of BEER). The other types are the
//! papers' rules as they stand, which tests hold those to: they say what is sent in a round and what is
//! done with the mix `sum_j W[i][j] message_j` that comes back. [`fed_nova`] fixes weights.

pub mod fed_nova;

mod beer;
mod cedas;
mod companion;
mod correction;
mod exact_diffusion;
mod fed_prox;
mod gradient_tracking;
mod kind;
mod momentum_tracking;
mod quasi_global;
mod scaffold;
mod tracker;

pub use beer::Beer;
pub use cedas::{Cedas, Estimate};
pub use companion::Companion;
pub use correction::{Correction, Work};
pub use exact_diffusion::ExactDiffusion;
pub use fed_prox::{FedProx, Spring};
pub use gradient_tracking::GradientTracking;
pub use kind::CorrectionKind;
pub use momentum_tracking::MomentumTracking;
pub use quasi_global::QuasiGlobal;
pub use scaffold::{Scaffold, Variates};
pub use tracker::Tracker;

/// A compressor as a function: reads values, writes what the receiver will decode.
pub type Compressor<'a> = &'a mut dyn FnMut(&[f32], &mut [f32]);
