//! Codec `top-k-sampled`: top-k by a threshold from a sample. Biased: needs error feedback.

use super::estimated::{Estimate, Estimated};
use super::largest::Largest;
use super::pick::{DECAY, DENSITY, Picked};
use super::select::{Source, magnitude};
use super::values::VALUES;
use crate::compress::CodecSpec;

pub(in crate::compress) const SPEC: CodecSpec = CodecSpec {
    name: "top-k-sampled",
    tag: 26,
    summary: "about the largest values, by a threshold from a sample",
    equation: "C(x)_i = x_i where |x_i| >= tau, tau the density's quantile of a sample of |x|",
    source: "Lin et al., ICLR 2018",
    parameters: &[DENSITY, VALUES, DECAY],
    build: |kind| {
        Picked::of(
            kind,
            Estimated::new(Sampled::default(), kind.number("density")),
        )
    },
};

/// The threshold is the quantile of a sample of 2^14 values, one drawn from each of 2^14 runs.
///
/// ```text
/// tau     = the ceil(density s)-th largest magnitude of the s sampled
/// C(x)_i  = x_i where |x_i| >= tau, 0 elsewhere
/// ```
///
/// One pass over memory, with error feedback too. The kept share is random, with a standard
/// deviation of `sqrt(density / s)`; [`Estimated`] bounds it. Slices of up to 2^14 values are
/// sampled completely, which is exact except for ties.
///
/// Size and layout: as `top-k`.
///
/// Source: Lin et al., "Deep gradient compression" (ICLR 2018), which samples 0.1 to 1 % of the
/// values (the place in the paper is not verified).
#[derive(Clone, Debug, Default)]
struct Sampled(Largest);

impl Estimate for Sampled {
    fn guess(&mut self, source: &mut Source<'_>, density: f64, seed: u64, chosen: &mut Vec<u32>) {
        let threshold = match source.len() {
            0 => 1,
            _ => self
                .0
                .estimate(source, (density, 0.0), seed, magnitude)
                .max(1),
        };
        source.select(threshold, chosen);
    }
}
