//! Products of a matrix with thin factors: loops of vector instructions.

use crate::compress::simd::kernel;

kernel! {
    /// `acc += weight left right^T`, with the factors' columns one after another.
    pub(in crate::compress) fn add_product<'a>(
        left: &'a [f32],
        right: &'a [f32],
        rows: usize,
        columns: usize,
        weight: f32,
        acc: &'a mut [f32],
    ) {
        const RUN: usize = 64;
        for (row, acc) in acc.chunks_mut(columns).enumerate() {
            for (at, acc) in acc.chunks_mut(RUN).enumerate() {
                let mut sum = [0.0f32; RUN];
                let factors = left.chunks(rows).zip(right.chunks(columns));
                for (left, right) in factors {
                    let factor = left[row];
                    let right = &right[at * RUN..at * RUN + acc.len()];
                    for (sum, value) in sum.iter_mut().zip(right) {
                        *sum += factor * value;
                    }
                }
                for (acc, sum) in acc.iter_mut().zip(&sum) {
                    *acc += weight * sum;
                }
            }
        }
    }

    /// `out_r = M in_r` for every column r; `out` is given as zeros.
    pub(in crate::compress) fn times_columns<'a>(
        values: &'a [f32],
        columns: usize,
        right: &'a [f32],
        left: &'a mut [f32],
    ) {
        const LANES: usize = 16;
        let rows = values.len() / columns;
        for (row, values) in values.chunks(columns).enumerate() {
            let (chunks, rest) = values.as_chunks::<LANES>();
            for (at, right) in right.chunks(columns).enumerate() {
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
                left[at * rows + row] = lanes.iter().sum();
            }
        }
    }

    /// `right_r = M^T left_r` for every column r; `right` is given as zeros.
    pub(in crate::compress) fn transposed_times_columns<'a>(
        values: &'a [f32],
        columns: usize,
        left: &'a [f32],
        right: &'a mut [f32],
    ) {
        // Columns whose sums fit into the first cache, and rows that share a pass over them.
        const RUN: usize = 1024;
        const ROWS: usize = 4;
        let rows = values.len() / columns;
        for first in (0..columns).step_by(RUN) {
            let last = (first + RUN).min(columns);
            for top in (0..rows).step_by(ROWS) {
                let count = ROWS.min(rows - top);
                let row = |at: usize| {
                    let row = (top + at.min(count - 1)) * columns;
                    &values[row + first..row + last]
                };
                let (a, b, c, d) = (row(0), row(1), row(2), row(3));
                let right = right.chunks_mut(columns);
                for (right, left) in right.zip(left.chunks(rows)) {
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
