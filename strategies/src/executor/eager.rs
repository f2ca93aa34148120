//! Eager updates: from the cut until the round's result the trainer goes on from the anchor and from what
//! the outer optimizer makes of the own share of the delta alone. The anchor itself knows nothing of it.

use super::frame::{Frame, Install, Taken};
use super::late::{Blend, Late};
use super::mix_lane::{Local, MixLane};
use crate::outer::OuterOptimizer;
use crate::state::{StateError, StateSink, StateSource};
use murmurate_protocol::{FragmentId, Round};
use std::ops::Range;

/// The own optimizer's state in a checkpoint.
const STATE: &str = "overlap.eager";

/// The own part of the outer step, at once.
///
/// The paper's peer i moves parameters of its own, with an outer optimizer of its own, by
/// `D_i^t = d_i^t / n + (mean d^{t-1} - d_i^{t-1} / n)`: its delta now, the others' a round late. Peers would
/// agree on nothing. But an outer optimizer which is linear in its deltas answers a sum by the sum of its
/// answers, and `D_i^t = mean d^{t-1} + (d_i^t - d_i^{t-1}) / n`: the first term is the same for all, and the
/// second one is a difference, whose answer is that of one round less that of the round before, which is
/// the step that an optimizer takes that is fed the shares themselves. So
///
/// ```text
/// a^{t+1}  = outer(a^t, mean d^t)                agreed on, a round late: the same bits everywhere
/// e_i^t    = outer_i(0, d_i^t / n)               the step of an own optimizer, fed nothing else
/// theta_i  = a^t + e_i^t                         at the cut of round t
/// theta_i' = a^{t+1} + (theta_i - a^t - e_i^t)   when the result of round t comes
/// ```
///
/// is the paper's trajectory, with the own part beside the anchor. A share that was not that of the round (n is
/// what this peer knew at the cut) leaves nothing behind: the result takes it out again. Of a round that came
/// to nothing, or went on without this peer, the whole delta is put back and the own momentum begins anew.
/// Shapes: `[len]`, f32; state: the own optimizer's, e, and the room that brings it to the trainer. Source: Kale
/// et al., "Eager updates for overlapped communication and computation in DiLoCo" (arXiv 2502.12996).
/// Special case: with one peer theta is never pulled back: that is DiLoCo alone.
pub(super) struct Eager {
    outer: Box<dyn OuterOptimizer>,
    /// e, of the fragments that are out.
    part: Vec<f32>,
    /// Fragments in which the trainer has gone on from it.
    out: Vec<bool>,
    room: Option<Vec<f32>>,
}

impl Eager {
    /// For as many parameters in as many fragments; `outer` is like the one that moves the anchor.
    pub(super) fn new(outer: Box<dyn OuterOptimizer>, len: usize, fragments: usize) -> Self {
        Self {
            outer,
            part: vec![0.0; len],
            out: vec![false; fragments],
            room: None,
        }
    }

    /// f32 values that it keeps.
    pub(super) fn len(&self) -> usize {
        self.part.len() + self.outer.state().len() + self.room.as_ref().map_or(0, Vec::len)
    }

    /// Room that has come back from the trainer.
    pub(super) fn give_room(&mut self, room: Option<Vec<f32>>) {
        self.room = room.or(self.room.take());
    }

    /// e of one fragment, from this peer's delta; leaves the anchor and e in `delta_then_start`.
    fn begin(&mut self, index: usize, range: Range<usize>, share: f32, values: Values<'_>) {
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
        self.out[index] = true;
    }

    /// Where the trainer has gone on from e, makes of the delta in `local` what it has gone on from: e itself,
    /// or with `whole` the part of the delta that it left behind, which is to be put back. False where it
    /// has not.
    pub(super) fn resolve(
        &mut self,
        index: usize,
        range: Range<usize>,
        local: &mut [f32],
        whole: bool,
    ) -> bool {
        if !std::mem::take(&mut self.out[index]) {
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

    /// The own momentum of a fragment begins anew.
    fn forget(&mut self, range: Range<usize>) {
        let len = self.part.len();
        for run in self.outer.state_mut().chunks_exact_mut(len) {
            run[range.clone()].fill(0.0);
        }
    }

    /// The anchor is another one.
    pub(super) fn start_over(&mut self) {
        self.out.fill(false);
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
        let mut state = vec![0.0; self.outer.state().len()];
        if !state.is_empty() {
            source.tensor(STATE, &mut state)?;
        }
        match state.iter().all(|value| value.is_finite()) {
            true => Ok(state),
            false => Err(StateError::Malformed {
                name: STATE.to_owned(),
                reason: "a value is not finite".to_owned(),
            }),
        }
    }

    pub(super) fn take(&mut self, state: &[f32]) {
        self.outer.state_mut().copy_from_slice(state);
    }
}

/// One fragment's: what was trained since the anchor, and where what the trainer goes on from is to be left.
struct Values<'a> {
    delta: &'a [f32],
    anchor: &'a [f32],
    start: &'a mut [f32],
}

impl MixLane {
    /// The cut has come, and the next round's training begins: what the trainer goes on from, in the
    /// fragments whose turn the cut was. `None` where it goes on as it is.
    pub(super) fn begin_eagerly(&mut self, next: Round, peers: u16) -> Option<Frame> {
        let late = self.late.filter(|late| late.blend == Blend::Eager)?;
        self.collect();
        let (cut, share) = (
            Round(next.0.saturating_sub(1)),
            1.0 / f32::from(peers.max(1)),
        );
        let ours = |index: &usize| {
            let fragment = FragmentId(*index as u16);
            let whole = self.local[*index] == Local::Contribution;
            whole && self.holds_delta(fragment) && late.overlap.exchanges(cut, fragment)
        };
        let ours: Vec<usize> = (0..self.fragments.len()).filter(ours).collect();
        let (eager, delta) = (self.eager.as_mut()?, self.buffer.as_ref()?);
        let mut values = eager.room.take().unwrap_or_else(|| vec![0.0; delta.len()]);
        let mut install = Vec::new();
        for index in ours {
            let range = self.fragments[index].clone();
            let of = Values {
                delta: &delta[range.clone()],
                anchor: &self.anchor[range.clone()],
                start: &mut values[range.clone()],
            };
            eager.begin(index, range.clone(), share, of);
            let taken = Taken::WithDelta;
            install.push(Install { range, taken });
        }
        Some(Frame::new(values, install))
    }

    /// What is left of the delta where the trainer has gone on from the own part of it, and the result is not to
    /// come: of a checkpoint in the middle of a round.
    pub(super) fn left_behind(&self, late: Late) -> Vec<(usize, Vec<f32>)> {
        let (Blend::Eager, Some(eager), Some(local)) = (late.blend, &self.eager, &self.buffer)
        else {
            return Vec::new();
        };
        let out = (0..self.fragments.len()).filter(|index| eager.out[*index]);
        out.map(|index| {
            let range = self.fragments[index].clone();
            let pairs = local[range.clone()].iter().zip(&eager.part[range]);
            (index, pairs.map(|(d, e)| d - e).collect())
        })
        .collect()
    }
}
