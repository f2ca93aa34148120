//! Gradients of two rounds for one inner step: accumulate while you communicate.

use crate::inner::{InnerOptimizer, StepRule};
use murmurate_protocol::Round;
use std::ops::Range;

/// Pairs of rounds after which their names repeat. Such numbers are exact in f32.
const PAIRS: u64 = 1 << 20;

/// The first half of an inner step's gradients, and what the second half is added to.
///
/// Rounds 2t and 2t + 1 are the two halves of inner step t. Each sums its gradients while the gradients of the
/// next round are computed, so no result comes in time for the round after it. The mean of the first half gives
/// an estimate of the parameters after the step, at which the next first half is computed; the optimizer
/// forgets that step again. Both halves together move the parameters in force:
///
/// ```text
/// round 2t        anchor = opt(theta^t, u),  u = mean gradient of the first half;  theta^t and u are kept
/// round 2t + 1    anchor = theta^{t+1} = opt(theta^t, (u + w) / 2),  w = mean gradient of the second half
/// ```
///
/// A result is a whole round late, so w was computed at theta^t and u at the estimate of it: no gradient is
/// that of older parameters. Special cases: where round 2t is void, w alone is the step. Where round 2t + 1 is
/// void, peers have trained at the estimate meanwhile, so the estimate is in force from then on, and the
/// optimizer takes the first half's step after all. After a last round that is a first half, the anchor is an
/// estimate.
///
/// Shapes: theta, u, w: `[len]`, f32. The state is theta, then u, then one value for each fragment: zero, or the
/// name of the pair whose first half it keeps. Optimizers count pairs of rounds.
///
/// Source: Nabli et al., "ACCO: accumulate while you communicate for communication-overlapped sharded LLM
/// training" (NeurIPS 2025, arXiv 2406.02613), section on the two-stage update (number not verified). There a
/// half counts with the number of its gradients; here both count equally.
pub(super) struct Halves {
    /// Where fragments begin, ascending.
    starts: Vec<usize>,
    /// Number of parameters.
    len: usize,
    state: Vec<f32>,
}

/// The name of a pair, never zero.
fn name(round: Round) -> f32 {
    (1 + round.0 / 2 % PAIRS) as f32
}

/// Opens the inner step of a pair of rounds.
fn open(inner: &mut InnerOptimizer, pair: u64) {
    inner.set_step_count(pair);
    inner.begin_step();
}

impl Halves {
    /// For `len` parameters in these fragments.
    pub(super) fn new(fragments: &[Range<usize>], len: usize) -> Self {
        Self {
            starts: fragments.iter().map(|fragment| fragment.start).collect(),
            len,
            state: vec![0.0; Self::values(len, fragments.len())],
        }
    }

    /// Number of f32 that are kept for `len` parameters.
    pub(super) const fn values(len: usize, fragments: usize) -> usize {
        2 * len + fragments
    }

    /// Puts the mean gradient of a fragment's round in force. `values` are the anchor's.
    pub(super) fn step(
        &mut self,
        inner: &mut InnerOptimizer,
        round: Round,
        rule: StepRule,
        range: Range<usize>,
        values: &mut [f32],
        mean: &mut [f32],
    ) {
        let (pair, name) = (round.0 / 2, name(round));
        let fragment = self.starts.binary_search(&range.start);
        let fragment = fragment.expect("an aggregate is of a whole fragment");
        let (theta, rest) = self.state.split_at_mut(self.len);
        let (first, waiting) = rest.split_at_mut(self.len);
        let (theta, first) = (&mut theta[range.clone()], &mut first[range.clone()]);
        let waiting = &mut waiting[fragment];
        inner.set_rule(rule);
        if *waiting != 0.0 && *waiting != name {
            // The second half of an earlier pair was void: its estimate is in force.
            open(inner, pair.saturating_sub(1));
            inner.apply(range.clone(), theta, first);
            *waiting = 0.0;
        }
        if round.0.is_multiple_of(2) {
            theta.copy_from_slice(values);
            first.copy_from_slice(mean);
            *waiting = name;
            estimate(inner, pair, range, values, mean);
            return;
        }
        if *waiting == name {
            values.copy_from_slice(theta);
            let halves = mean.iter_mut().zip(&*first);
            halves.for_each(|(mean, first)| *mean = 0.5 * (*mean + first));
            *waiting = 0.0;
        }
        open(inner, pair);
        inner.apply(range, values, mean);
    }

    pub(super) fn state(&self) -> &[f32] {
        &self.state
    }

    pub(super) fn state_mut(&mut self) -> &mut [f32] {
        &mut self.state
    }
}

/// Takes a step that the optimizer does not remember.
fn estimate(
    inner: &mut InnerOptimizer,
    pair: u64,
    range: Range<usize>,
    values: &mut [f32],
    mean: &[f32],
) {
    let runs = inner.state_multiple();
    let len = inner.state().len() / runs.max(1);
    let of = |run: usize| run * len + range.start..run * len + range.end;
    let before: Vec<f32> = (0..runs)
        .flat_map(|run| &inner.state()[of(run)])
        .copied()
        .collect();
    open(inner, pair);
    inner.apply(range.clone(), values, mean);
    for (run, before) in before.chunks_exact(range.len().max(1)).enumerate() {
        inner.state_mut()[of(run)].copy_from_slice(before);
    }
    inner.set_step_count(pair);
}
