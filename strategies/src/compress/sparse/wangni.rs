//! Codec `wangni`: each value with a probability that grows with its magnitude. Unbiased.

use super::pick::{DENSITY, Pick, Picked, kept};
use super::select::Source;
use super::values::VALUES;
use crate::compress::random::Random;
use crate::compress::simd::{kernel, to_finite, two_sums};
use crate::compress::{CodecProperties, CodecSpec, EncodeContext};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "wangni",
    tag: 32,
    summary: "random values, drawn with probabilities that grow with them and scaled so that their mean is right",
    equation: "C(x)_i = x_i / p_i with probability p_i = min(1, lambda |x_i|), else 0, E C(x) = x",
    source: "Wangni et al., NeurIPS 2018",
    parameters: &[DENSITY, VALUES],
    build: |kind| {
        let pick = Wangni {
            density: kind.number("density"),
            least: 0.0,
        };
        Picked::of(kind, pick)
    },
};

/// The most iterations of the greedy rule. Two are enough for nearly normal values; heavy tails need more.
const GREEDY: usize = 64;

/// Unbiased sparsification with the least variance for its size.
///
/// ```text
/// p_i    = min(1, lambda |x_i|),  sum p_i <= density d
/// C(x)_i = x_i / p_i with probability p_i, 0 otherwise         E C(x) = x
/// lambda: first density d / ||x||_1; then, as long as that grows it, times
///         (density d - #{p_i = 1}) / sum (p_i : p_i < 1)
/// ```
///
/// `E||C(x) - x||^2 <= ||x||_1^2 / (density d) <= ||x||^2 / density`: error feedback is not
/// allowed. The draws are systematic, not independent: with one uniform number u, value i is kept
/// if there is an integer between u + p_1 + .. + p_{i-1} and u + p_1 + .. + p_i. The p_i, and so
/// mean and variance, are those of the paper, and the count is always at most `density d`. Zeros
/// are never sent. Contributions are sent relative to the anchor.
///
/// Layout: as `top-k`. `1 / lambda` beyond f32 becomes the largest f32.
///
/// Source: Wangni et al., "Gradient sparsification for communication-efficient distributed
/// optimization" (NeurIPS 2018), the greedy algorithm (number not verified).
#[derive(Clone, Copy, Debug)]
struct Wangni {
    density: f64,
    /// `1 / lambda`: kept values of a smaller magnitude are sent with this one.
    least: f32,
}

kernel! {
    fn below<'a>(values: &'a [f32], limit: f32) -> (f64, f64) {
        let below = |v: f32| v.abs() < limit;
        two_sums(
            values,
            |v| f64::from(if below(v) { v.abs() } else { 0.0 }),
            |v| if below(v) { 1.0 } else { 0.0 },
        )
    }
}

impl Wangni {
    /// `1 / lambda`.
    fn least(&self, values: &[f32]) -> f32 {
        let (len, wanted) = (values.len() as f64, self.density * values.len() as f64);
        let mut least = f32::INFINITY;
        for _ in 0..GREEDY {
            let (sum, count) = below(values, least);
            let left = wanted - (len - count);
            if sum == 0.0 || left <= 0.0 {
                break;
            }
            let next = to_finite(sum / left);
            if next >= least {
                break;
            }
            least = next;
        }
        if least.is_finite() { least } else { 0.0 }
    }
}

impl Pick for Wangni {
    fn properties(&self) -> CodecProperties {
        CodecProperties {
            dense: false,
            ..CodecProperties::random(1.0 / self.density)
        }
    }

    fn density_max(&self) -> f64 {
        self.density
    }

    fn choose(
        &mut self,
        source: &mut Source<'_>,
        context: &mut EncodeContext<'_>,
        chosen: &mut Vec<u32>,
    ) {
        chosen.clear();
        let values = source.values();
        self.least = self.least(values);
        let most = kept(self.density, values.len());
        let per_value = 1.0 / f64::from(self.least.max(f32::MIN_POSITIVE));
        let mut sum = f64::from(Random::new(context.seed).unit(0));
        for (at, value) in (0..).zip(values) {
            sum += (per_value * f64::from(value.abs())).min(1.0);
            if sum >= 1.0 && chosen.len() < most {
                sum -= 1.0;
                chosen.push(at);
            }
        }
    }

    fn rescale(&self, _: &[u32], values: &mut [f32]) {
        for value in values {
            if value.abs() < self.least {
                *value = self.least.copysign(*value);
            }
        }
    }
}
