//! Top-k by an estimated threshold: shared by `top-k-sampled`, `gaussian-k` and `sidco`.

use super::largest::Largest;
use super::pick::{Pick, kept};
use super::select::Source;
use super::top_k;
use crate::compress::raw::Header;
use crate::compress::{CodecProperties, EncodeContext};

/// Estimates the magnitude that separates the largest values from the others.
pub(in crate::compress) trait Estimate: Send + 'static {
    /// Appends the parameters beside the density to the opening byte.
    fn parameters(&self, opening: Header) -> Header {
        opening
    }

    /// Leaves about the `density` largest in `chosen`; all of `source` is folded then.
    fn guess(&mut self, source: &mut Source<'_>, density: f64, seed: u64, chosen: &mut Vec<u32>);
}

/// An estimated threshold with a guard against wrong estimates. With k the requested count, between
/// k / 2 and 2 k values are kept; if the estimate gives another number, the k largest are found
/// exactly.
///
/// So `||C(x) - x||^2 <= (1 - density / 2) ||x||^2` for all values. If at most k / 2 values are not
/// zero, all of them are kept.
#[derive(Clone, Debug)]
pub(in crate::compress) struct Estimated<E> {
    pub(in crate::compress) estimate: E,
    pub(in crate::compress) density: f64,
    /// For guesses that are wrong.
    pub(in crate::compress) largest: Largest,
}

impl<E: Estimate> Estimated<E> {
    pub(in crate::compress) fn new(estimate: E, density: f64) -> Self {
        Self {
            estimate,
            density,
            largest: Largest::default(),
        }
    }
}

impl<E: Estimate> Pick for Estimated<E> {
    fn properties(&self) -> CodecProperties {
        let CodecProperties { error, .. } = top_k::properties(self.density / 2.0);
        CodecProperties::biased(error)
    }

    fn parameters(&self, opening: Header) -> Header {
        let opening = self.estimate.parameters(opening);
        opening.with(self.density.to_le_bytes())
    }

    fn density_max(&self) -> f64 {
        (2.0 * self.density).min(1.0)
    }

    fn choose(
        &mut self,
        source: &mut Source<'_>,
        context: &mut EncodeContext<'_>,
        chosen: &mut Vec<u32>,
    ) {
        let len = source.len();
        let wanted = kept(self.density, len);
        self.estimate
            .guess(source, self.density, context.seed, chosen);
        let found = chosen.len();
        if 2 * found < wanted || found > self.most(len) {
            self.largest.choose(source, wanted, context.seed, chosen);
        }
    }
}
