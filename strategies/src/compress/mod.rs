//! Codecs: values to bytes and back. One file each, and one line each in `mod.rs` (its module),
//! `raw.rs` (its byte) and `kind.rs` (the list). A codec's file has its `SPEC` (name, source,
//! parameters), its equation, its layout and its special cases.

pub mod feedback;
pub mod gathering;

mod acp_gathering;
mod acp_sgd;
mod ada_comp;
mod atomo;
mod bf16;
mod by_size;
mod chunk_top_k;
mod clt_k;
mod context;
mod count_sketch;
mod dct;
mod de_mo;
mod dgc;
mod double_squeeze;
mod eden;
mod estimated;
mod f32;
mod fetch_sgd;
mod format;
mod fp16;
mod fp4;
mod fp8;
mod gaussian_k;
mod hadamard;
mod header;
mod int;
mod kind;
mod lanes;
mod largest;
mod low_rank;
mod means;
mod merged;
mod min_max;
mod mini_float;
mod natural;
mod nuqsgd;
mod ok_top_k;
mod one_scale;
mod pick;
mod places;
mod planar;
mod power_sgd;
mod properties;
mod qsgd;
mod random;
mod random_k;
mod raw;
mod rotated;
mod sbc;
mod select;
mod shifted;
mod sidco;
mod sign;
mod simd;
mod sparse;
mod spec;
mod sufficient_factors;
mod tern_grad;
mod threshold;
mod top_k;
mod top_k_sampled;
mod values;
mod wangni;

pub use context::{EncodeContext, Matrix, PLANES_MAX};
pub use f32::F32;
pub use gathering::Gathering;
pub use kind::{CODECS, CodecKind, PARAMETERS_MAX, parameter_names};
pub use properties::{CodecProperties, Reduction};
pub use simd::without_vectors;
pub use sparse::Sparse;
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
