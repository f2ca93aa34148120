//! The trait of corrections of the gradients of inner steps, as the train lane uses it; corrections as data, from
//! `inner.correction`; and the second vector that travels beside the parameters, as more fragments after theirs. The
//! Executor knows about that vector, the exchange does not.

use crate::kind::Kind;
use crate::parameter::{Parameter, Range};

/// What a stretch of training took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Inner steps of this round.
    pub steps: u64,
    /// Those and the ones before them since the parameters were last agreed on.
    pub since_agreed: u64,
}

/// Changes gradients by values from earlier rounds.
///
/// It is called for each piece of the flat parameters, with the place of the piece.
pub trait Correction: Send {
    /// Between two stretches of training the parameters of a piece became `taken`, where training
    /// had left `trained` after `steps` inner steps since the last time that they were agreed on.
    /// `agreed` says whether `taken` is the anchor itself, or that and a delta which is kept.
    fn taken_over(
        &mut self,
        offset: usize,
        trained: &[f32],
        taken: &[f32],
        agreed: bool,
        steps: u64,
    );

    /// Corrects the gradient of one inner step in place, of parameters with these values.
    fn correct(&mut self, offset: usize, values: &[f32], gradient: &mut [f32]);

    /// A piece of the companion became `taken`: the result of the exchange.
    fn companion_taken(&mut self, offset: usize, taken: &[f32]) {
        let _ = (offset, taken);
    }

    /// A stretch of training led to `trained`: writes this peer's companion, the second vector of the round.
    fn cut(&mut self, trained: &[f32], work: Work, companion: &mut [f32]) {
        let _ = (trained, work, companion);
    }

    /// What a peer that resumes cannot do without; nothing where the next anchor says it all.
    fn state(&self) -> &[f32] {
        &[]
    }

    /// That state, to be written into.
    fn state_mut(&mut self) -> &mut [f32] {
        &mut []
    }
}

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

/// How an Executor treats the companion of the parameters.
///
/// The exchanged values are the parameters, then the companion, which has the same length. Each
/// fragment belongs to one of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Companion {
    /// There is none.
    #[default]
    None,
    /// A vector of each peer, in an exchange that agrees on the mean. A contribution is the
    /// difference between the peer's vector and the last mean, so the new mean is that of the
    /// contributors, even if peers came, left or missed a round:
    ///
    /// ```text
    /// c' = c + sum_i w_i (c_i - c) / sum_i w_i = sum_i w_i c_i / sum_i w_i
    /// ```
    Mean,
    /// A vector y of each peer that flows between neighbours with replicas of each other. The state
    /// is the sum of what has flowed to this peer along its links,
    ///
    /// ```text
    /// s_i = sum_j F_ij,   F_ij' = F_ij + rate w_ij (k_j - k_i) = -F_ji',   k the replicas of y
    /// ```
    ///
    /// so that the sum of all s stays zero. If a neighbour is gone, both ends drop F, and the rest
    /// still sums to zero. A peer that resumes begins without it, and so do its neighbours.
    Flows,
    /// The peer's anchor of the round, mixed like the parameters. When both are mixed, the outer
    /// optimizer moves the anchor, and the parameters begin the next round there:
    ///
    /// ```text
    /// d = lr (mix x - mix a) + pull (mix a - a_i),   a_i' = outer(a_i, d),   x_i' = a_i'
    /// ```
    Anchors {
        /// How far along the mean delta.
        lr: f32,
        /// How far towards the mean anchor.
        pull: f32,
    },
}

impl Companion {
    /// Its values for `len` parameters.
    pub const fn len(self, len: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Mean | Self::Flows | Self::Anchors { .. } => len,
        }
    }

    /// Set where there is none.
    pub const fn is_none(self) -> bool {
        matches!(self, Self::None)
    }
}
