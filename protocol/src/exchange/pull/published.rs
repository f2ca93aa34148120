//! What a peer has published last, and who asked for it. At most one answer is on its way to each peer:
//! whoever asks in another round meanwhile is answered when it has ended.

use crate::core::context::Context;
use crate::{FragmentId, Order, PeerId, PushOutcome, Round, SliceId, SliceMeta};
use std::collections::{BTreeMap, BTreeSet};

/// How often an answer is pushed at most.
const PUSHES_MAX: u8 = 2;

/// Published parameters, fragment by fragment.
#[derive(Debug, Default)]
pub(super) struct Published {
    newest: BTreeMap<FragmentId, (SliceId, u64)>,
    /// Answers under way: to which question, and pushed how often.
    pushes: BTreeMap<(SliceId, PeerId), (Round, u8)>,
    /// Newer has been published of the same fragment: these go with the last answer that needs them.
    old: BTreeSet<SliceId>,
    /// Who waits for an answer, and in which round of its own it asked.
    waiting: BTreeMap<PeerId, Round>,
}

impl Published {
    /// The own parameters are encoded: they are what is asked for from now on.
    pub(super) fn publish(&mut self, cx: &mut Context, slice: SliceId, bytes: u64) {
        let last = self.newest.insert(slice.fragment, (slice, bytes));
        self.old
            .extend(last.map(|(old, _)| old).filter(|old| *old != slice));
        self.release(cx);
        for (peer, round) in std::mem::take(&mut self.waiting) {
            self.asked(cx, peer, round);
        }
    }

    /// A peer asks.
    pub(super) fn asked(&mut self, cx: &mut Context, peer: PeerId, round: Round) {
        let whole = self.newest.len() == cx.plan.fragments.len();
        let mut to_it = self.pushes.iter().filter(|((_, to), _)| *to == peer);
        let under_way = to_it.next().map(|(_, (round, _))| *round);
        if under_way == Some(round) {
            return; // it asks once more, and will hear
        }
        if !whole || under_way.is_some() {
            self.waiting.insert(peer, round);
            return;
        }
        for (slice, bytes) in self.newest.values() {
            self.pushes.insert((*slice, peer), (round, 1));
            push(cx, peer, (*slice, *bytes), round);
        }
    }

    /// An answer ended. One that was lost goes once more while it is the newest; after that whoever lacks
    /// it goes on without.
    pub(super) fn pushed(
        &mut self,
        cx: &mut Context,
        peer: PeerId,
        slice: SliceId,
        outcome: PushOutcome,
    ) {
        let Some((round, times)) = self.pushes.remove(&(slice, peer)) else {
            return;
        };
        let newest = self.newest.get(&slice.fragment).copied();
        let again = newest.filter(|(newest, _)| *newest == slice && times < PUSHES_MAX);
        if let (PushOutcome::Lost, Some(newest)) = (outcome, again) {
            self.pushes.insert((slice, peer), (round, times + 1));
            push(cx, peer, newest, round);
            return;
        }
        self.release(cx);
        let busy = self.pushes.keys().any(|(_, to)| *to == peer);
        if !busy && let Some(round) = self.waiting.remove(&peer) {
            self.asked(cx, peer, round);
        }
    }

    /// A peer is gone: nobody waits for an answer.
    pub(super) fn gone(&mut self, peer: PeerId) {
        self.waiting.remove(&peer);
    }

    fn release(&mut self, cx: &mut Context) {
        let busy: BTreeSet<SliceId> = self.pushes.keys().map(|(slice, _)| *slice).collect();
        for slice in self.old.extract_if(.., |slice| !busy.contains(slice)) {
            cx.order(Order::Release { slice });
        }
    }
}

/// An answer to what was asked in a round.
fn push(cx: &mut Context, to: PeerId, (slice, bytes): (SliceId, u64), round: Round) {
    let meta = SliceMeta {
        of: 1,
        weight: 1.0,
        contributors: 0,
        group: round.0,
        bytes,
    };
    cx.push(to, slice, meta, 0);
}
