//! Eigenvectors of the Gram matrix of some rows, by Jacobi rotations in f64. Every sum runs in the
//! order of its terms; only different sums run at the same time.

use crate::compress::simd::{Kernel, kernel};

/// The number of rows that are decomposed together.
pub(super) const ROWS: usize = 64;

/// Values from one row of a matrix to the next. It is no power of two, so that the values of a
/// column fall into different sets of the cache.
pub(super) const STRIDE: usize = ROWS + 8;

/// Sweeps of Jacobi rotations. They converge quadratically, and any orthonormal basis is unbiased.
const SWEEPS: usize = 8;

/// Products of two rows that are smaller than this part of the sum of all squares are rounding: a singular value
/// moves by less than 3e-8 of the matrix's length, which is less than f32 keeps.
const PRECISION: f64 = 1e-15;

/// Columns whose values are converted together. They fit into the first-level cache.
const DEPTH: usize = 32;

/// Rows and columns of products that are summed at the same time.
const TALL: usize = 4;
const WIDE: usize = 16;

kernel! {
    /// Leaves `M M^T` in the lower half of `gram`, for M of at most [`ROWS`] rows.
    pub(super) fn fill_gram<'a>(values: &'a [f32], rows: usize, gram: &'a mut [f64]) {
        let columns = values.len() / rows;
        // What a sum in order begins with.
        let zero = core::iter::empty::<f64>().sum::<f64>();
        gram.fill(zero);
        let mut turned = [[0.0f64; ROWS]; DEPTH];
        for first in (0..columns).step_by(DEPTH) {
            let depth = DEPTH.min(columns - first);
            for (row, values) in values.chunks(columns).enumerate() {
                let values = &values[first..first + depth];
                for (column, value) in turned.iter_mut().zip(values) {
                    column[row] = f64::from(*value);
                }
            }
            for top in (0..rows).step_by(TALL) {
                for left in (0..top + TALL).step_by(WIDE) {
                    add_products(&turned[..depth], (top, left), gram);
                }
            }
        }
    }
}

/// Adds the products of columns to a part of the Gram matrix. The arrays have a length that the
/// compiler knows, so that it makes vectors of the sums of a row.
#[inline(always)]
fn add_products(columns: &[[f64; ROWS]], (top, left): (usize, usize), gram: &mut [f64]) {
    let mut sums = [[0.0f64; WIDE]; TALL];
    for (row, sums) in sums.iter_mut().enumerate() {
        sums.copy_from_slice(&gram[(top + row) * STRIDE + left..][..WIDE]);
    }
    for column in columns {
        let (mut tall, mut wide) = ([0.0f64; TALL], [0.0f64; WIDE]);
        tall.copy_from_slice(&column[top..][..TALL]);
        wide.copy_from_slice(&column[left..][..WIDE]);
        for row in 0..TALL {
            for at in 0..WIDE {
                sums[row][at] += tall[row] * wide[at];
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        gram[(top + row) * STRIDE + left..][..WIDE].copy_from_slice(sums);
    }
}

/// Turns a Gram matrix by rotations until it is diagonal; leaves its eigenvectors in the rows of
/// `basis`, which begins as the identity. All arithmetic goes along rows, as columns equal them.
pub(super) struct Rotations<'a> {
    pub(super) rows: usize,
    pub(super) gram: &'a mut [f64],
    pub(super) basis: &'a mut [f64],
}

impl Kernel for Rotations<'_> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let trace: f64 = (0..self.rows).map(|i| self.gram[i * STRIDE + i]).sum();
        for _ in 0..SWEEPS {
            let mut turned = false;
            for p in 0..self.rows {
                for q in p + 1..self.rows {
                    turned |= self.rotate(p, q, PRECISION * trace);
                }
            }
            if !turned {
                break;
            }
        }
    }
}

impl Rotations<'_> {
    /// The rotation that makes the p-th and the q-th row orthogonal, if their product is above `noise`. False:
    /// nothing changed.
    #[inline(always)]
    fn rotate(&mut self, p: usize, q: usize, noise: f64) -> bool {
        let gram = &mut *self.gram;
        let at = |row: usize, column: usize| row * STRIDE + column;
        let (off, one, other) = (gram[at(p, q)], gram[at(p, p)], gram[at(q, q)]);
        if off.abs() <= noise {
            return false;
        }
        let theta = (other - one) / (2.0 * off);
        let tangent = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
        let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
        let turn = (cosine, tangent * cosine);
        turn_rows(gram, (p, q), turn);
        turn_rows(self.basis, (p, q), turn);
        // Where the two rows cross their columns, both sides of the matrix turn.
        gram[at(p, p)] = one - tangent * off;
        gram[at(q, q)] = other + tangent * off;
        (gram[at(p, q)], gram[at(q, p)]) = (0.0, 0.0);
        for k in 0..self.rows {
            (gram[at(k, p)], gram[at(k, q)]) = (gram[at(p, k)], gram[at(q, k)]);
        }
        true
    }
}

#[inline(always)]
fn turn_rows(matrix: &mut [f64], (p, q): (usize, usize), (cosine, sine): (f64, f64)) {
    let (above, below) = matrix.split_at_mut(q * STRIDE);
    let rows = above[p * STRIDE..][..ROWS]
        .iter_mut()
        .zip(&mut below[..ROWS]);
    for (a, b) in rows {
        (*a, *b) = (cosine * *a - sine * *b, sine * *a + cosine * *b);
    }
}

/// Rows whose squares are summed at the same time.
const SUMS: usize = 8;

/// The sums of the squares of rows, in f64, each in order.
pub(super) fn squares(values: &[f32], columns: usize, sums: &mut [f64]) {
    let all = values.chunks(SUMS * columns).zip(sums.chunks_mut(SUMS));
    for (rows, sums) in all {
        sums.fill(core::iter::empty::<f64>().sum::<f64>());
        if sums.len() < SUMS {
            for (sum, row) in sums.iter_mut().zip(rows.chunks(columns)) {
                *sum = row.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
            }
            continue;
        }
        let rows: [&[f32]; SUMS] = core::array::from_fn(|row| &rows[row * columns..][..columns]);
        for at in 0..columns {
            for (sum, row) in sums.iter_mut().zip(rows) {
                *sum += f64::from(row[at]) * f64::from(row[at]);
            }
        }
    }
}
