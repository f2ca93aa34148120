//! Products of a matrix with thin factors: loops of vector instructions.

use crate::compress::simd::Kernel;

/// `acc += weight left right^T`, with the factors' columns one after another.
pub(in crate::compress) struct AddProduct<'a> {
    pub(in crate::compress) left: &'a [f32],
    pub(in crate::compress) right: &'a [f32],
    pub(in crate::compress) rows: usize,
    pub(in crate::compress) columns: usize,
    pub(in crate::compress) weight: f32,
    pub(in crate::compress) acc: &'a mut [f32],
}

impl Kernel for AddProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        const RUN: usize = 64;
        for (row, acc) in self.acc.chunks_mut(self.columns).enumerate() {
            for (at, acc) in acc.chunks_mut(RUN).enumerate() {
                let mut sum = [0.0f32; RUN];
                let columns = self.left.chunks(self.rows);
                for (left, right) in columns.zip(self.right.chunks(self.columns)) {
                    let factor = left[row];
                    let right = &right[at * RUN..at * RUN + acc.len()];
                    for (sum, value) in sum.iter_mut().zip(right) {
                        *sum += factor * value;
                    }
                }
                for (acc, sum) in acc.iter_mut().zip(&sum) {
                    *acc += self.weight * sum;
                }
            }
        }
    }
}

/// `out_r = M in_r` for every column r; `out` is given as zeros.
pub(in crate::compress) struct TimesColumns<'a> {
    /// The matrix, row-major.
    pub(in crate::compress) values: &'a [f32],
    /// Its columns.
    pub(in crate::compress) columns: usize,
    /// The columns that it is multiplied with.
    pub(in crate::compress) right: &'a [f32],
    /// As many, with the matrix's rows.
    pub(in crate::compress) left: &'a mut [f32],
}

impl Kernel for TimesColumns<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        const LANES: usize = 16;
        let rows = self.values.len() / self.columns;
        for (row, values) in self.values.chunks(self.columns).enumerate() {
            let (chunks, rest) = values.as_chunks::<LANES>();
            for (at, right) in self.right.chunks(self.columns).enumerate() {
                let (others, last) = right.as_chunks::<LANES>();
                let mut lanes = [0.0f32; LANES];
                for (chunk, other) in chunks.iter().zip(others) {
                    for lane in 0..LANES {
                        lanes[lane] += chunk[lane] * other[lane];
                    }
                }
                for (lane, (a, b)) in lanes.iter_mut().zip(rest.iter().zip(last)) {
                    *lane += a * b;
                }
                self.left[at * rows + row] = lanes.iter().sum();
            }
        }
    }
}

/// `right_r = M^T left_r` for every column r; `right` is given as zeros.
pub(in crate::compress) struct TransposedTimesColumns<'a> {
    /// The matrix, row-major.
    pub(in crate::compress) values: &'a [f32],
    /// Its columns.
    pub(in crate::compress) columns: usize,
    /// The columns that its transpose is multiplied with.
    pub(in crate::compress) left: &'a [f32],
    /// As many, with the matrix's columns.
    pub(in crate::compress) right: &'a mut [f32],
}

impl Kernel for TransposedTimesColumns<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // Columns whose sums fit into the first cache, and rows that share a pass over them.
        const RUN: usize = 1024;
        const ROWS: usize = 4;
        let rows = self.values.len() / self.columns;
        for first in (0..self.columns).step_by(RUN) {
            let last = (first + RUN).min(self.columns);
            for top in (0..rows).step_by(ROWS) {
                let count = ROWS.min(rows - top);
                let row = |at: usize| {
                    let row = (top + at.min(count - 1)) * self.columns;
                    &self.values[row + first..row + last]
                };
                let (a, b, c, d) = (row(0), row(1), row(2), row(3));
                let right = self.right.chunks_mut(self.columns);
                for (right, left) in right.zip(self.left.chunks(rows)) {
                    let factor = |at: usize| if at < count { left[top + at] } else { 0.0 };
                    let [p, q, r, s] = [factor(0), factor(1), factor(2), factor(3)];
                    let rows = a.iter().zip(b).zip(c.iter().zip(d));
                    for (sum, ((a, b), (c, d))) in right[first..last].iter_mut().zip(rows) {
                        *sum += (p * a + q * b) + (r * c + s * d);
                    }
                }
            }
        }
    }
}
