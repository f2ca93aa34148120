//! What a codec is.

use super::feedback;
use super::{CodecError, CodecProperties, EncodeContext, Gathering, TwoPasses};
use murmurate_protocol::BytesBound;

/// Another codec than that of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The one with this byte, with its default parameters: the owner names it.
    Tag(u8),
    /// The one at this place of the run's ladder, in which the configured one is at zero: the members choose it.
    Rung(u8),
}

/// What is done with the tiles of a sum while they are in a cache. They come in order; all but the
/// last are a multiple of eight values long.
pub trait Tiles {
    /// Writes what the sum begins with into the tile that begins at `start`.
    fn begin(&mut self, start: usize, tile: &mut [f32]);

    /// Takes in a tile of the sum.
    fn end(&mut self, tile: &[f32]);
}

/// Encodes runs of f32 and adds decoded ones into an accumulator.
///
/// Encoding is deterministic: the same values, seeds and state give the same bytes on every
/// machine, and decoding gives the same values. The state that a codec keeps between rounds is in
/// its [`EncodeContext`]; its own fields are scratch memory only.
pub trait Codec: Send {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

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

    /// `acc = begin + sum_k weight_k decode(bytes_k)`, in this order: the same bits as
    /// [`Codec::decode_add`] of one after another, in one pass over `acc` if the codec can. `acc`
    /// is of no use if it fails.
    ///
    /// # Errors
    /// Which field of some encoding is wrong.
    fn decode_sum(
        &self,
        inputs: &[(&[u8], f32)],
        acc: &mut [f32],
        tiles: &mut dyn Tiles,
    ) -> Result<(), CodecError> {
        tiles.begin(0, acc);
        for (bytes, weight) in inputs {
            self.decode_add(bytes, *weight, acc)?;
        }
        tiles.end(acc);
        Ok(())
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
