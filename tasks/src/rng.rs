//! Randomness of the tasks: one ChaCha8 stream for each purpose, so that draws of one do not change
//! another, with arithmetic that is the same on every machine.
//!
//! Initial parameters are drawn here, each tensor from a stream of its own. burn's generator is not used,
//! because a process shares it. So all peers of a run start from the same bits.

use murmurate_strategies::TensorSpec;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Stream of the initial parameters.
pub(crate) const PARAMETERS: u32 = 1;
/// Stream of the split into shards.
pub(crate) const SHARDS: u32 = 2;
/// Stream of the order of samples in a pass over the data.
pub(crate) const PASSES: u32 = 3;
/// Stream of random choices within a batch.
pub(crate) const BATCHES: u32 = 4;
/// Stream of tokens that a model draws.
pub(crate) const SAMPLES: u32 = 5;
/// Stream of the order of windows of text that are shuffled together.
pub(crate) const WINDOWS: u32 = 16;
/// The order of units in an epoch of blocks.
pub(crate) const EPOCHS: u32 = 17;

/// The generator of (seed, purpose, number).
pub(crate) fn stream(seed: u64, purpose: u32, number: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..12].copy_from_slice(&purpose.to_le_bytes());
    key[16..24].copy_from_slice(&number.to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

/// The seed of one peer's data order: of run and shard.
pub(crate) fn shard_seed(seed: u64, shard: u32) -> u64 {
    seed ^ (u64::from(shard) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The seed of one rank's data order, of that of its peer. Rank 0 has the peer's.
pub(crate) fn rank_seed(seed: u64, rank: u32) -> u64 {
    match rank {
        0 => seed,
        _ => mix(seed ^ mix(u64::from(rank))),
    }
}

/// Mixes all bits of a number into all bits of the result.
///
/// **Source:** Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014 (the finalizer
/// of SplitMix64).
pub(crate) const fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Uniform in `[0, 1)`, 24 bits.
pub(crate) fn unit(rng: &mut ChaCha8Rng) -> f32 {
    (rng.next_u32() >> 8) as f32 / (1_u32 << 24) as f32
}

/// Uniform in `[0, 1)`, 53 bits.
pub(crate) fn unit_f64(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Uniform in `[0, bound)` by multiplication; the bias is below `bound / 2^64`.
///
/// # Panics
/// When `bound` is zero.
pub(crate) fn below(bound: u64, rng: &mut ChaCha8Rng) -> u64 {
    assert!(bound > 0, "nothing to draw from");
    ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// A random order of `0..len` (Fisher-Yates).
pub(crate) fn permutation(len: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..len as u32).collect();
    for last in (1..len).rev() {
        order.swap(last, below(last as u64 + 1, rng) as usize);
    }
    order
}

/// The generator of one tensor's initial values, from the run's seed and the tensor's position.
pub(crate) fn generator(seed: u64, place: usize) -> ChaCha8Rng {
    stream(seed, PARAMETERS, place as u64)
}

/// Uniform in `(-b, b)` with `b = gain sqrt(3 / fan_in)`, so that the standard deviation is
/// `gain / sqrt(fan_in)`. `fan_in` is the first dimension of a matrix `[in, out]` and the product
/// of all but the first of a kernel `[out, in, height, width]`.
///
/// **Source:** He et al., Delving deep into rectifiers, 2015, eq. 10, where gain = sqrt 2.
pub fn fan_in(spec: &TensorSpec, gain: f32, values: &mut [f32], rng: &mut ChaCha8Rng) {
    let fan_in = match spec.shape.as_slice() {
        [input, _] => *input,
        shape => shape.iter().skip(1).product(),
    };
    let bound = gain * (3.0 / fan_in.max(1) as f32).sqrt();
    values.fill_with(|| (2.0 * unit(rng) - 1.0) * bound);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_each_of_their_names() {
        let draw = |seed, purpose, number| stream(seed, purpose, number).next_u64();
        let drawn = [draw(1, 1, 1), draw(2, 1, 1), draw(1, 2, 1), draw(1, 1, 2)];
        for (index, value) in drawn.iter().enumerate() {
            assert!(!drawn[..index].contains(value));
        }
        assert_eq!(draw(1, 1, 1), drawn[0]);
    }

    #[test]
    fn a_permutation_has_every_index_once() {
        let mut order = permutation(100, &mut stream(3, PASSES, 0));
        assert_ne!(order, (0..100).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }
}
