//! Codec `sufficient-factors`: gradients of wide layers as sums of few outer products.

use super::factors::{Factor, LowRank, transposed_times_columns};
use crate::compress::simd::kernel;
use crate::compress::{
    CodecProperties, CodecSpec, EncodeContext, Matrix, Parameter, Range as Values,
};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "sufficient-factors",
    tag: 56,
    summary: "the gradients of wide layers as products of two vectors, one for each sample of a batch",
    equation: "C(M) = sum_{k < s} u_k v_k', u_k the longest column of what is left, v_k = what is left' u_k",
    source: "Xie et al., UAI 2016; Zhang et al., USENIX ATC 2017",
    parameters: &[SAMPLES],
    build: |kind| {
        Box::new(LowRank::new(
            &SPEC,
            SufficientFactors {
                samples: kind.count("samples"),
                rest: Vec::new(),
                lengths: Vec::new(),
            },
        ))
    },
};

const SAMPLES: Parameter = Parameter {
    name: "samples",
    range: Values::Whole(1, 255),
    default: Some(32.0),
    about: "samples of a batch (for text: samples times tokens), the most outer products in a gradient",
};

/// The part of a matrix, as a share of its norm, that counts as rounding.
const ROUNDING: f32 = 1e-6;

/// The factors of a sum of few outer products.
///
/// ```text
/// M = sum over the samples b of u_b v_b^T     (u_b: what came back to the layer, v_b: what went in)
/// R_0 = M,  u_k = R_k's longest column / its length,  v_k = R_k^T u_k,  R_{k+1} = R_k - u_k v_k^T
/// C(M) = sum_{k < s} u_k v_k^T
/// ```
///
/// The gradient of a layer over a batch of s samples has a rank of at most s. After s steps only
/// rounding is left, so the result is as good as the paper's own pairs, which a trainer would have
/// to expose. With more samples C(M) is a projection: `||C(M) - M|| <= ||M||`; no constant is
/// published. Biased: needs error feedback. Contributions are sent relative to the anchor.
/// Reductions return as `f32`. With exchange `gathered`, which broadcasts contributions, this is
/// SFB.
///
/// Size: `32 s (a + b)` bits for `a x b` values. A matrix for which that is not shorter is sent
/// exactly (Poseidon's choice, layer by layer), as are all other values. Special cases as in
/// `power-sgd`.
///
/// Parameter: `samples`, s, the samples of a batch (for text: samples times tokens).
///
/// Source: Xie et al., "Lighter-Communication Distributed Machine Learning via Sufficient Factor
/// Broadcasting" (UAI 2016); Zhang et al., "Poseidon" (USENIX ATC 2017), section 4.2 (number not
/// verified).
#[derive(Clone, Debug)]
struct SufficientFactors {
    samples: usize,
    /// R, while a matrix is factored.
    rest: Vec<f32>,
    /// Squared lengths of its columns.
    lengths: Vec<f32>,
}

impl Factor for SufficientFactors {
    fn properties(&self) -> CodecProperties {
        CodecProperties::biased(1.0)
    }

    fn rank(&self) -> usize {
        self.samples
    }

    fn factor(
        &mut self,
        values: &[f32],
        (_, matrix): (usize, Matrix),
        left: &mut [f32],
        right: &mut [f32],
        _: &mut EncodeContext<'_>,
    ) {
        let Matrix { rows, columns, .. } = matrix;
        // Squares of what is far from one leave the range of f32.
        let largest = values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
        if largest == 0.0 {
            return;
        }
        self.rest.clear();
        self.rest.extend(values.iter().map(|v| v / largest));
        self.lengths.clear();
        self.lengths.resize(columns, 0.0);
        for row in self.rest.chunks(columns) {
            for (length, value) in self.lengths.iter_mut().zip(row) {
                *length += value * value;
            }
        }
        let whole: f32 = self.lengths.iter().sum();
        let factors = left.chunks_mut(rows).zip(right.chunks_mut(columns));
        for (left, right) in factors {
            let longest = self.lengths.iter().zip(0..);
            let longest = longest.max_by(|(a, _), (b, _)| a.total_cmp(b));
            let Some((_, pivot)) = longest.filter(|(l, _)| **l > ROUNDING * ROUNDING * whole)
            else {
                break;
            };
            let column = self.rest.iter().skip(pivot).step_by(columns);
            let squares = column.clone().map(|v| f64::from(*v) * f64::from(*v));
            let length = squares.sum::<f64>().sqrt();
            for (left, value) in left.iter_mut().zip(column) {
                *left = (f64::from(*value) / length) as f32;
            }
            transposed_times_columns(&self.rest, columns, left, right);
            subtract(left, right, &mut self.rest, &mut self.lengths);
            right.iter_mut().for_each(|v| *v *= largest);
        }
    }
}

