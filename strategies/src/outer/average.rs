//! Outer optimizer `average`: the anchor becomes the mean of the peers' parameters.

use super::OuterOptimizer;
use super::kind::{Nature, OuterSpec};
use std::ops::Range;

pub(super) const SPEC: OuterSpec = OuterSpec {
    name: "average",
    summary: "the anchor becomes the mean",
    equation: "a' = a + D",
    source: "McMahan et al., AISTATS 2017",
    parameters: &[],
    nature: Nature::Average,
    unfit: |_| None,
    build: |_, _| Box::new(Average),
};

/// `anchor' = anchor + delta`, with delta the weighted mean of the peers' deltas. No state.
///
/// That is the weighted mean of the peers' parameters. Source: McMahan et al.,
/// "Communication-efficient learning of deep networks from decentralized data" (AISTATS 2017),
/// algorithm 1 (FedAvg); Stich, "Local SGD converges fast and communicates little" (ICLR 2019),
/// algorithm 1. Special case of [`Nesterov`](super::Nesterov) with momentum 0 and learning rate 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Average;

impl OuterOptimizer for Average {
    fn state_multiple(&self) -> usize {
        0
    }

    fn apply(&mut self, range: Range<usize>, anchor: &mut [f32], delta: &mut [f32]) {
        assert!(anchor.len() == range.len() && delta.len() == range.len());
        for (a, d) in anchor.iter_mut().zip(delta) {
            *a += *d;
        }
    }

    fn state(&self) -> &[f32] {
        &[]
    }

    fn state_mut(&mut self) -> &mut [f32] {
        &mut []
    }
}
