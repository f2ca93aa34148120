//! The randomized Hadamard rotation, in place. `rotated`, `drive` and `eden` apply it before they
//! quantize and undo it afterwards.

use crate::compress::random::Random;

/// `H D x / sqrt(n)`, with D random signs and H Hadamard's matrix of n = 2^m rows. The matrix is
/// orthogonal. Every result is a sum of all values with random signs, so it is nearly normal for
/// any x.
#[inline(always)]
pub(in crate::compress) fn rotate(values: &mut [f32], seed: u32) {
    flip(values, seed);
    transform(values);
}

/// The inverse: `D H x / sqrt(n)`.
#[inline(always)]
pub(in crate::compress) fn rotate_back(values: &mut [f32], seed: u32) {
    transform(values);
    flip(values, seed);
}

#[inline(always)]
fn flip(values: &mut [f32], seed: u32) {
    let random = Random::new(u64::from(seed));
    for (index, value) in (0u32..).zip(values) {
        let sign = random.bits(index) & 0x8000_0000;
        *value = f32::from_bits(value.to_bits() ^ sign);
    }
}

/// `H x / sqrt(n)` by log2 n stages of sums and differences (Fino and Algazi, "Unified matrix
/// treatment of the fast Walsh-Hadamard transform", IEEE Trans. Comp. 1976). The length is a power
/// of two.
#[inline(always)]
fn transform(values: &mut [f32]) {
    debug_assert!(values.len().is_power_of_two());
    let scale = 1.0 / (values.len() as f32).sqrt();
    let mut half = 1;
    if values.len() >= 16 {
        for run in values.as_chunks_mut::<16>().0 {
            *run = within_sixteen(*run, scale);
        }
        half = 16;
    } else {
        values.iter_mut().for_each(|value| *value *= scale);
    }
    while half < values.len() {
        for pair in values.chunks_exact_mut(2 * half) {
            let (left, right) = pair.split_at_mut(half);
            for (a, b) in left.iter_mut().zip(right) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
}

/// The first four stages, which stay within vectors, and the scale.
#[inline(always)]
fn within_sixteen(run: [f32; 16], scale: f32) -> [f32; 16] {
    let first = stage::<1>(run.map(|value| value * scale));
    stage::<8>(stage::<4>(stage::<2>(first)))
}

/// One stage: sums at the indices without the bit `HALF`, differences at those with it.
#[inline(always)]
fn stage<const HALF: usize>(run: [f32; 16]) -> [f32; 16] {
    let mut out = [0.0; 16];
    for at in 0..16 {
        let other = run[at ^ HALF];
        let sign = if at & HALF == 0 { 1.0 } else { -1.0 };
        out[at] = other + sign * run[at];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_hadamards_matrix() {
        for len in [1usize, 2, 8, 16, 64, 1024] {
            for unit in [0, len / 2, len - 1] {
                let mut values = vec![0.0f32; len];
                values[unit] = 1.0;
                transform(&mut values);
                for (row, value) in values.iter().enumerate() {
                    let sign = 1.0 - 2.0 * ((row & unit).count_ones() % 2) as f32;
                    let expected = sign / (len as f32).sqrt();
                    assert!((value - expected).abs() < 1e-7, "{len} {unit} {row}");
                }
            }
        }
    }

    #[test]
    fn rotating_back_gives_what_was_there_and_keeps_the_norm() {
        let values: Vec<f32> = (0..1024).map(|i| ((i * 37) % 101) as f32 - 50.0).collect();
        let mut turned = values.clone();
        rotate(&mut turned, 9);
        let norm = |v: &[f32]| v.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
        assert!((norm(&turned) / norm(&values) - 1.0).abs() < 1e-6);
        rotate_back(&mut turned, 9);
        for (a, b) in turned.iter().zip(&values) {
            assert!((a - b).abs() < 1e-4);
        }
    }
}
