//! Corrections as data: what `inner.correction` says. Ranges are checked by the grid.

use super::{Companion, Correction, QuasiGlobal, Spring, Tracker, Variates};

/// A correction of the gradients of inner steps, with its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum CorrectionKind {
    /// The trainer's own gradients.
    #[default]
    None,
    /// [`FedProx`](super::FedProx).
    FedProx {
        /// Strength of the spring, above zero.
        mu: f64,
    },
    /// [`QuasiGlobal`].
    QuasiGlobal {
        /// Decay of the momentum, in `[0, 1)`.
        beta: f64,
    },
    /// What has moved along the links is taken off before every exchange. No gradient is changed: replicas of
    /// neighbours are kept for it, and the exchange does it.
    ExactDiffusion,
    /// SCAFFOLD: [`Variates`].
    Scaffold,
    /// [`Tracker`] of gradients.
    GradientTracking,
    /// [`Tracker`] of momenta.
    MomentumTracking {
        /// Decay of the momentum, in `[0, 1)`.
        beta: f64,
    },
}

impl CorrectionKind {
    /// Its name in the configuration.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::FedProx { .. } => "fed-prox",
            Self::QuasiGlobal { .. } => "quasi-global",
            Self::ExactDiffusion => "exact-diffusion",
            Self::Scaffold => "scaffold",
            Self::GradientTracking => "gradient-tracking",
            Self::MomentumTracking { .. } => "momentum-tracking",
        }
    }

    /// What it needs beside the parameters.
    pub const fn companion(&self) -> Companion {
        match self {
            Self::Scaffold => Companion::Mean,
            Self::GradientTracking | Self::MomentumTracking { .. } => Companion::Flows,
            _ => Companion::None,
        }
    }

    /// f32 per parameter that it keeps.
    pub const fn state_multiple(&self) -> usize {
        match self {
            Self::None | Self::ExactDiffusion => 0,
            Self::FedProx { .. } => 1,
            Self::QuasiGlobal { .. } | Self::GradientTracking => 2,
            Self::MomentumTracking { .. } | Self::Scaffold => 3,
        }
    }

    /// The correction itself, for `len` parameters and inner steps at rate `lr`.
    pub fn build(&self, len: usize, lr: f64) -> Option<Box<dyn Correction>> {
        match *self {
            Self::None | Self::ExactDiffusion => None,
            Self::FedProx { mu } => Some(Box::new(Spring::new(len, mu as f32))),
            Self::QuasiGlobal { beta } => {
                let beta = beta as f32;
                Some(Box::new(QuasiGlobal::new(len, beta, beta).at(lr as f32)))
            }
            Self::Scaffold => Some(Box::new(Variates::new(len, lr as f32))),
            Self::GradientTracking => Some(Box::new(Tracker::new(len, 0.0))),
            Self::MomentumTracking { beta } => Some(Box::new(Tracker::new(len, beta as f32))),
        }
    }
}
