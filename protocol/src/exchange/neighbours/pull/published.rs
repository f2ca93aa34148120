//! The parameters that a peer published last, or a queue of earlier ones, too, and the peers that
//! asked for them. At most one answer is under way to each peer. A peer that asks in another round
//! meanwhile is answered after it.

use super::message::PullMessage;
use crate::core::context::Context;
use crate::exchange::PushEnd;
use crate::exchange::neighbours::slices::SliceLedger;
use crate::limits::PULL_QUEUE_BYTES_MAX;
use crate::sorted::SortedMap;
use crate::{FragmentId, PeerId, PullPlan, PushOutcome, Round, SliceId, SliceMeta, Tag};

/// How often an answer is pushed again at most: a second loss of the same bytes means a bad link.
const AGAIN_MAX: u8 = 1;

/// The question of a peer that waits for the answer.
#[derive(Clone, Copy, Debug)]
struct Question {
    round: Round,
    /// The newest round of which it has mixed an iterate.
    taken: Option<Round>,
}

/// Published parameters, fragment by fragment.
#[derive(Debug)]
pub(super) struct Published {
    bounds: PullPlan,
    /// Set where a question is answered with the iterate of its round.
    queues: bool,
    /// The last iterates of each fragment, each with its size: [`PullPlan::queue`] of them, or the
    /// newest one.
    iterates: SortedMap<FragmentId, SortedMap<Round, (SliceId, u64)>>,
    /// Answers under way, each with the asker's round.
    ledger: SliceLedger<Round>,
    waiting: SortedMap<PeerId, Question>,
}

impl Published {
    pub(super) fn new(bounds: PullPlan, queues: bool) -> Self {
        Self {
            bounds,
            queues,
            iterates: SortedMap::new(),
            ledger: SliceLedger::default(),
            waiting: SortedMap::new(),
        }
    }

    /// Parameters are encoded: they answer every question from now on.
    pub(super) fn publish(&mut self, cx: &mut Context, slice: SliceId, bytes: u64) {
        let queue = self.iterates.entry(slice.fragment).or_default();
        let last = queue.insert(slice.round, (slice, bytes));
        if let Some((old, _)) = last.filter(|(old, _)| *old != slice) {
            // It goes with the last answer that needs it.
            self.ledger.spare(old);
        }
        // Before the questions: none of them may choose what goes now.
        self.forget_the_oldest(slice);
        self.ledger.release(cx, |_| false);
        for (peer, question) in std::mem::take(&mut self.waiting) {
            self.asked(cx, peer, question.round, question.taken);
        }
    }

    /// Keeps as many iterates as the plan says, within the bound on their bytes.
    fn forget_the_oldest(&mut self, newest: SliceId) {
        let kept = if self.queues { self.bounds.queue() } else { 1 };
        let queue = self.iterates.entry(newest.fragment).or_default();
        while queue.len() > kept {
            let oldest = queue.keys().copied().find(|round| *round != newest.round);
            let oldest = oldest.and_then(|round| queue.remove(&round));
            self.ledger.spare(oldest.expect("more than one is kept").0);
        }
        while self.bytes() > PULL_QUEUE_BYTES_MAX {
            let long = self.iterates.values_mut().filter(|queue| queue.len() > 1);
            let oldest = long.min_by_key(|queue| queue.keys().next().copied());
            let Some((_, (slice, _))) = oldest.and_then(SortedMap::pop_first) else {
                break; // the newest of each fragment stay
            };
            self.ledger.spare(slice);
        }
    }

    /// Encoded bytes of all iterates that are kept for questions to come.
    fn bytes(&self) -> u64 {
        let all = self.iterates.values().flat_map(SortedMap::values);
        all.map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)
    }

    /// How many iterates of a fragment are kept at most at the moment.
    #[cfg(test)]
    pub(super) fn longest(&self) -> usize {
        let queues = self.iterates.values().map(SortedMap::len);
        queues.max().unwrap_or(0)
    }

    /// The iterates that answer a question of a round; `None` where they are yet to be published.
    fn chosen(&self, cx: &Context, round: Round) -> Option<Vec<(SliceId, u64)>> {
        // An answer is of one round, so it waits until every fragment is published.
        if self.iterates.len() < cx.plan.fragments.len() {
            return None;
        }
        let newest = |queue: &SortedMap<Round, _>| queue.keys().next_back().copied();
        // All fragments have been published in this round.
        let whole = self.iterates.values().filter_map(newest).min()?;
        let of = |queue: &SortedMap<Round, (SliceId, u64)>| {
            let found = if self.queues {
                let until = queue.range(..=round.min(whole)).next_back();
                // Without one the asker is further behind than the queue is long.
                until.or(queue.iter().next())
            } else {
                queue.iter().next_back()
            };
            found.map(|(_, iterate)| *iterate)
        };
        let chosen: Option<Vec<(SliceId, u64)>> = self.iterates.values().map(of).collect();
        let oldest = self.bounds.oldest(round);
        chosen.filter(|all| all.iter().all(|(slice, _)| slice.round >= oldest))
    }

    pub(super) fn asked(
        &mut self,
        cx: &mut Context,
        peer: PeerId,
        round: Round,
        taken: Option<Round>,
    ) {
        let under_way = self.ledger.to(peer).next().map(|(_, round)| *round);
        if under_way == Some(round) {
            return; // it asks once more, and its answer is on the way
        }
        // One answer at a time to each peer: a slow link must not carry answers to rounds that are
        // over.
        let chosen = self.chosen(cx, round).filter(|_| under_way.is_none());
        let Some(chosen) = chosen else {
            self.waiting.insert(peer, Question { round, taken });
            return;
        };
        // It has mixed these: pushing them again would cost bytes and count one iterate twice.
        if chosen.iter().all(|(slice, _)| Some(slice.round) <= taken) {
            cx.send(peer, PullMessage::Unchanged { round });
            return;
        }
        for (slice, bytes) in chosen {
            self.ledger
                .push(cx, peer, slice, answer(round, bytes), round);
        }
    }

    /// A push of an answer ended. A lost one is repeated once; then the asker goes on.
    pub(super) fn pushed(&mut self, cx: &mut Context, end: PushEnd) {
        let PushEnd { to, slice, outcome } = end;
        let Some(push) = self.ledger.ended(&end) else {
            return;
        };
        let queue = self.iterates.get(&slice.fragment);
        let kept = queue.and_then(|queue| queue.get(&slice.round));
        let kept = kept.is_some_and(|(kept, _)| *kept == slice);
        if outcome == PushOutcome::Lost && kept && push.again < AGAIN_MAX {
            self.ledger.push_again(cx, &end, push);
            return;
        }
        self.ledger.release(cx, |_| false);
        // Its question waits for all fragments of the answer before.
        let busy = self.ledger.to(to).next().is_some();
        if !busy && let Some(question) = self.waiting.remove(&to) {
            self.asked(cx, to, question.round, question.taken);
        }
    }

    pub(super) fn gone(&mut self, peer: PeerId) {
        self.waiting.remove(&peer);
    }
}

pub(in crate::exchange::neighbours) fn answer(round: Round, bytes: u64) -> SliceMeta {
    SliceMeta {
        of: 1,
        bytes,
        tag: Tag::Answer { round },
    }
}
