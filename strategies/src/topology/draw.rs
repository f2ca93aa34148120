//! Random draws that are the same for all peers of a run: a seed and a round determine the graph on
//! every machine. Not a topology.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// The generator of one stream of a seed.
pub(super) fn stream(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

/// A whole number below `bound`. A multiply and a shift instead of a rejection: uneven by
/// `bound / 2^32`, which is negligible.
pub(super) fn below(rng: &mut ChaCha8Rng, bound: usize) -> usize {
    ((u64::from(rng.next_u32()) * bound as u64) >> 32) as usize
}

/// Uniform in `[0, 1)`, 32 bits.
pub(super) fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    f64::from(rng.next_u32()) / (1u64 << 32) as f64
}

/// A uniformly random order of `0..count` (Fisher-Yates).
pub(super) fn shuffled(rng: &mut ChaCha8Rng, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        let other = below(rng, last + 1);
        order.swap(last, other);
    }
    order
}

/// The partner of `rank` in a uniformly random matching: neighbours in a shuffle. With odd `count` one rests.
pub(super) fn matched(rng: &mut ChaCha8Rng, rank: usize, count: usize) -> Option<usize> {
    let order = shuffled(rng, count);
    let place = order.iter().position(|at| *at == rank)?;
    order.get(place ^ 1).copied()
}
