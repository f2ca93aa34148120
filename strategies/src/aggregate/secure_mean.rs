//! Aggregation rule `secure-mean`: the owner of a shard sees the sum of its group's contributions and no single
//! one. A member adds to its contribution a mask for each other member, which that one subtracts, so masks cancel in
//! the sum of exactly the members that they are for, and anything less is as good as random.
//!
//! Sums are those of integers modulo 2^32, in which masks cancel to the bit. A contribution by its share of the
//! weights is rounded at random to a multiple of [`STEP`], so the mean of any number of members is exact up to a
//! step for each of them. Only the sum must be within the range: what a single masked value wraps around returns.
//!
//! A sum lacks no member: one that leaves between the forming of the group and its last contribution makes the
//! fragment's round void, and a next group is without it. So no two sums of the same deltas are opened, whose
//! difference would be a member's, and no secret needs to be shared for the case that its holder leaves. Sums of
//! different rounds are opened: their difference is a member's delta up to what the others have trained in between.

use super::kind::{AggregationKind, AggregationSpec, MEMBERS, Nature};
use crate::compress::Random;
use crate::compress::simd::kernel;
use crate::parameter::{Number, Parameter, Range};
use bytemuck::cast_slice_mut;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};

pub(super) const SPEC: AggregationSpec = AggregationSpec {
    name: "secure-mean",
    summary: "the weighted mean, of which owners see the sum alone: contributions are masked for one another",
    equation: "v = sum_k (w_k x_k + sum_{j>k} m_kj - sum_{j<k} m_jk) / sum_k w_k mod 2^32, m_kj known to k and j alone",
    source: "Bonawitz et al., CCS 2017, section 4",
    parameters: &[LEAST],
    nature: Nature::Masked,
    // Masked contributions are summed as they are: no rule sees one.
    ..AggregationSpec::of(|_| None)
};

/// The sum of two shows each of them the contribution of the other.
pub(crate) const MEMBERS_LEAST: usize = 3;

const LEAST: Parameter = Parameter::new(
    MEMBERS,
    Range::Count(Number::Size, MEMBERS_LEAST as u64, GROUP_MEMBERS_MAX as u64),
    MEMBERS_LEAST as f64,
    "the fewest members whose sum is opened: with fewer the round is void",
);

impl AggregationKind {
    /// Set where contributions are masked.
    pub fn is_masked(&self) -> bool {
        self.nature() == Nature::Masked || self.privacy().is_some_and(|it| it.members > 1)
    }
}

/// The largest magnitude of a value of a contribution.
pub(crate) const RANGE: f32 = 8.0;

/// Steps of the range: what as many members as a group has round up does not reach 2^31.
const STEPS: f64 = ((1_u64 << 31) - 1024) as f64;

/// The distance of the multiples to which contributions are rounded.
pub(crate) const STEP: f64 = RANGE as f64 / STEPS;

/// A sum with it rounds to the nearest whole number, whose last 32 bits are those of the sum: 1.5 * 2^52.
const WHOLE: f64 = 6_755_399_441_055_744.0;

/// Values that are masked at a time: they fit into the first-level cache.
const TILE: usize = 2048;

/// Masks that this member adds, and masks that it subtracts.
pub(crate) struct Pairs {
    added: Vec<ChaCha12Rng>,
    subtracted: Vec<ChaCha12Rng>,
}

impl Pairs {
    /// From the seed that this member has in common with each other one; the flag says that this one adds.
    pub(crate) fn new(seeds: impl Iterator<Item = ([u8; 32], bool)>) -> Self {
        let (mut added, mut subtracted) = (Vec::new(), Vec::new());
        for (seed, adds) in seeds {
            let to = if adds { &mut added } else { &mut subtracted };
            to.push(ChaCha12Rng::from_seed(seed));
        }
        Self { added, subtracted }
    }

