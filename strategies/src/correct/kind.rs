//! Corrections as data: what `inner.correction` says. The grid checks the ranges.

use super::{Companion, Correction, FedProx, QuasiGlobal, Scaffold, Tracker};

/// A correction of the gradients of inner steps, with its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum CorrectionKind {
    /// The trainer's gradients as they are.
    #[default]
    None,
    /// [`FedProx`].
    FedProx {
        /// Strength of the spring, above zero.
        mu: f64,
    },
    /// [`QuasiGlobal`].
    QuasiGlobal {
        /// Decay of the momentum, in `[0, 1)`.
        beta: f64,
    },
    /// D2 and exact diffusion: gossip whose bias is taken out by what the last round moved.
    ///
    /// ```text
    /// psi' = x - lr g,   sent: phi = psi' + x - psi,   x' = sum_j W[i][j] phi_j
    /// ```
    ///
    /// W must be symmetric with its smallest eigenvalue above -1/3 (D2), or `(I + W) / 2` takes its
    /// place (exact diffusion). No gradient is changed: the exchange keeps replicas of the
    /// neighbours and subtracts what has moved along each link. Source: Tang et al., "D2" (ICML
    /// 2018), algorithm 1; Yuan et al., "Exact diffusion for distributed optimization and learning"
    /// (IEEE TSP 2019), equations 12 to 14. Special case: the first round is D-PSGD.
    ExactDiffusion,
    /// [`Scaffold`].
    Scaffold,
    /// [`Tracker`] of gradients.
    GradientTracking,
    /// [`Tracker`] of momenta.
    MomentumTracking {
        /// Decay of the momentum, in `[0, 1)`.
        beta: f64,
    },
    /// [`Tracker`] of averages of the gradients: MoTEF.
    MoTef {
        /// Decay of the average, in `[0, 1)`; the paper's lambda is one less this.
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
            Self::MoTef { .. } => "motef",
        }
    }

    /// The second vector that the exchange must carry for it.
    pub const fn companion(&self) -> Companion {
        match self {
            Self::Scaffold => Companion::Mean,
            Self::GradientTracking | Self::MomentumTracking { .. } | Self::MoTef { .. } => {
                Companion::Flows
            }
            _ => Companion::None,
        }
    }

    /// How many f32 values it keeps per parameter.
    pub const fn state_multiple(&self) -> usize {
        match self {
            Self::None | Self::ExactDiffusion => 0,
            Self::FedProx { .. } => 1,
            Self::QuasiGlobal { .. } | Self::GradientTracking => 2,
            Self::MomentumTracking { .. } | Self::MoTef { .. } | Self::Scaffold => 3,
        }
    }

    /// Builds it for `len` parameters and inner steps at rate `lr`; `None` where no gradient is
    /// changed.
    pub fn build(&self, len: usize, lr: f64) -> Option<Box<dyn Correction>> {
        match *self {
            Self::None | Self::ExactDiffusion => None,
            Self::FedProx { mu } => Some(Box::new(FedProx::new(len, mu as f32))),
            Self::QuasiGlobal { beta } => {
                Some(Box::new(QuasiGlobal::new(len, beta as f32, lr as f32)))
            }
            Self::Scaffold => Some(Box::new(Scaffold::new(len, lr as f32))),
            Self::GradientTracking => Some(Box::new(Tracker::new(len, 0.0))),
            Self::MomentumTracking { beta } => Some(Box::new(Tracker::new(len, beta as f32))),
            Self::MoTef { beta } => Some(Box::new(Tracker::averaging(len, beta as f32))),
        }
    }
}