kernel! {
    /// `rest -= left right^T`, and the squared lengths of its columns.
    fn subtract<'a>(
        left: &'a [f32],
        right: &'a [f32],
        rest: &'a mut [f32],
        lengths: &'a mut [f32],
    ) {
        lengths.fill(0.0);
        let rows = rest.chunks_mut(right.len());
        for (row, left) in rows.zip(left) {
            let columns = row.iter_mut().zip(right).zip(lengths.iter_mut());
            for ((value, right), length) in columns {
                *value -= left * right;
                *length += *value * *value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::compress::{CodecKind, EncodeContext, Matrix};

    const ROWS: usize = 60;
    const COLUMNS: usize = 90;

    /// A sum of `samples` products of vectors of very different lengths, and a bias.
    fn gradient(samples: usize) -> Vec<f32> {
        let noise = |at: usize| {
            (at as u32)
                .wrapping_mul(2_654_435_761)
                .rotate_left(13)
                .wrapping_mul(0x9E37_79B1) as f32
                / 4_294_967_296.0
                - 0.5
        };
        let mut values = vec![0.0; ROWS * COLUMNS];
        for sample in 0..samples {
            let scale = 10f32.powi(-(sample as i32 % 4));
            for row in 0..ROWS {
                for column in 0..COLUMNS {
                    values[row * COLUMNS + column] += scale
                        * noise(1 + sample * ROWS + row)
                        * noise(100_000 + sample * COLUMNS + column);
                }
            }
        }
        values.extend((0..ROWS).map(noise));
        values
    }

    fn sent(samples: usize, values: &[f32]) -> (Vec<f32>, usize) {
        let kind = CodecKind::new("sufficient-factors", &[("samples", samples as f64)]);
        let mut codec = kind.expect("in range").build();
        let matrices = [Matrix {
            offset: 0,
            rows: ROWS,
            columns: COLUMNS,
        }];
        let mut memory = Vec::new();
        let mut context = EncodeContext {
            matrices: &matrices,
            ..EncodeContext::seeded(1, &mut memory)
        };
        let mut bytes = Vec::new();
        codec.encode(values, &mut context, &mut bytes);
        let mut decoded = vec![0.0; values.len()];
        codec
            .decode_add(&bytes, 1.0, &mut decoded)
            .expect("own bytes");
        (decoded, bytes.len())
    }

    fn off(a: &[f32], b: &[f32]) -> f64 {
        let length =
            |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
        let mut gaps = a.iter().zip(b).map(|(a, b)| f64::from(*a) - f64::from(*b));
        length(&mut gaps) / length(&mut b.iter().map(|v| f64::from(*v)))
    }

    #[test]
    fn the_gradient_of_a_batch_is_sent_whole_in_fewer_bytes() {
        for samples in [1, 3, 8, 20] {
            let values = gradient(samples);
            let (decoded, bytes) = sent(samples, &values);
            assert!(
                off(&decoded, &values) < 2e-6,
                "{samples}: {}",
                off(&decoded, &values)
            );
            let factors = 4 * samples * (ROWS + COLUMNS);
            assert_eq!(bytes, 2 + 4 + 12 + factors + 4 * ROWS, "{samples}");
            assert!(bytes < 4 * values.len());
            // More room than there are products changes nothing.
            let (roomy, _) = sent(samples + 5, &values);
            assert!(off(&roomy, &values) < 2e-6, "{samples}");
        }
    }

    #[test]
    fn of_more_samples_the_largest_part_is_sent_and_never_more_than_there_is() {
        let values = gradient(30);
        let mut before = 1.0;
        for samples in [2, 5, 10, 20, 30] {
            let (decoded, _) = sent(samples, &values);
            let off = off(&decoded, &values);
            assert!(off < before, "{samples}: {off}");
            before = off;
        }
    }

    #[test]
    fn a_matrix_that_would_not_get_shorter_goes_exactly() {
        let values = gradient(50);
        let (decoded, bytes) = sent(50, &values);
        assert_eq!(decoded, values);
        assert_eq!(bytes, 2 + 4 + 4 * values.len());
    }

    #[test]
    fn magnitudes_near_the_ends_of_the_range_are_no_obstacle() {
        for scale in [1e-30f32, 1e28] {
            let values: Vec<f32> = gradient(3).iter().map(|v| v * scale).collect();
            let (decoded, _) = sent(3, &values);
            assert!(off(&decoded, &values) < 2e-6, "{scale}");
        }
        let zeros = vec![0.0; ROWS * COLUMNS + ROWS];
        assert_eq!(sent(3, &zeros).0, zeros);
    }
}
