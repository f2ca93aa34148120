//! Codec `sidco`: top-k by thresholds of exponential distributions. Biased: needs error feedback.

use super::estimated::{Estimate, Estimated};
use super::pick::{DECAY, DENSITY, Picked};
use super::select::{Source, magnitude};
use super::values::VALUES;
use crate::compress::raw::Header;
use crate::compress::simd::{kernel, to_finite, two_sums};
use crate::compress::{CodecSpec, Parameter, Range};

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "sidco",
    tag: 28,
    summary: "about the largest values, by thresholds of exponential distributions",
    equation: "C(x)_i = x_i where |x_i| >= eta_M, eta_m = eta_{m-1} + ln(1 / delta_m) mean(|x| - eta_{m-1} above it)",
    source: "Abdelmoniem et al., MLSys 2021",
    parameters: &[DENSITY, STAGES, VALUES, DECAY],
    build: |kind| {
        let estimate = Sidco {
            stages: kind.count("stages") as u8,
        };
        Picked::of(kind, Estimated::new(estimate, kind.number("density")))
    },
};

const STAGES: Parameter = Parameter {
    name: "stages",
    range: Range::Whole(1, 8),
    default: Some(3.0),
    about: "the number of fits, each to what exceeds the one before, such as 3",
};

/// The share of the values that the first of several stages keeps.
const FIRST: f64 = 0.25;

/// Fits an exponential distribution to the magnitudes, then to those above the threshold, and so
/// on.
///
/// ```text
/// eta_0 = 0,  delta_1 = 1/4 and the others equal, with product = density (one stage: density)
/// eta_m = eta_{m-1} + ln(1 / delta_m) mean(|x| - eta_{m-1} : |x| > eta_{m-1})
/// C(x)_i = x_i where |x_i| >= eta_M, 0 elsewhere
/// ```
///
/// One pass over memory for each stage and one more. [`Estimated`] bounds how many values are kept.
/// A stage whose threshold no value exceeds is the last. The paper adapts the number of stages
/// while it trains; here it is fixed.
///
/// Size and layout: as `top-k`. `stages` is M.
///
/// Source: Abdelmoniem et al., "An efficient statistical-based gradient compression technique for
/// distributed training systems" (MLSys 2021), the exponential variant of the multi-stage estimator
/// (number not verified).
#[derive(Clone, Copy, Debug)]
struct Sidco {
    stages: u8,
}

kernel! {
    fn exceeding<'a>(values: &'a [f32], threshold: f32) -> (f64, f64) {
        let over = |v: f32| v.abs() - threshold;
        two_sums(
            values,
            |v| f64::from(if over(v) > 0.0 { over(v) } else { 0.0 }),
            |v| if over(v) > 0.0 { 1.0 } else { 0.0 },
        )
    }
}

/// The natural logarithm of a normal number above zero, the same on every machine: ln(m 2^e) =
/// e ln 2 + 2 artanh((m - 1) / (m + 1)), for m in [0.7, 1.5) by its series.
pub(in crate::compress) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) as i32 - 1023) as f64;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if mantissa > core::f64::consts::SQRT_2 {
        (mantissa, exponent) = (mantissa / 2.0, exponent + 1.0);
    }
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..14).rev().fold(0.0, |sum, at| {
        sum * ratio * ratio + 1.0 / f64::from(2 * at + 1)
    });
    exponent * core::f64::consts::LN_2 + 2.0 * ratio * series
}

impl Estimate for Sidco {
    fn parameters(&self, opening: Header) -> Header {
        opening.with([self.stages])
    }

    fn guess(&mut self, source: &mut Source<'_>, density: f64, _: u64, chosen: &mut Vec<u32>) {
        let values = source.values();
        let logarithm = -ln(density);
        let first = -ln(FIRST);
        let mut threshold = 0.0f64;
        for stage in 0..self.stages {
            let of_stage = match (self.stages, stage) {
                (2.., 0) if density < FIRST => first,
                (2.., 1..) if density < FIRST => (logarithm - first) / f64::from(self.stages - 1),
                (_, 0) => logarithm,
                _ => break,
            };
            let (sum, count) = exceeding(values, to_finite(threshold));
            if count == 0.0 {
                break;
            }
            threshold += of_stage * sum / count;
        }
        source.select(magnitude(to_finite(threshold)).max(1), chosen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_right() {
        for x in [1e-300, 1e-9, 0.01, 0.25, 0.7, 0.999, 1.0, 1.5, 2.0, 1e12] {
            assert!(
                (ln(x) - x.ln()).abs() <= 1e-13 * (1.0 + x.ln().abs()),
                "{x}"
            );
        }
    }
}
