//! Local corrections: terms that a peer adds to its gradients so that peers with different data
//! reach the common optimum. One file each.
//!
//! Each is a [`Correction`], arithmetic on flat slices with its own state. The train lane passes it
//! every gradient of a trainer's inner steps. [`FedProx`] and [`QuasiGlobal`] need only the
//! parameters; [`Scaffold`] and [`Tracker`] (gradient tracking, momentum tracking, BEER, MoTEF) need a
//! [`Companion`], a second vector that travels beside the parameters. Exact diffusion changes no
//! gradient: the exchange between neighbours does it ([`CorrectionKind::ExactDiffusion`]).

mod companion;
mod correction;
mod fed_prox;
mod kind;
mod quasi_global;
mod scaffold;
mod tracker;

pub use companion::Companion;
pub use correction::{Correction, Work};
pub use fed_prox::FedProx;
pub use kind::CorrectionKind;
pub use quasi_global::QuasiGlobal;
pub use scaffold::Scaffold;
pub use tracker::Tracker;
