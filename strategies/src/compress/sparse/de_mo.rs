//! Codec `de-mo`: the largest cosine coefficients of every tile. Biased: error feedback is its momentum.

use super::dct::{Dct, TILE};
use super::largest::Largest;
use super::pick::DECAY;
use super::select::fold;
use super::values::VALUES;
use super::{places, values as value_codecs};
use crate::compress::raw::{Header, Inner};
use crate::compress::{
    Codec, CodecError, CodecProperties, CodecSpec, EncodeContext, Parameter, Range, Sparse,
};
use core::cell::RefCell;
use murmurate_protocol::BytesBound;

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "de-mo",
    tag: 39,
    summary: "the largest cosines of every tile of 64 x 64, of a momentum that keeps the others",
    equation: "C(x) = D' (the k largest of D m, tile by tile), m = beta e + x, D the cosine transform",
    source: "Peng et al., arXiv 2411.19870",
    parameters: &[
        KEPT,
        VALUES,
        Parameter {
            default: Some(0.999),
            ..DECAY
        },
    ],
    build: |kind| {
        Box::new(DeMo {
            kept: kind.count("kept"),
            decay: kind.number("decay") as f32,
            values: Inner::new(value_codecs::build(kind)),
            dct: Box::new(Dct::new()),
            scratch: RefCell::default(),
        })
    },
};

const KEPT: Parameter = Parameter {
    name: "kept",
    range: Range::Whole(1, 2048),
    default: Some(32.0),
    about: "the number of cosines that are kept of each 4096, such as 32",
};

/// The largest magnitude that is encoded.
const VALUE_MAX: f32 = 1e30;

/// The largest coefficient that is decoded. The values of a tile then stay far below the largest f32.
const COEFFICIENT_MAX: f32 = 1e33;

/// Decoupled momentum: sends the largest cosine coefficients of a momentum and keeps the rest of
/// it.
///
/// ```text
/// m     = decay m + delta
/// C(m)  = DCT^-1 (the k largest of DCT(m)), tile by tile
/// m     = m - C(m)
/// ```
///
/// The momentum is the residual of error feedback with a decay. The transform is orthonormal, so
/// `||C(x) - x||^2 <= (1 - k / 4096) ||x||^2`. About 41 bits for each kept coefficient, 0.33 for
/// each value with 32 of 4096. Contributions are sent relative to the anchor.
///
/// A tile is 4096 consecutive values in rows of 64, whatever the tensors; the paper cuts each
/// tensor into tiles of its own. The sign that the paper takes of the mean is the inner optimizer's
/// here: `signum` with `momentum = 0`, on gradients.
///
/// Layout: the codec's byte, k (u16), packed places (4096 times the tile, plus 64 u + v), the
/// values in a codec of their own. The last tile is padded with zeros. Magnitudes beyond 1e30 are
/// encoded as 1e30.
///
/// Source: Peng, Quesnelle and Kingma, "DeMo: decoupled momentum optimization" (arXiv 2411.19870),
/// algorithm 1 (number not verified).
struct DeMo {
    kept: usize,
    decay: f32,
    values: Inner,
    dct: Box<Dct>,
    scratch: RefCell<Scratch>,
}

#[derive(Default)]
struct Scratch {
    tile: Vec<f32>,
    chosen: Vec<u32>,
    values: Vec<f32>,
    largest: Largest,
}

impl Scratch {
    /// The one tile there is room for, with these values and zeros behind them.
    fn tile(&mut self, values: &[f32]) -> &mut [f32; TILE] {
        self.tile.clear();
        let within = values.iter().map(|v| v.clamp(-VALUE_MAX, VALUE_MAX));
        self.tile.extend(within);
        self.tile.resize(TILE, 0.0);
        let (tiles, _) = self.tile.as_chunks_mut::<TILE>();
        tiles.first_mut().expect("it has been made as long")
    }
}

impl DeMo {
    fn header(&self) -> Header {
        Header::new(SPEC.tag).with((self.kept as u16).to_le_bytes())
    }

