//! A codec, and the two ways in which a codec takes part in more than a sum: `Gathering`, for the exchange
//! whose members all hold every contribution as it was encoded, and `TwoPasses`, for exchanges whose members
//! contribute twice. No IO and no agreement: the Executor passes in the agreed bytes.
//!
//! The common state of a gathering depends only on the agreed contributions of all rounds. So members with
//! the same anchor have the same bits of it. It is part of the state that newcomers fetch, and a void round
//! does not change it.

use super::feedback;
use super::{CodecProperties, EncodeContext};
use core::ops::Range;
use murmurate_protocol::{BytesBound, Digest};

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
        feedback::fold_in(delta, residual);
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

/// How a codec is used twice in a round. The context is that of a member's first contribution: it has the
/// same `shared_seed`, `matrices` and `shared` at all members. The state in common depends only on joined
/// aggregates that were agreed on, so members with the same anchor keep the same bits.
pub trait TwoPasses {
    /// The most f32 that members keep in common for a slice of `len` values.
    fn shared_most(&self, len: usize) -> usize;

    /// Appends the first contribution of a member with these values.
    fn first(&mut self, values: &[f32], context: &EncodeContext<'_>, out: &mut Vec<u8>);

    /// Appends the basis of first contributions to a slice of `len` values.
    ///
    /// # Errors
    /// Which contribution is bad.
    fn basis(
        &mut self,
        firsts: &[Weighed<'_>],
        len: usize,
        context: &EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Bad>;

    /// Appends the second contribution of a member with these values.
    ///
    /// # Errors
    /// When the basis is not the codec's.
    fn second(
        &mut self,
        values: &[f32],
        basis: &[u8],
        context: &EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError>;

    /// Appends what a basis and the second contributions for it are together.
    ///
    /// # Errors
    /// Which contribution is bad.
    fn join(
        &mut self,
        basis: &[u8],
        seconds: &[Weighed<'_>],
        len: usize,
        context: &EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Bad>;

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
