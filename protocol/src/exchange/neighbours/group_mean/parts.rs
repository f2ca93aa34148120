//! What this peer published last of each fragment, and the members that asked for it: the send
//! buffer of the paper.

use crate::core::context::Context;
use crate::exchange::PushEnd;
use crate::exchange::neighbours::pull::answer;
use crate::exchange::neighbours::slices::SliceLedger;
use crate::limits::GROUP_MEANS_MAX;
use crate::sorted::SortedMap;
use crate::{FragmentId, PeerId, PullPlan, PushOutcome, Round, SliceId};

/// How often a part is pushed again at most for one question.
const AGAIN_MAX: u8 = 1;

/// Published parameters, fragment by fragment. At most one push of a fragment is under way to each
/// peer.
#[derive(Debug)]
pub(super) struct Parts {
    bounds: PullPlan,
    newest: SortedMap<FragmentId, (SliceId, u64)>,
    encoding: SortedMap<FragmentId, Round>,
    /// Parts under way, each with the round of the mean that it is for.
    ledger: SliceLedger<Round>,
    waiting: SortedMap<(PeerId, FragmentId), Vec<Round>>,
}

impl Parts {
    pub(super) fn new(bounds: PullPlan) -> Self {
        Self {
            bounds,
            newest: SortedMap::new(),
            encoding: SortedMap::new(),
            ledger: SliceLedger::default(),
            waiting: SortedMap::new(),
        }
    }

    /// A fragment is being encoded: questions wait for it.
    pub(super) fn begins(&mut self, slice: SliceId) {
        self.encoding.insert(slice.fragment, slice.round);
    }

    /// A fragment is encoded; `None` if it cannot be. `reads` says which slices are still summed.
    pub(super) fn publish(
        &mut self,
        cx: &mut Context,
        slice: SliceId,
        bytes: Option<u64>,
        reads: impl Fn(&SliceId) -> bool,
    ) {
        let fragment = slice.fragment;
        if self.encoding.get(&fragment) == Some(&slice.round) {
            self.encoding.remove(&fragment);
        }
        if let Some(bytes) = bytes {
            // A mean sums what was published last, so older parameters have no use but pushes under
            // way.
            let last = self.newest.insert(fragment, (slice, bytes));
            if let Some((old, _)) = last.filter(|(old, _)| *old != slice) {
                self.ledger.spare(old);
            }
        }
        self.release(cx, reads);
        let askers = self.waiting.extract_if(.., |(_, of), _| *of == fragment);
        let askers: Vec<_> = askers.collect();
        for ((peer, fragment), rounds) in askers {
            for round in rounds {
                self.asked(cx, peer, fragment, round);
            }
        }
    }

    /// Releases what nothing needs any more.
    pub(super) fn release(&mut self, cx: &mut Context, reads: impl Fn(&SliceId) -> bool) {
        self.ledger.release(cx, reads);
    }

    /// This peer's part in the mean of a round: the parameters published last. `None` if there are
    /// none, if they are too old, or if they are older than the round and newer ones are being encoded.
    pub(super) fn ready(&self, fragment: FragmentId, round: Round) -> Option<(SliceId, u64)> {
        let (slice, bytes) = self.newest.get(&fragment).copied()?;
        let encoding = self.encoding.contains_key(&fragment);
        let fresh = slice.round >= self.bounds.oldest(round);
        // Newer ones are a moment away: the mean is worth that wait.
        (fresh && (slice.round >= round || !encoding)).then_some((slice, bytes))
    }

    /// A member makes the mean of a round and asks for a part.
    pub(super) fn asked(
        &mut self,
        cx: &mut Context,
        peer: PeerId,
        fragment: FragmentId,
        round: Round,
    ) {
        let of_it = self.ledger.to(peer);
        let of_it = of_it.filter(|(slice, _)| slice.fragment == fragment);
        let under_way = of_it.last().map(|(_, round)| *round);
        if under_way == Some(round) {
            return; // it asks once more, and its answer is on the way
        }
        let ready = self.ready(fragment, round);
        match ready.filter(|_| under_way.is_none()) {
            Some((slice, bytes)) => {
                self.ledger
                    .push(cx, peer, slice, answer(round, bytes), round);
            }
            None => {
                let rounds = self.waiting.entry((peer, fragment)).or_default();
                rounds.retain(|waits| *waits != round);
                // No maker keeps more means, so the oldest question is of one that it has
                // forgotten.
                if rounds.len() >= GROUP_MEANS_MAX {
                    rounds.remove(0);
                }
                rounds.push(round);
            }
        }
    }

    /// The push of a part ended. False where it was none.
    pub(super) fn pushed(
        &mut self,
        cx: &mut Context,
        end: PushEnd,
        reads: impl Fn(&SliceId) -> bool,
    ) -> bool {
        let PushEnd { to, slice, outcome } = end;
        let Some(push) = self.ledger.ended(&end) else {
            return false;
        };
        let newest = self.newest.get(&slice.fragment);
        let newest = newest.is_some_and(|(newest, _)| *newest == slice);
        // Newer parameters answer better than a second push of older ones.
        if outcome == PushOutcome::Lost && newest && push.again < AGAIN_MAX {
            self.ledger.push_again(cx, &end, push);
            return true;
        }
        self.release(cx, reads);
        let waiting = self.waiting.remove(&(to, slice.fragment));
        for round in waiting.unwrap_or_default() {
            self.asked(cx, to, slice.fragment, round);
        }
        true
    }

    pub(super) fn gone(&mut self, peer: PeerId) {
        self.waiting.retain(|(waits, _), _| *waits != peer);
    }
}
