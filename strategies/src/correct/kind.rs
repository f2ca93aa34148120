//! Corrections as data: what `inner.correction` says.

use super::{Companion, Correction};
use crate::kind::Kind;
use crate::parameter::{Parameter, Range};

/// One correction of the gradients of inner steps as the configuration knows it.
#[derive(Clone, Copy, Debug)]
pub struct CorrectionSpec {
    /// Its name in the configuration.
    pub name: &'static str,
    /// Its description, in a line.
    pub summary: &'static str,
    /// The corrected gradient, in a line.
    pub equation: &'static str,
    /// The paper.
    pub source: &'static str,
    /// Its parameters, as keys of `[inner]`.
    pub parameters: &'static [Parameter],
    /// Its requirement on the exchange.
    pub needs: Needs,
    /// f32 values that it keeps per parameter.
    pub state_multiple: usize,
    /// Makes it of parameters within their ranges, for this many values and inner steps at this rate; `None`
    /// where no gradient is changed.
    pub build: fn(&CorrectionKind, usize, f32) -> Option<Box<dyn Correction>>,
}

/// What a correction needs of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// An anchor that peers agree on.
    Anchor,
    /// Parameters that are mixed in rounds, and a constant learning rate.
    Mixing,
    /// A record of what has moved along each link.
    Moves,
    /// An agreed mean of the peers' companions, and a constant learning rate.
    Mean,
    /// Companions that flow along links.
    Flows,
}

/// A correction of the gradients of inner steps, with its parameters.
pub type CorrectionKind = Kind<CorrectionSpec>;

/// The trainer's gradients as they are.
pub(super) const NONE: CorrectionSpec = CorrectionSpec {
    name: "none",
    summary: "the trainer's own gradients",
    equation: "g' = g",
    source: "-",
    parameters: &[],
    needs: Needs::Nothing,
    state_multiple: 0,
    build: |_, _, _| None,
};

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
pub(super) const EXACT_DIFFUSION: CorrectionSpec = CorrectionSpec {
    name: "exact-diffusion",
    summary: "D2: the sum of what was exchanged along the links is subtracted before every exchange",
    equation: "y = x - lr g - d, d' = d + rate sum_j W_ij (h_i - h_j), x' = y - (d' - d), h the replicas of y",
    source: "Tang et al., ICML 2018; Yuan et al., IEEE TSP 2019; compressed: Huang and Pu 2023",
    needs: Needs::Moves,
    ..NONE
};

pub(super) const BETA: Parameter = Parameter::new(
    "beta",
    Range::BelowOne,
    0.9,
    "the factor on the momentum in each step",
);

impl CorrectionKind {
    /// No correction.
    pub fn none() -> Self {
        Self::of(&NONE, &[]).expect("it has no parameters")
    }

    /// Set where gradients stay as they are and the exchange subtracts nothing.
    pub fn is_none(&self) -> bool {
        self.needs() == Needs::Nothing
    }

    /// Its requirement on the exchange.
    pub fn needs(&self) -> Needs {
        self.spec().needs
    }

    /// Set where it changes no gradient.
    pub fn leaves_gradients(&self) -> bool {
        matches!(self.needs(), Needs::Nothing | Needs::Moves)
    }

    /// Set where it keeps a momentum of the trainer's own inner steps.
    pub fn keeps_momentum(&self) -> bool {
        self.needs() == Needs::Flows && self.has(BETA.name)
    }

    /// The second vector that the exchange must carry for it.
    pub fn companion(&self) -> Companion {
        match self.needs() {
            Needs::Mean => Companion::Mean,
            Needs::Flows => Companion::Flows,
            Needs::Nothing | Needs::Anchor | Needs::Mixing | Needs::Moves => Companion::None,
        }
    }

    /// f32 values that it keeps per parameter.
    pub fn state_multiple(&self) -> usize {
        self.spec().state_multiple
    }

    /// Builds it for `len` parameters and inner steps at rate `lr`; `None` where no gradient is changed.
    pub fn build(&self, len: usize, lr: f64) -> Option<Box<dyn Correction>> {
        (self.spec().build)(self, len, lr as f32)
    }

    /// The decay of its momentum in f32.
    pub(super) fn beta(&self) -> f32 {
        self.number(BETA.name) as f32
    }
}
