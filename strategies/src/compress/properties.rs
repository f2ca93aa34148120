//! Properties of a codec. The grid refuses combinations that cannot work.

/// How contributions are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Encodings with the same shared seed may be summed: C(x) + C(y) = C(x + y).
    WhileEncoded,
    /// Each is decoded into the sum.
    AfterDecoding,
    /// Each is decoded into the sum, and the sum is encoded by the same codec, with error feedback
    /// at the owner of the shard. The owner must be the same in every round.
    Squeezed,
    /// Members contribute twice: the owner of a shard makes a basis of the first contributions, and the
    /// sum of the second ones, for this basis, is the result.
    TwoPasses,
    /// Every member needs each contribution separately: no partial sums.
    Gathered,
}

/// Properties of a codec.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodecProperties {
    /// decode(encode(x)) == x, bit for bit.
    pub lossless: bool,
    /// E[C(x)] == x over the seeds, or rounding is to nearest with no bias over symmetric values.
    pub unbiased: bool,
    /// Training stalls without error feedback. That holds for biased codecs, except signs alone.
    pub needs_feedback: bool,
    /// Decoded values have the magnitude of the encoded ones. Signs alone do not.
    pub scaled: bool,
    /// Encoding draws random numbers from the seed: the same seed gives the same bytes.
    pub stochastic: bool,
    /// Fit to carry parameters themselves (dense, small relative error).
    pub dense: bool,
    /// The least published c with E||C(x) - x||^2 <= c ||x||^2, over the seeds; infinite if there
    /// is none. Below one the codec is contractive with delta = 1 - c; at one the error is never
    /// longer than x; for an unbiased codec it is the bound of the variance.
    pub error: f64,
    /// The root mean square up to which values are not sent: there the error is as large as they are.
    /// Zero for a codec that always sends.
    pub quiet: f64,
    /// How contributions are combined.
    pub reduction: Reduction,
    /// All peers must encode with the same seed.
    pub shared_seed: bool,
    /// Keeps some values as they are, at places that all peers draw alike, and sends no
    /// others: the decoded values are a part of the input.
    pub masks: bool,
    /// Looks at matrices: [`Matrix`](super::Matrix).
    pub matrices: bool,
    /// The factor of error feedback on the residual in each round: one, or the decay of the codec.
    pub decay: f32,
    /// f32 for every parameter that it keeps between rounds, besides the residual of error feedback.
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
        quiet: 0.0,
        reduction: Reduction::AfterDecoding,
        shared_seed: false,
        masks: false,
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

    /// A codec that draws random numbers so that its mean is exact, with this bound of the variance.
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

    /// Its properties if another codec writes the values that it keeps. The error is at most that
    /// of the values left out plus that of `after` on the rest.
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
            reduction: if linear {
                Reduction::WhileEncoded
            } else {
                Reduction::AfterDecoding
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

    /// delta in E||C(x) - x||^2 <= (1 - delta) ||x||^2; `None` if it is not contractive.
    pub fn contraction(&self) -> Option<f64> {
        (self.error < 1.0).then_some(1.0 - self.error)
    }
}
