//! Late results: how an agreed anchor is combined with parameters that were trained further
//! meanwhile, and eager updates: between the cut and the result the trainer starts from the anchor moved by
//! this peer's share of the outer step. The anchor itself does not change by it.
//!
//! Gradients of two rounds may be the halves of one inner step: accumulate while you communicate.

use crate::inner::{InnerOptimizer, StepRule};
use crate::outer::OuterOptimizer;
use crate::state::{StateError, StateSink, StateSource, finite};
use murmurate_protocol::{OverlapPlan, Plan, Round};
use std::ops::Range;

/// The name of this peer's optimizer state in a checkpoint.
const STATE: &str = "overlap.eager";

/// What the trainer does with a result that arrives while it trains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Blend {
    /// The training since the cut is added to the new anchor:
    /// `theta' = a' + (theta - theta_cut)`. One round late this is Sun et al., "CO2" (ICLR 2024),
    /// and delayed DiLoCo.
    OwnProgress,
    /// As [`Blend::OwnProgress`], but the trainer starts from this peer's part e of the outer step,
    /// the outer optimizer's step by this peer's share of the delta: `theta = a + e` at the cut,
    /// and `theta' = a' + (theta - a - e)` when the result arrives. Kale et al. (arXiv 2502.12996).
    Eager,
    /// For gradients, whose rounds are the two halves of inner steps: the result of a first half gives an
    /// estimate of the next parameters, and both halves together the parameters themselves. Nabli et al.,
    /// "ACCO" (arXiv 2406.02613).
    Estimate,
    /// `theta' = alpha theta + (1 - alpha) a'`, alpha in `[0, 1)`: Douillard et al., "Streaming
    /// DiLoCo with overlapping communication" (arXiv 2501.18512), equation of its section 2.2. At 0
    /// the training since the cut is dropped.
    Alpha(f32),
}

/// How late results are in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Late {
    /// What the trainer does with them.
    pub blend: Blend,
    /// Number of rounds; zero means until told to stop. Nothing is trained after the last round's cut.
    pub rounds: u64,
    /// Which fragments a round exchanges.
    pub overlap: OverlapPlan,
}

impl Late {
    /// As the plan says; `None` where its results are never late.
    pub fn new(blend: Blend, plan: &Plan) -> Option<Self> {
        let (rounds, overlap) = (plan.rounds, plan.overlap);
        (overlap.late_steps > 0).then_some(Self {
            blend,
            rounds,
            overlap,
        })
    }

    /// The share of the trainer's values where they are mixed with the anchor's.
    pub(super) const fn own_share(self) -> f32 {
        match self.blend {
            Blend::OwnProgress | Blend::Eager | Blend::Estimate => 1.0,
            Blend::Alpha(alpha) => alpha,
        }
    }
}

/// What the mix lane keeps where training continues past the anchor: late results and eager updates, as far as
/// the plan has them.
pub(super) struct Ahead {
    /// Set where the trainer continues past the anchor between rounds.
    pub(super) trains_ahead: bool,
    /// How late results meet the training since the cut; `None` where results come between rounds.
    pub(super) late: Option<Late>,
    pub(super) eager: Option<Eager>,
}

impl Ahead {
    /// How a round's result meets training past the cut. `None` where the trainer takes the anchor
    /// as it is: after the last round nothing has been trained on top.
    pub(super) fn late_in(&self, round: Round) -> Option<Late> {
        let late = self.late?;
        let last = late.rounds > 0 && round.0.saturating_add(1) >= late.rounds;
        (!last).then_some(late)
    }

    /// How late results come, where the trainer starts from an eager update.
    pub(super) fn eagerly(&self) -> Option<Late> {
        self.late.filter(|late| late.blend == Blend::Eager)
    }

    pub(super) fn own_share(&self) -> f32 {
        self.late.map_or(0.0, Late::own_share)
    }

    /// Number of f32 it keeps.
    pub(super) fn len(&self) -> usize {
        self.eager.as_ref().map_or(0, Eager::len)
    }
}

