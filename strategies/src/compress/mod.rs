//! Codecs: values to bytes and back. Each is one file and one line in [`CODECS`]. Its `SPEC` there says
//! name, opening byte, equation, source and keys; its type says layout, bound of error and special cases.
//!
//! - `dense`: every value, in fewer bits
//! - `sparse`: few of the values, or a sketch of the largest
//! - `low_rank`: matrices as products of thin factors
//! - `shared_state`: contributions that every member receives as they were encoded
//! - `by_size`, `double_squeeze`: made of other codecs
//!
//! The other files are what several of them share.

pub mod feedback;
pub mod gathering;

mod by_size;
mod context;
mod dense;
mod double_squeeze;
mod header;
mod kind;
mod lanes;
mod low_rank;
mod properties;
mod random;
mod raw;
mod shared_state;
mod simd;
mod sparse;
mod spec;

pub use context::{EncodeContext, Matrix, PLANES_MAX};
pub use dense::f32::F32;
pub use gathering::Gathering;
pub use kind::{CODECS, CodecKind, PARAMETERS_MAX, parameter_names};
pub use properties::{CodecProperties, Reduction};
pub use simd::without_vectors;
pub use sparse::exact::Sparse;
pub use spec::{CodecSpec, Parameter, ParameterError, Range};

use murmurate_protocol::BytesBound;

/// Why bytes are not what this codec wrote.
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
    /// The bytes end too early or go on too long.
    #[error("field `{field}`: needs {needed} bytes, {found} are there")]
    Length {
        /// The field.
        field: &'static str,
        /// Bytes needed.
        needed: usize,
        /// Bytes there.
        found: usize,
    },
    /// What the group agreed on before is needed to read it, and is another here, or not here.
    #[error(
        "field `{field}` refers to what the group agreed on, and that is not what is held here"
    )]
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

/// Encodes runs of f32 and adds decoded ones into an accumulator.
///
/// Encoding is deterministic: the same values, seeds and state give the same bytes on every
/// machine, and decoding them the same values. What a codec keeps between rounds lies in its
/// [`EncodeContext`]; its own fields hold nothing but scratch.
pub trait Codec: Send {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

    /// What it is, as data.
    fn properties(&self) -> CodecProperties;

    /// Bound on the bytes that encoding appends.
    fn bytes_bound(&self) -> BytesBound;

    /// Appends the encoding of `values` to `out`. Values that are not finite are the caller's to
    /// refuse: their encoding is refused by decoders or finite, nothing else is promised.
    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>);

    /// With error feedback, in one pass where the codec can: encodes `v = delta + residual` and
    /// leaves `v - decode(encode(v))` in the residual (of a codec with decay beta: `v = delta +
    /// beta residual`).
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
        let left = self.decode_add(&out[start..], -1.0, residual);
        debug_assert!(left.is_ok(), "a codec decodes what it encoded: {left:?}");
    }

    /// `acc += weight * decode(bytes)`, strictly: every byte is checked, and `acc` is unchanged
    /// unless all of them are good. Needs nothing but the bytes: what the decoder must know (seeds,
    /// shapes) lies in the encoding.
    ///
    /// # Errors
    /// Which field is wrong.
    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError>;

    /// The codec for the reduction of this one's contributions on its way back. It keeps no state:
    /// who reduces a shard changes from round to round.
    fn aggregate(&self) -> Box<dyn Codec>;

    /// What it makes of contributions that every member holds as they were encoded; `None` where that
    /// is their weighted mean and nothing is kept of it.
    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        None
    }
}
