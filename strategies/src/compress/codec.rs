//! A codec: its entry in the list of codecs, its properties, its input, and its trait.
//!
//! A codec may take part in more than a sum: by `Gathering`, for the exchange whose members all hold every
//! contribution as it was encoded, and by `TwoPasses`, for exchanges whose members contribute twice. No IO and no
//! agreement: the Executor passes in the agreed bytes.
//!
//! The common state of a gathering depends only on the agreed contributions of all rounds. So members with
//! the same anchor have the same bits of it. It is part of the state that newcomers fetch, and a void round
//! does not change it.
//!
//! # Error feedback
//!
//! Error feedback: what a codec leaves out of one round is added to the next. The Executor owns the
//! residual.
//!
//! With delta_t the delta of the round, e_t the residual and C the codec:
//!
//! ```text
//! v_t     = delta_t + e_t                 fold_in
//! e_{t+1} = v_t - C(v_t)                  Codec::encode_residual
//! e'      = e + C(v_t)                    if C(v_t) did not become part of the anchor
//! ```
//!
//! The sums telescope: if every contribution is delivered, `sum_t C(v_t) = sum_t delta_t + e_0 -
//! e_T`. So the applied changes differ from the learned ones only by the last residual, however
//! much the codec leaves out in each round. After a contribution is lost, `e' = v_t`, so nothing is
//! missing. For a codec with contraction delta the residual stays bounded by `||e||^2 <= 4 (1 -
//! delta) / delta^2 max ||delta_t||^2`. With a lossless codec the residual stays zero.
//!
//! Source: Seide et al., "1-bit stochastic gradient descent" (Interspeech 2014); bound: Karimireddy
//! et al., "Error feedback fixes SignSGD" (ICML 2019), lemma 3.

use crate::kind::Kind;
use crate::parameter::Parameter;
use murmurate_protocol::{BytesBound, Digest};
use serde::{Serialize, Serializer};
use std::ops::Range;

/// Why a decoder refuses bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// Another codec, or other parameters.
    #[error("field `codec`: expected {expected}, found {found}")]
    Codec {
        /// This codec's tag.
        expected: u8,
        /// The tag that was found.
        found: u8,
    },
    /// Too few or too many bytes.
    #[error("field `{field}`: needs {needed} bytes, {found} are there")]
    Length {
        /// The field.
        field: &'static str,
        /// Bytes needed.
        needed: usize,
        /// Bytes there.
        found: usize,
    },
    /// The encoding refers to a common state of the group that this peer does not hold.
    #[error("field `{field}` refers to a common state of the group that this peer does not hold")]
    NotHeld {
        /// The field.
        field: &'static str,
    },
    /// A field has a value that the codec never writes.
    #[error("field `{field}` is out of range")]
    OutOfRange {
        /// The field.
        field: &'static str,
    },
    /// NaN or infinity.
    #[error("field `{field}` is not finite")]
    NotFinite {
        /// The field.
        field: &'static str,
    },
}

/// Another codec than that of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The one with this byte, with its default parameters: the owner names it.
    Tag(u8),
    /// The one at this place of the run's ladder, in which the configured one is at zero: the members choose it.
    Rung(u8),
}

/// The tiles of a sum, each worked on while it is in a cache. They come in order; all but the
/// last are a multiple of eight values long.
pub trait Tiles {
    /// The place of a tile, with what the sum begins with.
    fn begin(&mut self, tile: Range<usize>) -> &mut [f32];

    /// The tile at its place is complete.
    fn end(&mut self, tile: Range<usize>);
}

/// Encodes runs of f32 and adds decoded ones into an accumulator.
///
/// Encoding is deterministic: the same values, seeds and state give the same bytes on every
/// machine, and decoding gives the same values. The state that a codec keeps between rounds is in
/// its [`EncodeContext`]; its own fields are scratch memory only.
pub trait Codec: Send {
    /// Its properties.
    fn properties(&self) -> CodecProperties;

    /// Bound on the bytes that encoding appends.
    fn bytes_bound(&self) -> BytesBound;

