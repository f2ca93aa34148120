//! Sums of several encodings: one pass gives the bits of one addition after another.

use crate::slice::{Slice, kind};
use murmurate_strategies::compress::{CODECS, Tiles};
use std::ops::Range;

/// Begins with values of its own, and takes the sum in.
struct Recorded<'a> {
    first: &'a [f32],
    tile: Vec<f32>,
    sum: Vec<f32>,
    runs: Vec<usize>,
}

impl<'a> Recorded<'a> {
    fn new(first: &'a [f32]) -> Self {
        let (tile, sum, runs) = Default::default();
        Self {
            first,
            tile,
            sum,
            runs,
        }
    }
}

impl Tiles for Recorded<'_> {
    fn begin(&mut self, tile: Range<usize>) -> &mut [f32] {
        assert_eq!(tile.start, self.sum.len(), "tiles come in order");
        self.tile = self.first[tile].to_vec();
        &mut self.tile
    }

    fn end(&mut self, tile: Range<usize>) {
        self.sum.extend_from_slice(&self.tile);
        self.runs.push(tile.len());
    }
}

fn values(len: usize, seed: u32) -> Vec<f32> {
    let draw = |at: u32| (at ^ seed).wrapping_mul(0x9e37_79b9).rotate_left(9);
    let value = |at: u32| f32::from((draw(at) >> 16) as i16) * 1e-4;
    (0..len as u32).map(value).collect()
}

#[test]
fn a_sum_in_one_pass_has_the_bits_of_additions_in_turn() {
    for spec in CODECS {
        let mut codec = kind(spec, 0.03).build();
        if codec.properties().reduction == murmurate_strategies::compress::Reduction::Gathered {
            continue;
        }
        for len in [0, 1, 9, 4096, 10_001] {
            let encodings: Vec<Vec<u8>> = (0..3)
                .map(|seed| {
                    let mut bytes = Vec::new();
                    let mut slice = Slice::new(&*codec, len);
                    let context = &mut slice.context(u64::from(seed));
                    codec.encode(&values(len, seed), context, &mut bytes);
                    bytes
                })
                .collect();
            let weighted = encodings.iter().zip([0.25, 0.5, 0.3]);
            let inputs: Vec<(&[u8], f32)> = weighted.map(|(b, w)| (b.as_slice(), w)).collect();
            let first = values(len, 77);
            let mut expected = first.clone();
            for (bytes, weight) in &inputs {
                codec.decode_add(bytes, *weight, &mut expected).unwrap();
            }
            let mut recorded = Recorded::new(&first);
            codec.decode_sum(&inputs, len, &mut recorded).unwrap();
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            let same = bits(&recorded.sum) == bits(&expected);
            assert!(same, "{} of {len}", spec.name);
            let (last, whole) = recorded.runs.split_last().unwrap_or((&0, &[]));
            assert!(whole.iter().all(|run| run.is_multiple_of(8)));
            let small = whole.iter().chain([last]).all(|run| *run <= 4096);
            assert!(small || !codec.has_tiles(&encodings[0]), "{}", spec.name);
        }
    }
}

#[test]
fn a_bad_encoding_among_good_ones_is_refused() {
    for spec in CODECS {
        let mut codec = kind(spec, 0.03).build();
        let (len, mut bytes) = (5000, Vec::new());
        let mut slice = Slice::new(&*codec, len);
        codec.encode(&values(len, 1), &mut slice.context(1), &mut bytes);
        let short = &bytes[..bytes.len() - 1];
        let first = vec![0.0; len];
        let mut recorded = Recorded::new(&first);
        let inputs = [(bytes.as_slice(), 1.0), (short, 1.0)];
        let summed = codec.decode_sum(&inputs, len, &mut recorded);
        assert!(summed.is_err(), "{}", spec.name);
    }
}
