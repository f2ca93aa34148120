//! The simulator's randomness: one ChaCha8 stream for each purpose, all from the scenario's seed.
//! So an additional fault does not change the jitter of the network.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Jitter and loss.
    Network,
    /// Times and victims of faults.
    Faults,
    /// Speeds of machines and first links.
    Setup,
    /// Bytes that Byzantine machines send.
    Lies,
    /// Speeds that drift.
    Drift,
    /// Pairs of machines that cannot reach each other.
    Missing,
}

/// A seeded stream of draws.
#[derive(Clone, Debug)]
pub(crate) struct Random(ChaCha8Rng);

impl Random {
    pub(crate) fn new(seed: u64, purpose: Purpose) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(purpose as u64 + 1);
        Self(rng)
    }

    /// Uniform in `[0, 1)`, on the grid of multiples of 2^-53.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Draws an event of this probability. An impossible event uses no randomness.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// Uniform in `0..below`; zero when `below` is zero.
    pub(crate) fn below(&mut self, below: usize) -> usize {
        // The bias of the multiply-shift is below 2^-32 for any number of peers.
        ((u128::from(self.0.next_u64()) * below as u128) >> 64) as usize
    }

    /// Standard normal (Box and Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (core::f64::consts::TAU * self.unit()).cos()
    }

    /// Exponentially distributed with this mean: the gap between events of a Poisson process.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_have_streams_of_their_own() {
        let draw = |purpose| Random::new(7, purpose).unit();
        assert_eq!(draw(Purpose::Network), draw(Purpose::Network));
        assert_ne!(draw(Purpose::Network), draw(Purpose::Faults));
        assert_ne!(draw(Purpose::Setup), draw(Purpose::Faults));
    }

    #[test]
    fn draws_stay_in_range_and_have_their_mean() {
        let mut random = Random::new(1, Purpose::Setup);
        let mean = (0..10_000).map(|_| random.exponential(2.0)).sum::<f64>() / 1e4;
        assert!(
            (mean - 2.0).abs() < 0.1,
            "mean {mean}, expected 2 within 5 standard errors"
        );
        let normal: Vec<f64> = (0..10_000).map(|_| random.normal()).collect();
        let variance = normal.iter().map(|x| x * x).sum::<f64>() / 1e4;
        assert!(
            (variance - 1.0).abs() < 0.071,
            "variance {variance}, expected 1 within 5 standard errors"
        );
        assert!((0..1000).all(|_| random.below(3) < 3));
        assert!(!random.chance(0.0));
    }
}