    /// Appends the encoding of `values` to `out`. The caller refuses values that are not
    /// finite. If it does not, decoders refuse the encoding or return finite values.
    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>);

    /// Encodes with error feedback, in one pass if the codec can: encodes `v = delta + residual`
    /// and stores `v - decode(encode(v))` in the residual. With a decay beta,
    /// `v = delta + beta residual`.
    fn encode_residual(
        &mut self,
        delta: &[f32],
        residual: &mut [f32],
        context: &mut EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) {
        fold_in(delta, residual);
        let start = out.len();
        self.encode(residual, context, out);
        let left = self.decode_own(&out[start..], context.shared, -1.0, residual);
        debug_assert!(left.is_ok(), "a codec decodes what it encoded: {left:?}");
    }

    /// `acc += weight * decode(bytes)`, strictly: every byte is checked, and `acc` is unchanged
    /// unless all of them are good. Needs only the bytes: the encoding contains
    /// seeds and shapes.
    ///
    /// # Errors
    /// Which field is wrong.
    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError>;

    /// `begin + sum_k weight_k decode(bytes_k)` of `len` values, in this order: the same bits as
    /// [`Codec::decode_add`] of one after another, in small tiles if [`Codec::has_tiles`]. The sum
    /// is of no use if it fails.
    ///
    /// # Errors
    /// Which field of some encoding is wrong.
    fn decode_sum(
        &self,
        inputs: &[(&[u8], f32)],
        len: usize,
        tiles: &mut dyn Tiles,
    ) -> Result<(), CodecError> {
        let acc = tiles.begin(0..len);
        for (bytes, weight) in inputs {
            self.decode_add(bytes, *weight, acc)?;
        }
        tiles.end(0..len);
        Ok(())
    }

    /// Set where these bytes are decoded in small tiles, each by itself, for the cost of reading them.
    fn has_tiles(&self, _bytes: &[u8]) -> bool {
        false
    }

    /// As [`Codec::decode_add`], for an encoding that refers to the common state `shared` of all
    /// members. Only codecs for exchange `gathered` write such encodings.
    ///
    /// # Errors
    /// Which field is wrong.
    fn decode_own(
        &self,
        bytes: &[u8],
        _shared: &[f32],
        weight: f32,
        acc: &mut [f32],
    ) -> Result<(), CodecError> {
        self.decode_add(bytes, weight, acc)
    }

    /// The codec in which reductions of this one's contributions return. It keeps no state, because
    /// the owner of a shard changes from round to round.
    fn aggregate(&self) -> Box<dyn Codec>;

    /// Contributions of a round are encoded by this codec, as the owner of the run has directed or the members
    /// have chosen; `None` stands for the codec of the configuration. Most codecs cannot be changed.
    fn direct(&mut self, _round: u64, _codec: Option<Named>) {}

    /// How it is used twice in a round; `None` where members contribute once.
    fn two_passes(&mut self) -> Option<&mut dyn TwoPasses> {
        None
    }

    /// How members that hold all encoded contributions combine them; `None` for the weighted mean
    /// without a common state.
    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        None
    }
}

/// One contribution of a round.
#[derive(Clone, Copy, Debug)]
pub struct Contributed<'a> {
    /// As it was encoded.
    pub bytes: &'a [u8],
    /// Its share of the weights, which sum to one.
    pub share: f32,
    /// The vector that every member holds of its sender; empty for zeros.
    pub held: &'a [f32],
}

/// The agreed contributions to one slice in one round.
#[derive(Clone, Copy, Debug)]
pub struct Agreed<'a> {
    /// The contributions, in the order that all members have.
    pub contributions: &'a [Contributed<'a>],
    /// The index of this peer's; `None` if it was left out.
    pub own: Option<usize>,
    /// The round.
    pub round: u64,
    /// The seed of the slice in this round, the same at all members.
    pub shared_seed: u64,
    /// The common state of the slice.
    pub shared: &'a [f32],
}

/// A contribution that the codec cannot have written. Every member refuses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The index of the contribution.
    pub at: usize,
    /// The error in it.
    pub error: CodecError,
}