/// This peer's part of the outer step, taken at the cut.
///
/// In the paper peer i moves its own parameters with its own outer optimizer by
/// `D_i^t = d_i^t / n + (mean d^{t-1} - d_i^{t-1} / n)`: its delta now, the others' deltas a round
/// late. Peers would agree on nothing. Rewrite it as
/// `D_i^t = mean d^{t-1} + (d_i^t - d_i^{t-1}) / n`. The first term is the same at all peers. An
/// outer optimizer that is linear in its deltas answers the sum by the sum of its answers. Its
/// answer to the second term is the difference between two steps of an optimizer that is fed the
/// shares `d_i / n`: this round's step minus the previous round's. So
///
/// ```text
/// a^{t+1}  = outer(a^t, mean d^t)                agreed on, a round late: the same bits everywhere
/// e_i^t    = outer_i(0, d_i^t / n)               a step of this peer's own optimizer
/// theta_i  = a^t + e_i^t                         at the cut of round t
/// theta_i' = a^{t+1} + (theta_i - a^t - e_i^t)   when the result of round t comes
/// ```
///
/// is the paper's trajectory, with this peer's part beside the anchor. n is the number of peers
/// that this peer knew at the cut. If the round had another number the error does not stay, because
/// the result removes e again. If the round was void, or decided without this peer, the whole delta
/// is put back and the peer's own momentum starts at zero. Shapes: `[len]`, f32; state: the
/// optimizer's, e, and the buffer that brings it to the trainer. Source: Kale et al., "Eager
/// updates for overlapped communication and computation in DiLoCo" (arXiv 2502.12996). Special
/// case: with one peer theta is never moved back, which is DiLoCo alone.
pub(super) struct Eager {
    outer: OuterOptimizer,
    /// e, valid in the fragments with an active eager update.
    part: Vec<f32>,
    /// Fragments in which the trainer has started from e and whose result is not here yet.
    in_force: Vec<bool>,
    /// A buffer for the frame that brings e to the trainer, between two uses.
    pub(super) room: Option<Vec<f32>>,
}

impl Eager {
    /// For `len` parameters in this many fragments; `outer` is built like the one that moves the anchor.
    pub(super) fn new(outer: OuterOptimizer, len: usize, fragments: usize) -> Self {
        Self {
            outer,
            part: vec![0.0; len],
            in_force: vec![false; fragments],
            room: None,
        }
    }

    /// Number of f32 it keeps.
    pub(super) fn len(&self) -> usize {
        self.part.len() + self.outer.state().len() + self.room.as_ref().map_or(0, Vec::len)
    }

    /// Computes e of one fragment from this peer's delta and leaves the anchor plus e in `start`.
    pub(super) fn begin(
        &mut self,
        index: usize,
        range: Range<usize>,
        share: f32,
        values: Start<'_>,
    ) {
        let part = &mut self.part[range.clone()];
        part.fill(0.0);
        let start = values.start;
        for (s, d) in start.iter_mut().zip(values.delta) {
            *s = share * d;
        }
        self.outer.apply(range, part, start);
        for ((s, a), e) in start.iter_mut().zip(values.anchor).zip(&*part) {
            *s = a + e;
        }
        self.in_force[index] = true;
    }

    /// Where the trainer has started from e, replaces the delta in `local` by e, or with `whole` by
    /// the part of the delta that e did not contain and that must be put back. Returns false, without a
    /// change, where the trainer has not started from e.
    pub(super) fn resolve(
        &mut self,
        index: usize,
        range: Range<usize>,
        local: &mut [f32],
        whole: bool,
    ) -> bool {
        if !std::mem::take(&mut self.in_force[index]) {
            return false;
        }
        let part = &self.part[range.clone()];
        if whole {
            local.iter_mut().zip(part).for_each(|(d, e)| *d -= e);
            self.forget(range);
        } else {
            local.copy_from_slice(part);
        }
        true
    }

    /// Sets the optimizer's state of a fragment to zero: the step that it remembers was taken back.
    fn forget(&mut self, range: Range<usize>) {
        let len = self.part.len();
        for run in self.outer.state_mut().chunks_exact_mut(len) {
            run[range.clone()].fill(0.0);
        }
    }

    /// The anchor was replaced.
    pub(super) fn start_over(&mut self) {
        self.in_force.fill(false);
        self.outer.state_mut().fill(0.0);
    }

    pub(super) fn save(&self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        match self.outer.state() {
            [] => Ok(()),
            state => sink.tensor(STATE, state),
        }
    }

    /// Reads what [`Eager::save`] wrote, without a change.
    pub(super) fn read(&self, source: &dyn StateSource) -> Result<Vec<f32>, StateError> {
        finite(source, STATE, self.outer.state().len())
    }

    pub(super) fn take(&mut self, state: &[f32]) {
        self.outer.state_mut().copy_from_slice(state);
    }

    /// Per fragment with an active eager update, the part of the delta in `local` that the
    /// trainer left behind: for a checkpoint in the middle of a round, whose result never arrives.
    pub(super) fn left_behind(
        &self,
        fragments: &[Range<usize>],
        local: &[f32],
    ) -> Vec<(usize, Vec<f32>)> {
        let fragments = fragments.iter().enumerate();
        let fragments = fragments.filter(|(index, _)| self.in_force[*index]);
        fragments
            .map(|(index, range)| {
                let pairs = local[range.clone()].iter().zip(&self.part[range.clone()]);
                (index, pairs.map(|(d, e)| d - e).collect())
            })
            .collect()
    }
}

/// One fragment's values at an eager update.
pub(super) struct Start<'a> {
    /// The training since the anchor.
    pub(super) delta: &'a [f32],
    pub(super) anchor: &'a [f32],
    /// Takes the values that the trainer starts from.
    pub(super) start: &'a mut [f32],
}

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
