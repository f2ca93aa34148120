//! Helpers of several rules: distances summed in a fixed order, and sorting networks over lanes.
//! Plain loops that the compiler turns into vector instructions; the same bits on every machine.

use super::Input;
use std::ops::Range;

/// Values that are summed in f32 before they are added to a sum in f64; sums of as many stay in the first-level cache.
pub(super) const RUN: usize = 1024;

/// Coordinates that a sorting network sorts at once.
pub(super) const LANES: usize = 64;

/// `sum_d f(a_d, b_d)`: sixteen f32 lanes over runs of 1024, then f64 in order.
fn sum_of(a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) -> f64 {
    let mut total = 0.0f64;
    for (a, b) in a.chunks(RUN).zip(b.chunks(RUN)) {
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
        let mut lanes = [0.0f32; 16];
        for (a, b) in a.iter().zip(b) {
            for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
                *lane += f(*a, *b);
            }
        }
        let rest = a_rest.iter().zip(b_rest).map(|(a, b)| f(*a, *b));
        total += lanes.into_iter().chain(rest).map(f64::from).sum::<f64>();
    }
    total
}

/// `||a - b||^2`.
pub(super) fn distance_squared(a: &[f32], b: &[f32]) -> f64 {
    sum_of(a, b, |a, b| (a - b) * (a - b))
}

/// `||a||^2`.
pub(super) fn norm_squared(a: &[f32]) -> f64 {
    sum_of(a, a, |a, _| a * a)
}

/// `||x_k - center||^2` for every input, in runs, so that the center is read from memory once.
pub(super) fn distances_to(inputs: &[Input<'_>], center: &[f32]) -> Vec<f64> {
    let mut squares = vec![0.0; inputs.len()];
    for (at, center) in center.chunks(RUN).enumerate() {
        for (square, (values, _)) in squares.iter_mut().zip(inputs) {
            *square += distance_squared(&values[at * RUN..at * RUN + center.len()], center);
        }
    }
    squares
}

/// `out = sum_k share_k x_k`, in the order given.
pub(super) fn weighted_sum<'a>(inputs: impl Iterator<Item = (&'a [f32], f32)>, out: &mut [f32]) {
    let inputs: Vec<_> = inputs.collect();
    // By runs, so that `out` stays in the nearest cache over all inputs.
    for (at, out) in out.chunks_mut(RUN).enumerate() {
        out.fill(0.0);
        for (values, share) in &inputs {
            let values = &values[at * RUN..at * RUN + out.len()];
            out.iter_mut()
                .zip(values)
                .for_each(|(o, x)| *o += share * x);
        }
    }
}

/// A sorting network: pairs of places to compare and exchange, independent of the values.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    count: usize,
    pairs: Vec<(usize, usize)>,
}

impl Network {
    /// Merge exchange for `count` places. Source: Batcher (1968), as algorithm 5.2.2 M of Knuth,
    /// "The art of computer programming", volume 3.
    fn new(count: usize) -> Self {
        let mut pairs = Vec::new();
        let top = count.next_power_of_two() / 2;
        let mut p = top;
        while p > 0 {
            let (mut q, mut r, mut d) = (top, 0, p);
            loop {
                let low = (0..count.saturating_sub(d)).filter(|i| i & p == r);
                pairs.extend(low.map(|i| (i, i + d)));
                if q == p {
                    break;
                }
                (d, q, r) = (q - p, q / 2, p);
            }
            p /= 2;
        }
        Self { count, pairs }
    }

    pub(super) fn fit(&mut self, count: usize) {
        if self.count != count || self.pairs.is_empty() {
            *self = Self::new(count);
        }
    }

    /// Sorts each lane's column, smallest first.
    fn sort(&self, columns: &mut [[f32; LANES]]) {
        for (low, high) in &self.pairs {
            let (head, tail) = columns.split_at_mut(*high);
            let (low, high) = (&mut head[*low], &mut tail[0]);
            for (a, b) in low.iter_mut().zip(high) {
                // Two conditions, each one minimum or maximum instruction; one condition for both becomes a
                // branch that is mispredicted half the time. There is no NaN here.
                let (x, y) = (*a, *b);
                *a = if x < y { x } else { y };
                *b = if y < x { x } else { y };
            }
        }
    }

    /// Sorts the inputs coordinate by coordinate and hands `f` blocks of lanes: where they lie, and
    /// the sorted columns (`columns[k][lane]` is the k-th smallest).
    pub(super) fn sorted(
        &mut self,
        inputs: &[&[f32]],
        len: usize,
        mut f: impl FnMut(Range<usize>, &[[f32; LANES]]),
    ) {
        self.fit(inputs.len());
        let mut columns = vec![[0.0f32; LANES]; inputs.len()];
        let mut start = 0;
        while start < len {
            let range = start..(start + LANES).min(len);
            for (column, values) in columns.iter_mut().zip(inputs) {
                column[..range.len()].copy_from_slice(&values[range.clone()]);
            }
            self.sort(&mut columns);
            f(range.clone(), &columns);
            start = range.end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_sort_everything_of_zeros_and_ones() {
        // The zero-one principle: a network that sorts those sorts all.
        for count in 1..=12usize {
            let network = Network::new(count);
            for bits in 0..1u32 << count {
                let mut columns: Vec<[f32; LANES]> = (0..count)
                    .map(|k| [(bits >> k & 1) as f32; LANES])
                    .collect();
                network.sort(&mut columns);
                assert!(columns.windows(2).all(|pair| pair[0][0] <= pair[1][0]));
                let ones = columns.iter().filter(|column| column[5] == 1.0).count();
                assert_eq!(ones, bits.count_ones() as usize);
            }
        }
        assert_eq!(Network::new(8).pairs.len(), 19, "Batcher's count for eight");
    }

    #[test]
    fn distances_are_those_of_f64() {
        for len in [0usize, 1, 7, 16, 17, 1023, 1024, 1025, 5000] {
            let a: Vec<f32> = (0..len).map(|i| ((i * 37) % 101) as f32 / 7.0).collect();
            let b: Vec<f32> = (0..len).map(|i| ((i * 53) % 89) as f32 / 5.0).collect();
            let exact: f64 = a
                .iter()
                .zip(&b)
                .map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2))
                .sum();
            // f32 rounding within runs of 1024.
            assert!((distance_squared(&a, &b) - exact).abs() <= 1e-5 * exact);
            assert_eq!(norm_squared(&a), distance_squared(&a, &vec![0.0; len]));
        }
    }
}
