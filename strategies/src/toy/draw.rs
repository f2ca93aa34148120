//! Random numbers for toy tasks: cheap, and the same on every machine.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Streams of a seed that no peer uses for its own draws.
pub(super) const STREAM_TASK: u64 = u64::MAX;
/// Held samples of peers: combined with the peer's own stream.
pub(super) const STREAM_SCORES: u64 = 1 << 63;
/// Held data.
pub(super) const STREAM_HELD: u64 = u64::MAX - 1;

/// The generator of one stream; a peer's own stream is its index.
pub(super) fn stream(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

/// Uniform in `[0, 1)`, 53 bits.
pub(super) fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Nearly normal with mean 0 and variance 1: the sum of four uniform numbers from one draw. It
/// needs only sums and one product, so it is the same on every machine.
pub(super) fn normal(rng: &mut ChaCha8Rng) -> f32 {
    let bits = rng.next_u64();
    let sum = (0..4)
        .map(|part| (bits >> (16 * part)) & 0xffff)
        .sum::<u64>() as i64;
    // Four uniforms over 2^16 values have mean 2 (2^16 - 1) and variance 4 (2^32 - 1) / 12.
    const SCALE: f64 = 1.732_050_807_568_877_2 / 65536.0;
    ((sum - 2 * 65535) as f64 * SCALE) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_draws_have_mean_zero_and_variance_one() {
        let mut rng = stream(1, 2);
        let draws: Vec<f64> = (0..100_000).map(|_| f64::from(normal(&mut rng))).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let variance = draws.iter().map(|d| d * d).sum::<f64>() / 1e5;
        // Five standard errors.
        assert!(
            mean.abs() < 0.016 && (variance - 1.0).abs() < 0.023,
            "{mean} {variance}"
        );
    }
}