    fn read(&self, bytes: &[u8], len: usize, scratch: &mut Scratch) -> Result<(), CodecError> {
        let body = self.header().expect(bytes)?;
        let tiles = len.div_ceil(TILE);
        let (places, most) = (tiles * TILE, tiles * self.kept);
        let rest = places::read(body, places, most, &mut scratch.chosen)?;
        scratch.values.clear();
        scratch.values.resize(scratch.chosen.len(), 0.0);
        self.values.decode_add(rest, 1.0, &mut scratch.values)?;
        if scratch.values.iter().all(|v| v.abs() <= COEFFICIENT_MAX) {
            Ok(())
        } else {
            Err(CodecError::OutOfRange { field: "values" })
        }
    }
}

impl Codec for DeMo {
    fn properties(&self) -> CodecProperties {
        let cosines = CodecProperties::biased(1.0 - self.kept as f64 / TILE as f64);
        CodecProperties {
            decay: self.decay,
            ..cosines.followed_by(self.values.properties())
        }
    }

    fn bytes_bound(&self) -> BytesBound {
        let density = self.kept as f64 / TILE as f64;
        let (fixed, per_1024) = places::bound_with(density, self.values.bytes_bound());
        // A tile more by padding: eight bytes at most for each of its values.
        BytesBound {
            fixed: 3 + fixed + 8 * (1 + self.kept as u64) + TILE as u64 / 8,
            per_1024,
        }
    }

    fn encode(&mut self, values: &[f32], context: &mut EncodeContext<'_>, out: &mut Vec<u8>) {
        let scratch = self.scratch.get_mut();
        scratch.chosen.clear();
        scratch.values.clear();
        for (first, values) in (0u32..).step_by(TILE).zip(values.chunks(TILE)) {
            self.dct.forward(scratch.tile(values));
            let Scratch {
                tile,
                chosen,
                values,
                largest,
            } = scratch;
            let start = chosen.len();
            largest.choose_chunk(tile, 0, self.kept, chosen);
            for place in &mut chosen[start..] {
                values.push(tile[*place as usize]);
                *place += first;
            }
        }
        out.extend_from_slice(self.header().bytes());
        let places = values.len().div_ceil(TILE) * TILE;
        let scratch = self.scratch.get_mut();
        places::write(&scratch.chosen, places, out);
        self.values.encode(&scratch.values, context, out);
    }

    fn encode_residual(
        &mut self,
        delta: &[f32],
        residual: &mut [f32],
        context: &mut EncodeContext<'_>,
        out: &mut Vec<u8>,
    ) {
        assert_eq!(delta.len(), residual.len());
        fold(delta, residual, self.decay);
        let start = out.len();
        self.encode(residual, context, out);
        let left = self.decode_add(&out[start..], -1.0, residual);
        debug_assert!(left.is_ok(), "a codec decodes what it encoded: {left:?}");
    }

    fn decode_add(&self, bytes: &[u8], weight: f32, acc: &mut [f32]) -> Result<(), CodecError> {
        let scratch = &mut *self.scratch.borrow_mut();
        self.read(bytes, acc.len(), scratch)?;
        let mut at = 0;
        for (first, acc) in (0..).step_by(TILE).zip(acc.chunks_mut(TILE)) {
            let left = &scratch.chosen[at..];
            let count = left.partition_point(|place| (*place as usize) < first + TILE);
            if count == 0 {
                continue;
            }
            scratch.tile(&[]);
            for of in at..at + count {
                scratch.tile[scratch.chosen[of] as usize - first] = scratch.values[of];
            }
            at += count;
            let (tiles, _) = scratch.tile.as_chunks_mut::<TILE>();
            for tile in tiles {
                self.dct.inverse(tile);
            }
            for (a, value) in acc.iter_mut().zip(&scratch.tile) {
                *a += weight * value;
            }
        }
        Ok(())
    }

    fn aggregate(&self) -> Box<dyn Codec> {
        Box::new(Sparse::default())
    }
}