    /// Appends `share * values`, rounded and masked: 4 bytes each.
    ///
    /// # Errors
    /// If a value is not within the range: the largest magnitude, or NaN.
    pub(crate) fn mask(
        mut self,
        values: &[f32],
        share: f64,
        seed: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), f32> {
        let most = largest(values);
        if most.is_nan() || most > RANGE {
            return Err(most);
        }
        out.reserve(4 * values.len());
        let (random, mut room) = (Random::new(seed), [0_u32; TILE]);
        let mut sums = [0_u32; TILE];
        for (at, values) in values.chunks(TILE).enumerate() {
            let (sums, room) = (&mut sums[..values.len()], &mut room[..values.len()]);
            round(values, share / STEP, random.from(at * TILE), sums);
            for pair in &mut self.added {
                pair.fill_bytes(cast_slice_mut(room));
                add(room, sums);
            }
            for pair in &mut self.subtracted {
                pair.fill_bytes(cast_slice_mut(room));
                subtract(room, sums);
            }
            sums.iter_mut().for_each(|sum| *sum = sum.to_le());
            out.extend_from_slice(bytemuck::cast_slice(sums));
        }
        Ok(())
    }
}

kernel! {
    /// Multiples of the step, as integers modulo 2^32: up or down at random, so that the mean stays.
    fn round<'a>(values: &'a [f32], factor: f64, random: Random, into: &'a mut [u32]) {
        for ((value, into), at) in values.iter().zip(into).zip(0..) {
            let steps = f64::from(*value) * factor + (f64::from(random.unit(at)) - 0.5);
            *into = (steps + WHOLE).to_bits() as u32;
        }
    }

    /// The largest magnitude, with infinity and then NaN above all others. Bits of magnitudes are in their order.
    fn largest<'a>(values: &'a [f32]) -> f32 {
        let magnitude = |value: &f32| value.to_bits() & 0x7fff_ffff;
        f32::from_bits(values.iter().map(magnitude).fold(0, u32::max))
    }

    fn add<'a>(masks: &'a [u32], sums: &'a mut [u32]) {
        for (sum, mask) in sums.iter_mut().zip(masks) {
            *sum = sum.wrapping_add(u32::from_le(*mask));
        }
    }

    fn subtract<'a>(masks: &'a [u32], sums: &'a mut [u32]) {
        for (sum, mask) in sums.iter_mut().zip(masks) {
            *sum = sum.wrapping_sub(u32::from_le(*mask));
        }
    }

    /// `acc = sum_k contribution_k` of equally long contributions, by their shares.
    pub(crate) fn open<'a>(contributions: &'a [&'a [u8]], acc: &'a mut [f32]) {
        let mut sums = [0_u32; TILE];
        for (at, tile) in acc.chunks_mut(TILE).enumerate() {
            let sums = &mut sums[..tile.len()];
            sums.fill(0);
            let bytes = 4 * TILE * at..4 * (TILE * at + tile.len());
            for contribution in contributions {
                let masked = contribution[bytes.clone()].as_chunks::<4>().0;
                for (sum, four) in sums.iter_mut().zip(masked) {
                    *sum = sum.wrapping_add(u32::from_le_bytes(*four));
                }
            }
            for (value, sum) in tile.iter_mut().zip(sums) {
                *value = (f64::from(*sum as i32) * STEP) as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A seed that two members have in common.
    fn seed(a: usize, b: usize) -> [u8; 32] {
        let mut seed = [7; 32];
        (seed[0], seed[1]) = (a.min(b) as u8, a.max(b) as u8);
        seed
    }

    fn masked(members: usize, me: usize, values: &[f32], share: f64) -> Vec<u8> {
        let others = (0..members).filter(|other| *other != me);
        let pairs = Pairs::new(others.map(|other| (seed(me, other), me < other)));
        let mut out = Vec::new();
        pairs.mask(values, share, me as u64, &mut out).unwrap();
        out
    }

    /// Values of each member, and the bytes that leave it.
    fn group(members: usize, len: usize, shares: &[f64]) -> (Vec<Vec<f32>>, Vec<Vec<u8>>) {
        let value = |me: usize, at: usize| {
            let random = Random::new(me as u64 + 99).unit(at as u32);
            (random - 0.5) * 2.0 * RANGE
        };
        let values: Vec<Vec<f32>> = (0..members)
            .map(|me| (0..len).map(|at| value(me, at)).collect())
            .collect();
        let sent = (0..members).map(|me| masked(members, me, &values[me], shares[me]));
        let sent = sent.collect();
        (values, sent)
    }

    proptest! {
        #[test]
        fn the_sum_of_all_is_the_mean_by_weights_up_to_a_step_for_each(
            weights in proptest::collection::vec(0.01..50.0f64, 3..20), len in 1..5000usize
        ) {
            let total: f64 = weights.iter().sum();
            let shares: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
            let (values, sent) = group(weights.len(), len, &shares);
            let slices: Vec<&[u8]> = sent.iter().map(Vec::as_slice).collect();
            let mut acc = vec![f32::NAN; len];
            open(&slices, &mut acc);
            for (at, found) in acc.iter().enumerate() {
                let parts = values.iter().zip(&shares);
                let mean: f64 = parts.map(|(values, share)| share * f64::from(values[at])).sum();
                let off = (f64::from(*found) - mean).abs();
                prop_assert!(off <= weights.len() as f64 * STEP + mean.abs() * 1e-7, "{at}: {off}");
            }
        }
    }

    /// Fails once in a million draws: five deviations of a chi-square with 255 degrees of freedom.
    #[test]
    fn what_leaves_a_member_and_all_sums_that_lack_one_are_uniform() {
        let (members, len) = (4, 1 << 16);
        let shares = vec![0.25; members];
        let zeros = vec![0.0; len];
        let sent: Vec<Vec<u8>> = (0..members)
            .map(|me| masked(members, me, &zeros, shares[me]))
            .collect();
        for some in 1..(1 << members) - 1 {
            let mut bins = [0_u32; 256];
            for at in 0..len {
                let chosen = (0..members).filter(|me| some >> me & 1 == 1);
                let sum = chosen.fold(0_u32, |sum, me| {
                    let four = sent[me][4 * at..][..4].try_into().unwrap();
                    sum.wrapping_add(u32::from_le_bytes(four))
                });
                bins[(sum >> 24) as usize] += 1;
            }
            let mean = len as f64 / 256.0;
            let chi: f64 = bins
                .iter()
                .map(|bin| (f64::from(*bin) - mean).powi(2) / mean)
                .sum();
            assert!((142.0..368.0).contains(&chi), "{some:b}: {chi}");
        }
        let slices: Vec<&[u8]> = sent.iter().map(Vec::as_slice).collect();
        let mut acc = vec![1.0; len];
        open(&slices, &mut acc);
        let most = acc
            .iter()
            .fold(0.0_f32, |most, value| most.max(value.abs()));
        assert!(f64::from(most) <= members as f64 * STEP);
    }

    #[test]
    fn the_sum_of_values_at_the_ends_of_the_range_does_not_wrap_around() {
        for end in [RANGE, -RANGE] {
            let shares = vec![1.0 / 64.0; 64];
            let values = vec![end; 100];
            let sent: Vec<Vec<u8>> = (0..64)
                .map(|me| masked(64, me, &values, shares[me]))
                .collect();
            let slices: Vec<&[u8]> = sent.iter().map(Vec::as_slice).collect();
            let mut acc = vec![0.0; 100];
            open(&slices, &mut acc);
            assert!(acc.iter().all(|v| (v - end).abs() < 1e-5), "{:?}", acc[0]);
        }
    }

    #[test]
    fn what_is_beyond_the_range_or_no_number_is_not_masked() {
        for bad in [8.1, f32::NEG_INFINITY, f32::NAN] {
            let mut out = Vec::new();
            let pairs = Pairs::new([(seed(0, 1), true)].into_iter());
            let most = pairs.mask(&[1.0, bad, -7.0], 0.5, 1, &mut out).unwrap_err();
            assert!(
                out.is_empty() && (most.is_nan() || most >= 8.1),
                "{bad}: {most}"
            );
        }
    }

    #[test]
    fn small_values_keep_their_mean() {
        // A fiftieth of a step: rounded to the nearest, nothing of them would be left.
        let small = (STEP / 50.0) as f32;
        let (members, len) = (3, 200_000);
        let values = vec![small; len];
        let sent: Vec<Vec<u8>> = (0..members)
            .map(|me| masked(members, me, &values, 1.0 / 3.0))
            .collect();
        let slices: Vec<&[u8]> = sent.iter().map(Vec::as_slice).collect();
        let mut acc = vec![0.0; len];
        open(&slices, &mut acc);
        let mean = acc.iter().map(|v| f64::from(*v)).sum::<f64>() / len as f64;
        assert!((mean / f64::from(small) - 1.0).abs() < 0.1, "{mean}");
    }

    #[test]
    fn vectors_change_no_bit() {
        let (_, sent) = group(3, 5001, &[0.2, 0.3, 0.5]);
        let plain = crate::compress::without_vectors(|| group(3, 5001, &[0.2, 0.3, 0.5]).1);
        assert_eq!(sent, plain);
    }
}
