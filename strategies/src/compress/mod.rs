//! Codecs: values to bytes and back. One file each.

pub mod feedback;

mod bf16;
mod f32;
mod int8;
mod kind;
mod raw;
mod sparse;
mod top_k;

pub use bf16::Bf16;
pub use f32::F32;
pub use int8::{INT8_BLOCK, Int8};
pub use kind::CodecKind;
pub use sparse::Sparse;
pub use top_k::TopK;

use murmurate_protocol::BytesBound;

/// What a codec is, as data: the plan refuses combinations that cannot work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodecProperties {
    /// Whether decode(encode(x)) == x bit for bit.
    pub lossless: bool,
    /// Whether E[decode(encode(x))] == x, or rounding is to nearest with no bias over symmetric
    /// values: may be used without error feedback.
    pub unbiased: bool,
    /// Whether it may carry parameters themselves (dense, small relative error).
    pub dense: bool,
    /// delta in E||C(x) - x||^2 <= (1 - delta) ||x||^2.
    pub contraction: f64,
    /// f32 per parameter that the codec keeps between rounds (error feedback: one).
    pub state_multiple: f64,
}

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
/// Encoding is deterministic: the same values give the same bytes on every machine. A codec holds
/// no per-fragment state; error feedback is the Executor's (`e += x - decode(encode(x))`).
pub trait Codec: Send {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

    /// What it is, as data.
    fn properties(&self) -> CodecProperties;

    /// Bound on the bytes that [`Codec::encode`] appends.
    fn bytes_bound(&self) -> BytesBound;

    /// Appends the encoding of `values` (finite f32) to `out`.
    fn encode(&mut self, values: &[f32], out: &mut Vec<u8>);

    /// `acc += weight * decode(bytes)`, strictly: every byte is checked, and `acc` is unchanged
    /// unless all of them are good.
    ///
    /// # Errors
    /// Which field is wrong.
    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError>;

    /// The codec for the reduction of this one's contributions on its way back.
    fn aggregate(&self) -> Box<dyn Codec>;
}
