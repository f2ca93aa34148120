//! Corrections as data: what `inner.correction` says. Ranges are checked by the grid.

use super::{Correction, QuasiGlobal, Spring};

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
}

impl CorrectionKind {
    /// Its name in the configuration.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::FedProx { .. } => "fed-prox",
            Self::QuasiGlobal { .. } => "quasi-global",
        }
    }

    /// f32 per parameter that it keeps.
    pub const fn state_multiple(&self) -> usize {
        match self {
            Self::None => 0,
            Self::FedProx { .. } => 1,
            Self::QuasiGlobal { .. } => 2,
        }
    }

    /// The correction itself, for `len` parameters and inner steps at rate `lr`.
    pub fn build(&self, len: usize, lr: f64) -> Option<Box<dyn Correction>> {
        match *self {
            Self::None => None,
            Self::FedProx { mu } => Some(Box::new(Spring::new(len, mu as f32))),
            Self::QuasiGlobal { beta } => {
                let beta = beta as f32;
                Some(Box::new(QuasiGlobal::new(len, beta, beta).at(lr as f32)))
            }
        }
    }
}