impl Bad {
    /// The first contribution that cannot be added, if there is one.
    pub(super) fn of_first<T>(
        contributions: &[T],
        mut add: impl FnMut(&T) -> Result<(), CodecError>,
    ) -> Result<(), Self> {
        for (at, one) in contributions.iter().enumerate() {
            add(one).map_err(|error| Self { at, error })?;
        }
        Ok(())
    }
}

/// How a codec combines all contributions. Every member computes the same.
pub trait Gathering: Codec {
    /// Set if every member holds a vector of every other member: one value for each parameter and
    /// member.
    fn holds(&self) -> bool {
        false
    }

    /// The most f32 of common state for a slice of `len` values.
    fn shared_most(&self, len: usize) -> usize;

    /// Adds the combined contributions to `moved`, which must be zeros. Does not change the common
    /// state.
    ///
    /// # Errors
    /// Which contribution is bad.
    fn gather(&mut self, agreed: &Agreed<'_>, moved: &mut [f32]) -> Result<(), Bad> {
        let contributions = agreed.contributions;
        Bad::of_first(contributions, |one| {
            self.decode_own(one.bytes, agreed.shared, one.share, moved)
        })
    }

    /// Called after the result of the last [`gather`](Self::gather) was applied. Appends the next
    /// common state to `shared`, which must be empty.
    fn settle(&mut self, agreed: &Agreed<'_>, moved: &[f32], shared: &mut Vec<f32>);

    /// Called before [`settle`](Self::settle). Adds to the residual the part of this peer's contribution that
    /// did not become part of `moved`.
    fn take_back(&mut self, _agreed: &Agreed<'_>, _moved: &[f32], _residual: &mut [f32]) {}

    /// Updates the vector that every member holds of a sender by its agreed contribution. Only
    /// called if [`Gathering::holds`] is true.
    ///
    /// # Errors
    /// As `gather`; nothing has changed then.
    fn hold(&self, _bytes: &[u8], _held: &mut [f32]) -> Result<(), CodecError> {
        Ok(())
    }

    /// Adds a contribution of this peer that was left out back to the residual. `shared` is the
    /// common state that it was encoded with.
    ///
    /// # Errors
    /// When the bytes are not the codec's.
    fn give_back(
        &self,
        bytes: &[u8],
        shared: &[f32],
        residual: &mut [f32],
    ) -> Result<(), CodecError> {
        self.decode_own(bytes, shared, 1.0, residual)
    }
}

/// An encoded contribution and its share of the weights, which sum to one.
pub type Weighed<'a> = (&'a [u8], f32);

/// A pass of a round over one slice.
#[derive(Debug)]
pub struct Pass<'a> {
    /// Values of the slice.
    pub len: usize,
    /// The context of a member's first contribution.
    pub context: &'a EncodeContext<'a>,
    /// Where it is appended.
    pub out: &'a mut Vec<u8>,
}

/// How a codec is used twice in a round. The context is that of a member's first contribution: it has the
/// same `shared_seed`, `matrices` and `shared` at all members. The state in common depends only on joined
/// aggregates that were agreed on, so members with the same anchor keep the same bits.
pub trait TwoPasses {
    /// The most f32 that members keep in common for a slice of `len` values.
    fn shared_most(&self, len: usize) -> usize;

