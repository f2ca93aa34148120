//! Codec `atomo`: singular vectors of a matrix, drawn at random. Unbiased.

use super::factors::{Factor, LowRank, RANK, transposed_times_columns};
use super::jacobi::{ROWS, Rotations, STRIDE, fill_gram, squares};
use crate::compress::random::Random;
use crate::compress::simd::vectorized;
use crate::compress::{CodecProperties, CodecSpec, EncodeContext, Matrix};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "atomo",
    tag: 41,
    summary: "some singular vectors of each 64 rows of a matrix, drawn by their singular values",
    equation: "C(M) = sum of s_i / p_i u_i v_i' over the singular triples kept, each with chance p_i",
    source: "Wang et al., NeurIPS 2018",
    parameters: &[RANK],
    build: |kind| {
        Box::new(LowRank::new(
            &SPEC,
            Atomo {
                rank: kind.count("rank"),
                gram: vec![0.0; ROWS * STRIDE],
                basis: vec![0.0; ROWS * STRIDE],
                atoms: Vec::new(),
            },
        ))
    },
};

/// Atomic sparsification over singular vectors.
///
/// ```text
/// M = sum_i sigma_i u_i v_i^T over the singular vectors of 64 rows,
/// p_i = min(1, lambda sigma_i) with sum p_i = s
/// C(M) = sum over the drawn i of sigma_i / p_i u_i v_i^T             E C(M) = M
/// ```
///
/// `E||C(M) - M||^2 <= (sum sigma_i)^2 / s <= 64 / s ||M||^2`: error feedback is not allowed. The
/// u_i are the eigenvectors of `M M^T`, by Jacobi rotations in f64. Since `sigma_i v_i = M^T u_i`,
/// the sum is exact for any orthonormal u_i: rounding of the u_i costs variance and causes no bias.
/// The draws are systematic, as in `wangni`, so that at most s atoms are sent. Contributions are
/// sent relative to the anchor. Reductions return as `f32`.
///
/// Size: `32 s (64 + b)` bits for 64 rows of b values. The paper decomposes whole matrices of a
/// rows; runs of 64 rows take `64 / a` of that time and `a / 64` times the bits. A block of zeros
/// is zero; other special cases as in `power-sgd`.
///
/// Time: for each value 32 multiplications and additions in f64 for `M M^T` and 64 in f32 for
/// `M^T u_i`; for each 64 rows up to 8 x 2016 rotations of 18 x 64 operations in f64.
///
/// Parameter: `rank`, s, the number of atoms of each 64 rows.
///
/// Source: Wang et al., "ATOMO: communication-efficient learning via atomic sparsification"
/// (NeurIPS 2018), algorithm 1 for spectral atoms (number not verified).
#[derive(Clone, Debug)]
struct Atomo {
    rank: usize,
    gram: Vec<f64>,
    basis: Vec<f64>,
    atoms: Vec<f32>,
}

impl Atomo {
    /// Leaves the eigenvectors of the Gram matrix of `rows` rows in the rows of `basis`.
    fn decompose(&mut self, values: &[f32], rows: usize) {
        fill_gram(values, rows, &mut self.gram);
        for i in 0..rows {
            for j in 0..rows {
                let (low, high) = (i.min(j), i.max(j));
                self.gram[low * STRIDE + high] = self.gram[high * STRIDE + low];
                self.basis[i * STRIDE + j] = f64::from(u8::from(i == j));
            }
        }
        vectorized(Rotations {
            rows,
            gram: &mut self.gram,
            basis: &mut self.basis,
        });
    }
}

/// The `lambda` with `sum min(1, lambda sigma_i) = wanted`, or with all probabilities 1 if fewer
/// than `wanted` of the sigma_i are above zero.
fn lambda(sigma: &[f64], wanted: f64) -> f64 {
    let mut lambda = 0.0;
    for _ in 0..=sigma.len() {
        let small = sigma.iter().filter(|s| lambda * **s < 1.0);
        let (sum, count) = small.fold((0.0, 0.0), |(sum, count), s| (sum + s, count + 1.0));
        let left = wanted - (sigma.len() as f64 - count);
        let next = left / sum;
        if sum == 0.0 || left <= 0.0 || next <= lambda {
            break;
        }
        lambda = next;
    }
    lambda
}

impl Factor for Atomo {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            dense: false,
            ..CodecProperties::random(ROWS as f64 / self.rank as f64)
        }
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn rows_max(&self) -> usize {
        ROWS
    }

    fn factor(
        &mut self,
        values: &[f32],
        (at, matrix): (usize, Matrix),
        left: &mut [f32],
        right: &mut [f32],
        context: &mut EncodeContext<'_>,
    ) {
        let (rows, columns) = (matrix.rows, matrix.columns);
        self.decompose(values, rows);
        // u_i one after another, and behind them sigma_i v_i.
        self.atoms.clear();
        let basis = &self.basis;
        let vectors = (0..rows).flat_map(|i| &basis[i * STRIDE..i * STRIDE + rows]);
        self.atoms.extend(vectors.map(|value| *value as f32));
        self.atoms.resize(rows * (rows + columns), 0.0);
        let (vectors, weighted) = self.atoms.split_at_mut(rows * rows);
        transposed_times_columns(values, columns, vectors, weighted);
        let mut sigma = [0.0; ROWS];
        squares(weighted, columns, &mut sigma[..rows]);
        sigma.iter_mut().for_each(|sum| *sum = sum.sqrt());
        let sigma = &sigma[..rows];
        let lambda = lambda(sigma, self.rank.min(rows) as f64);
        let mut sum = f64::from(Random::new(context.seed).unit(at as u32));
        let mut slot = 0;
        for (i, sigma) in sigma.iter().enumerate() {
            let p = (lambda * sigma).min(1.0);
            sum += p;
            if sum < 1.0 || slot == self.rank || p == 0.0 {
                continue;
            }
            sum -= 1.0;
            let vector = &vectors[i * rows..(i + 1) * rows];
            left[slot * rows..(slot + 1) * rows].copy_from_slice(vector);
            let right = &mut right[slot * columns..(slot + 1) * columns];
            for (right, value) in right.iter_mut().zip(&weighted[i * columns..]) {
                *right = (f64::from(*value) / p) as f32;
            }
            slot += 1;
        }
    }
}
