//! Bucketing: another rule is applied to means of a few inputs each.

use super::kernels::weighted_sum;
use super::{Aggregator, Input};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Shuffles the inputs, takes the plain mean of every s of them, and applies another rule to the
/// means.
///
/// ```text
/// y_b = mean of the inputs of bucket b,   out = rule(y_1, ..., y_ceil(n/s))
/// ```
///
/// The means differ less than the inputs (their variance is s times smaller), so rules that are
/// biased on skewed data become usable. Up to f buckets may contain a liar, so the rule faces a
/// share of `s f / n` liars. The weight of a bucket is the sum of its weights. Needs a scratch of
/// the inputs' size over s. Source: Karimireddy, He and Jaggi, "Byzantine-robust learning on
/// heterogeneous datasets via bucketing" (ICLR 2022), algorithm 1. Special case: s = 1 only
/// shuffles. Shuffles depend on a seed and the number of calls, so the same calls give the same
/// bits.
pub struct Bucketing {
    rule: Box<dyn Aggregator>,
    size: usize,
    seed: u64,
    calls: u64,
    means: Vec<Vec<f32>>,
}

impl Bucketing {
    /// Buckets of `size` inputs, at least one, before `rule`.
    pub fn new(rule: Box<dyn Aggregator>, size: usize, seed: u64) -> Self {
        Self {
            rule,
            size: size.max(1),
            seed,
            calls: 0,
            means: Vec::new(),
        }
    }
}

impl Aggregator for Bucketing {
    fn aggregate(&mut self, inputs: &[Input<'_>], out: &mut [f32]) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.calls);
        self.calls += 1;
        let mut order: Vec<usize> = (0..inputs.len()).collect();
        for last in (1..order.len()).rev() {
            let other = (u64::from(rng.next_u32()) * (last as u64 + 1)) >> 32;
            order.swap(last, other as usize);
        }
        let buckets: Vec<&[usize]> = order.chunks(self.size).collect();
        self.means.resize(buckets.len(), Vec::new());
        let mut weights = Vec::with_capacity(buckets.len());
        for (bucket, mean) in buckets.into_iter().zip(&mut self.means) {
            mean.clear();
            mean.resize(out.len(), 0.0);
            let share = 1.0 / bucket.len() as f32;
            weighted_sum(bucket.iter().map(|k| (inputs[*k].0, share)), mean);
            weights.push(bucket.iter().map(|k| inputs[*k].1).sum::<f32>());
        }
        let means = self.means.iter().map(Vec::as_slice);
        let means: Vec<Input<'_>> = means.zip(weights).collect();
        self.rule.aggregate(&means, out);
    }
}