    /// Appends the first contribution of a member with these values.
    fn first(&mut self, values: &[f32], context: &EncodeContext<'_>, out: &mut Vec<u8>);

    /// Appends the basis of first contributions to a slice.
    ///
    /// # Errors
    /// Which contribution is bad.
    fn basis(&mut self, firsts: &[Weighed<'_>], of: Pass<'_>) -> Result<(), Bad>;

    /// Appends the second contribution of a member with these values.
    ///
    /// # Errors
    /// When the basis is not the codec's.
    fn second(&mut self, values: &[f32], basis: &[u8], of: Pass<'_>) -> Result<(), CodecError>;

    /// Appends what a basis and the second contributions for it are together.
    ///
    /// # Errors
    /// Which contribution is bad.
    fn join(&mut self, basis: &[u8], seconds: &[Weighed<'_>], of: Pass<'_>) -> Result<(), Bad>;

    /// Subtracts from a member's residual the part of its values that is in the joined aggregate.
    ///
    /// # Errors
    /// When the bytes do not belong together; the residual is unchanged then.
    fn take_out(
        &mut self,
        own: Joined<'_>,
        context: &EncodeContext<'_>,
        residual: &mut [f32],
    ) -> Result<(), CodecError>;

    /// Appends what members keep in common after this joined aggregate of `len` values.
    fn keep(
        &mut self,
        joined: &[u8],
        len: usize,
        context: &EncodeContext<'_>,
        shared: &mut Vec<f32>,
    );
}

/// A member's second contribution, with its basis and the aggregate that was agreed on.
#[derive(Clone, Copy, Debug)]
pub struct Joined<'a> {
    /// The basis.
    pub basis: &'a [u8],
    /// The member's contribution.
    pub second: &'a [u8],
    /// The agreed aggregate.
    pub aggregate: &'a [u8],
}

/// What names a basis in the contributions for it.
pub(super) fn name_of(basis: &[u8]) -> [u8; 8] {
    let mut eight = [0; 8];
    eight.copy_from_slice(&Digest::of(basis).as_bytes()[..8]);
    eight
}

/// The most values for each parameter that a codec may keep.
pub const PLANES_MAX: usize = 2;

/// A row-major matrix that is completely inside a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Where it begins in the slice.
    pub offset: usize,
    /// Rows. Where a slice ends inside a tensor, only the tensor's whole rows are here.
    pub rows: usize,
    /// Values in a row: the product of all dimensions but the first.
    pub columns: usize,
}

impl Matrix {
    /// Its place in the slice.
    pub const fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.rows * self.columns
    }
}

/// What a codec may use and keep for the slice that it encodes.
#[derive(Debug)]
pub struct EncodeContext<'a> {
    /// Different for every slice: a hash of run, round, fragment, shard, direction, origin and attempt.
    pub seed: u64,
    /// The same at all peers for a slice of a round: a hash of run, round, fragment, shard and
    /// direction. Decoders read it from the header of the encoding.
    pub shared_seed: u64,
    /// The round, from zero: for schedules such as a warm-up.
    pub round: u64,
    /// The slice's matrices, ascending; empty unless the codec asks for them.
    pub matrices: &'a [Matrix],
    /// As many runs as the codec asks for, each with one f32 for every value of the slice; the
    /// others are empty. They begin as zeros, follow the parameters when groups and shards change,
    /// and are part of checkpoints, not of state transfers.
    pub planes: [&'a mut [f32]; PLANES_MAX],
    /// State of any length for this slice, empty at first and again when shards change; part of
    /// checkpoints. A codec replaces contents of the wrong length.
    pub memory: &'a mut Vec<f32>,
    /// The common state of all members for this slice, the same bits at each:
    /// [`Gathering`](super::Gathering). Empty at first, and for all other codecs.
    pub shared: &'a [f32],
    /// The vector that every member holds of this peer:
    /// [`Gathering::hold`](super::Gathering::hold). Empty for zeros.
    pub held: &'a [f32],
    /// The anchor, from which this peer's contribution started: one value for each of the slice. Empty
    /// where the caller has none.
    pub anchor: &'a [f32],
}

impl<'a> EncodeContext<'a> {
    /// A context with a seed and nothing else.
    pub fn seeded(seed: u64, memory: &'a mut Vec<f32>) -> Self {
        Self {
            seed,
            shared_seed: seed,
            round: 0,
            matrices: &[],
            planes: [&mut [], &mut []],
            memory,
            shared: &[],
            held: &[],
            anchor: &[],
        }
    }

    /// A pass over a slice of `len` values with this context.
    pub const fn pass<'b>(&'b self, len: usize, out: &'b mut Vec<u8>) -> Pass<'b> {
        let context = self;
        Pass { len, context, out }
    }
}

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
}

