//! What a codec is.

use super::feedback;
use super::{CodecError, CodecProperties, EncodeContext, Gathering};
use murmurate_protocol::BytesBound;

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
