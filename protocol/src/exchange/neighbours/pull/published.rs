//! The parameters that a peer published last, and the peers that asked for them. At most one answer
//! is under way to each peer. A peer that asks in another round meanwhile is answered after it.

use crate::core::context::Context;
use crate::exchange::neighbours::ledger::SliceLedger;
use crate::{FragmentId, PeerId, PullPlan, PushOutcome, Round, SliceId, SliceMeta, Tag};
use std::collections::BTreeMap;

/// How often an answer is pushed at most: a second loss of the same bytes means a bad link.
const PUSHES_MAX: u8 = 2;

/// An answer under way.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// The asker's round.
    round: Round,
    /// How often it was pushed.
    times: u8,
}

/// Published parameters, fragment by fragment.
#[derive(Debug)]
pub(super) struct Published {
    bounds: PullPlan,
    newest: BTreeMap<FragmentId, (SliceId, u64)>,
    ledger: SliceLedger<Answer>,
    /// Who waits for an answer, and in which round of its own it asked.
    waiting: BTreeMap<PeerId, Round>,
}

impl Published {
    pub(super) fn new(bounds: PullPlan) -> Self {
        Self {
            bounds,
            newest: BTreeMap::new(),
            ledger: SliceLedger::default(),
            waiting: BTreeMap::new(),
        }
    }

    /// Parameters are encoded: they answer every question from now on.
    pub(super) fn publish(&mut self, cx: &mut Context, slice: SliceId, bytes: u64) {
        let last = self.newest.insert(slice.fragment, (slice, bytes));
        if let Some((old, _)) = last.filter(|(old, _)| *old != slice) {
            // It goes with the last answer that needs it.
            self.ledger.spare(old);
        }
        self.ledger.release(cx, |_| false);
        for (peer, round) in std::mem::take(&mut self.waiting) {
            self.asked(cx, peer, round);
        }
    }

    /// A peer asks.
    pub(super) fn asked(&mut self, cx: &mut Context, peer: PeerId, round: Round) {
        let complete = self.newest.len() == cx.plan.fragments.len();
        let under_way = self.ledger.to(peer).next().map(|(_, answer)| answer.round);
        if under_way == Some(round) {
            return; // it asks once more, and its answer is on the way
        }
        let oldest = self.bounds.oldest(round);
        let fresh = self.newest.values().all(|(slice, _)| slice.round >= oldest);
        if !complete || !fresh || under_way.is_some() {
            self.waiting.insert(peer, round);
            return;
        }
        for (slice, bytes) in self.newest.values() {
            let answer = Answer { round, times: 1 };
            let meta = meta(round, *bytes);
            self.ledger.push(cx, (peer, *slice), meta, answer);
        }
    }

    /// The push of an answer ended. A lost answer is pushed once more while it is the newest; after
    /// that the asker continues without it.
    pub(super) fn pushed(
        &mut self,
        cx: &mut Context,
        peer: PeerId,
        slice: SliceId,
        outcome: PushOutcome,
    ) {
        let Some(answer) = self.ledger.ended(peer, slice) else {
            return;
        };
        let newest = self.newest.get(&slice.fragment);
        let newest = newest.filter(|(newest, _)| *newest == slice && answer.times < PUSHES_MAX);
        if let (PushOutcome::Lost, Some((_, bytes))) = (outcome, newest) {
            let meta = meta(answer.round, *bytes);
            let times = answer.times + 1;
            let again = Answer { times, ..answer };
            self.ledger.push(cx, (peer, slice), meta, again);
            return;
        }
        self.ledger.release(cx, |_| false);
        let busy = self.ledger.to(peer).next().is_some();
        if !busy && let Some(round) = self.waiting.remove(&peer) {
            self.asked(cx, peer, round);
        }
    }

    /// A peer is gone, and waits for no answer.
    pub(super) fn gone(&mut self, peer: PeerId) {
        self.waiting.remove(&peer);
    }
}

/// Of an answer to what was asked in a round.
fn meta(round: Round, bytes: u64) -> SliceMeta {
    SliceMeta {
        of: 1,
        bytes,
        tag: Tag::Answer { round },
    }
}