/// One codec as the configuration knows it.
#[derive(Clone, Copy, Debug)]
pub struct CodecSpec {
    /// Its name in the configuration.
    pub name: &'static str,
    /// The byte that opens its encodings. Never reused for another layout; docs/wire.md lists all.
    pub tag: u8,
    /// Summary, in one line.
    pub summary: &'static str,
    /// Equation, in one line.
    pub equation: &'static str,
    /// The paper.
    pub source: &'static str,
    /// Its parameters, at most [`PARAMETERS_MAX`](super::PARAMETERS_MAX).
    pub parameters: &'static [Parameter],
    /// Makes it of parameters within their ranges.
    pub build: fn(&CodecKind) -> Box<dyn Codec>,
}

/// A codec with its parameters, all within their ranges.
pub type CodecKind = Kind<CodecSpec>;

impl CodecKind {
    /// The codec itself.
    pub fn build(&self) -> Box<dyn Codec> {
        (self.spec().build)(self)
    }
}

/// As a table of its parameters, with its name under `codec`.
impl Serialize for CodecKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = self.to_table();
        table.insert("codec".to_owned(), self.name().into());
        table.serialize(serializer)
    }
}

/// `values += residual`: the values to encode are the delta plus what earlier rounds left out.
///
/// # Panics
///
/// If the lengths differ.
pub(crate) fn fold_in(residual: &[f32], values: &mut [f32]) {
    assert_eq!(residual.len(), values.len());
    for (v, e) in values.iter_mut().zip(residual) {
        *v += e;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{CodecKind, EncodeContext};

    const LEN: usize = 50;

    fn delta(round: usize) -> Vec<f32> {
        // Multiples of 1/8: sums are exact, so the telescoping is exact for top-k.
        (0..LEN)
            .map(|i| ((round * 37 + i * 11) % 41) as f32 / 8.0 - 2.5)
            .collect()
    }

    /// Exchanges 40 rounds, of which every `lost_every`-th is lost; gives the sum of the
    /// applied values, the sum of the deltas, and the last residual.
    fn exchange(kind: CodecKind, lost_every: usize) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
        let mut codec = kind.build();
        let [mut applied, mut learned, mut residual] = [const { Vec::new() }; 3];
        for all in [&mut applied, &mut learned, &mut residual] {
            all.resize(LEN, 0.0f32);
        }
        for round in 1..=40 {
            fold_in(&delta(round), &mut learned);
            let (mut bytes, mut decoded, mut memory) = (Vec::new(), vec![0.0; LEN], Vec::new());
            let mut context = EncodeContext::seeded(round as u64, &mut memory);
            codec.encode_residual(&delta(round), &mut residual, &mut context, &mut bytes);
            codec.decode_add(&bytes, 1.0, &mut decoded).unwrap();
            if round % lost_every == 0 {
                // It did not become part of the anchor.
                fold_in(&decoded, &mut residual);
            } else {
                fold_in(&decoded, &mut applied);
            }
        }
        (applied, learned, residual)
    }

    #[test]
    fn what_was_applied_and_the_residual_sum_to_what_was_learned() {
        for lost_every in [3, 5, usize::MAX] {
            let (mut sum, learned, residual) = exchange(
                CodecKind::new("top-k", &[("density", 0.1)]).unwrap(),
                lost_every,
            );
            assert!(residual.iter().any(|e| *e != 0.0));
            fold_in(&residual, &mut sum);
            assert_eq!(sum, learned);

            let (mut sum, learned, residual) =
                exchange(CodecKind::new("int8", &[]).unwrap(), lost_every);
            fold_in(&residual, &mut sum);
            for (s, l) in sum.iter().zip(&learned) {
                // f32 rounding of 40 additions of values below 100.
                assert!((s - l).abs() < 1e-3, "{s} is not {l}");
            }
        }
    }

    #[test]
    fn a_lossless_codec_leaves_nothing() {
        let (applied, learned, residual) =
            exchange(CodecKind::new("f32", &[]).unwrap(), usize::MAX);
        assert_eq!(applied, learned);
        assert!(residual.iter().all(|e| *e == 0.0));
    }
}
