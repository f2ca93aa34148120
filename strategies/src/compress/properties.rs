//! What a codec is, as data: the grid refuses combinations that cannot work.

/// How contributions may become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Encoded with the same shared seed, they may be summed as they are: C(x) + C(y) = C(x + y).
    WhileEncoded,
    /// Each is decoded into the sum.
    AfterDecoding,
    /// Each is decoded into the sum, and the sum goes back in the same codec, with error feedback at its
    /// owner, who must be the same from round to round.
    Squeezed,
    /// Every member needs each contribution by itself: none may be summed on its way.
    Gathered,
}

/// What a codec is, as data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodecProperties {
    /// Whether decode(encode(x)) == x bit for bit.
    pub lossless: bool,
    /// Whether E[C(x)] == x over the seeds, or rounding is to nearest with no bias over symmetric
    /// values.
    pub unbiased: bool,
    /// Whether it stalls without error feedback, as biased codecs do but for those of signs alone.
    pub needs_feedback: bool,
    /// Whether decoded values are as large as what was encoded: signs alone are not.
    pub scaled: bool,
    /// Whether encoding draws random numbers from the seed: the same seed gives the same bytes.
    pub stochastic: bool,
    /// Whether it may carry parameters themselves (dense, small relative error).
    pub dense: bool,
    /// The least published c with E||C(x) - x||^2 <= c ||x||^2, over the seeds; infinite where
    /// there is none. Below one the codec is contractive with delta = 1 - c; at one it never
    /// leaves out more than there was; of an unbiased codec it is the variance bound.
    pub error: f64,
    /// How contributions may become one.
    pub reduction: Reduction,
    /// Whether all peers must encode with the same seed.
    pub shared_seed: bool,
    /// Whether it looks at matrices: [`Matrix`](super::Matrix).
    pub matrices: bool,
    /// What error feedback keeps of the residual from round to round: one, or the codec's decay.
    pub decay: f32,
    /// f32 for every parameter that it keeps between rounds, beside error feedback's one.
    pub planes: usize,
}

impl CodecProperties {
    /// A dense codec without loss.
    pub const LOSSLESS: Self = Self {
        lossless: true,
        unbiased: true,
        needs_feedback: false,
        scaled: true,
        stochastic: false,
        dense: true,
        error: 0.0,
        reduction: Reduction::AfterDecoding,
        shared_seed: false,
        matrices: false,
        decay: 1.0,
        planes: 0,
    };

    /// A dense codec that rounds to nearest, with this bound of the relative squared error.
    pub const fn rounding(error: f64) -> Self {
        Self {
            lossless: false,
            error,
            ..Self::LOSSLESS
        }
    }

    /// A codec that draws random numbers so that its mean is exact, with this bound of the
    /// variance.
    pub const fn random(error: f64) -> Self {
        Self {
            stochastic: true,
            dense: error < 1.0,
            ..Self::rounding(error)
        }
    }

    /// A biased codec: needs error feedback.
    pub const fn biased(error: f64) -> Self {
        Self {
            unbiased: false,
            needs_feedback: true,
            dense: false,
            ..Self::rounding(error)
        }
    }

    /// What it is with another codec behind it, for the values that it keeps: the error is at most
    /// that of what is left out and `after`'s of the rest.
    pub(super) fn followed_by(self, after: Self) -> Self {
        let (first, second) = (self.error, after.error);
        // Rounding to nearest has no bias over many values, but one over the draws of one.
        let unbiased = self.unbiased && after.unbiased && (after.lossless || after.stochastic);
        let linear = after.lossless && self.reduction == Reduction::WhileEncoded;
        Self {
            lossless: self.lossless && after.lossless,
            unbiased,
            // A sparsifier that rescales is no projection: its error grows with the quantizer's.
            needs_feedback: !unbiased && (self.needs_feedback || after.needs_feedback),
            stochastic: self.stochastic || after.stochastic,
            dense: self.dense && after.dense,
            reduction: match linear {
                true => Reduction::WhileEncoded,
                false => Reduction::AfterDecoding,
            },
            error: if self.unbiased && !self.lossless {
                (1.0 + first) * (1.0 + second) - 1.0
            } else if second <= 1.0 {
                first + second * (1.0 - first)
            } else {
                second
            },
            ..self
        }
    }

    /// delta in E||C(x) - x||^2 <= (1 - delta) ||x||^2; `None` where it is not contractive.
    pub fn contraction(&self) -> Option<f64> {
        (self.error < 1.0).then_some(1.0 - self.error)
    }
}
