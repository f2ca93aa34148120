//! Random numbers for stochastic rounding: a function of seed and index, the same on every machine.

/// A stream of random numbers, of which each can be had without those before it.
///
/// ```text
/// x = index ^ key_0
/// x = (x ^ x >> 17) 0xed5ad4bb + key_1
/// x = (x ^ x >> 11) 0xac4c1b51
/// x = (x ^ x >> 15) 0x31848bab
/// x =  x ^ x >> 14                      all modulo 2^32
/// ```
///
/// The multiply-xorshift hash `triple32` (Wellons, "Prospecting for hash functions", 2018;
/// avalanche bias 0.021, where lowbias32 has 0.17), with half the seed folded in before and half
/// after the first multiplication, so that two seeds are not shifts of one stream. Three 32-bit
/// multiplications a value in every lane of a vector: a stream cipher such as ChaCha8 takes ten
/// times as long, and nothing here is secret. The period is 2^32 indices, more than a slice has
/// values. Not for cryptography.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random {
    keys: [u32; 2],
    first: u32,
}

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        // Seeds that differ in one bit become keys that differ in many (SplitMix64's finalizer).
        let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        Self {
            keys: [z as u32, (z >> 32) as u32],
            first: 0,
        }
    }

    /// The same stream from a later index on.
    pub(crate) const fn from(self, first: usize) -> Self {
        Self {
            first: self.first.wrapping_add(first as u32),
            ..self
        }
    }

    /// 32 random bits.
    #[inline(always)]
    pub(crate) fn bits(self, index: u32) -> u32 {
        let mut x = self.first.wrapping_add(index) ^ self.keys[0];
        x = (x ^ (x >> 17))
            .wrapping_mul(0xed5a_d4bb)
            .wrapping_add(self.keys[1]);
        x = (x ^ (x >> 11)).wrapping_mul(0xac4c_1b51);
        x = (x ^ (x >> 15)).wrapping_mul(0x3184_8bab);
        x ^ (x >> 14)
    }

    /// A multiple of 2^-24 in [0, 1).
    #[inline(always)]
    pub(crate) fn unit(self, index: u32) -> f32 {
        // Through i32, for which there is an instruction everywhere.
        (self.bits(index) >> 8) as i32 as f32 * (1.0 / 16_777_216.0)
    }
}

/// Fills in random numbers around zero, from index `first` of the seed's stream on.
pub(super) fn draw(seed: u64, first: usize, values: &mut [f32]) {
    let random = Random::new(seed).from(first);
    for (at, value) in (0..).zip(values) {
        *value = random.unit(at) - 0.5;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: u32 = 1 << 18;

    /// Chi-square of 256 equal bins over `f`'s upper bits: mean 255, deviation 22.6.
    fn chi_square(f: impl Fn(u32) -> u32) -> f64 {
        let mut bins = [0u32; 256];
        (0..COUNT).for_each(|i| bins[(f(i) >> 24) as usize] += 1);
        let mean = f64::from(COUNT) / 256.0;
        bins.iter()
            .map(|bin| (f64::from(*bin) - mean).powi(2) / mean)
            .sum()
    }

    /// Five deviations: one failure in a million draws of all seeds, and the seeds are fixed.
    const WITHIN: core::ops::Range<f64> = 142.0..368.0;

    #[test]
    fn bytes_of_a_stream_are_uniform() {
        for seed in [0, 1, 2, u64::MAX, 1 << 32, 0xdead_beef] {
            let random = Random::new(seed);
            for shift in [0, 8, 16, 24] {
                let chi = chi_square(|i| random.bits(i) << shift);
                assert!(WITHIN.contains(&chi), "seed {seed}, byte at {shift}: {chi}");
            }
        }
    }

    #[test]
    fn neighbours_and_streams_of_near_seeds_are_independent() {
        let nibbles = |a: u32, b: u32| (a & 0xf000_0000) | ((b >> 4) & 0x0f00_0000);
        for seed in [0, 7, 1 << 40] {
            let (a, b) = (Random::new(seed), Random::new(seed + 1));
            for lag in [1, 2, 16, 512, 4096] {
                let chi = chi_square(|i| nibbles(a.bits(i), a.bits(i + lag)));
                assert!(WITHIN.contains(&chi), "seed {seed}, lag {lag}: {chi}");
            }
            let chi = chi_square(|i| nibbles(a.bits(i), b.bits(i)));
            assert!(WITHIN.contains(&chi), "seeds {seed} and the next: {chi}");
            // The same index over many seeds: what a test of unbiasedness averages over.
            let chi = chi_square(|i| Random::new(seed + u64::from(i)).bits(3));
            assert!(WITHIN.contains(&chi), "index 3 of seeds from {seed}: {chi}");
        }
    }

    #[test]
    fn the_mean_is_a_half_within_the_confidence_interval() {
        for seed in 0..20 {
            let random = Random::new(seed);
            let sum: f64 = (0..COUNT).map(|i| f64::from(random.unit(i))).sum();
            let mean = sum / f64::from(COUNT);
            let deviation = (1.0f64 / 12.0 / f64::from(COUNT)).sqrt();
            assert!((mean - 0.5).abs() < 4.5 * deviation, "seed {seed}: {mean}");
        }
    }

    #[test]
    fn a_stream_continues_where_it_is_told() {
        let random = Random::new(5);
        assert_eq!(random.from(100).bits(3), random.bits(103));
        assert_ne!(random.bits(0), Random::new(6).bits(0));
    }
}
