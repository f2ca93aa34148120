//! Gossip by pulling: ask the round's partners, mix what they published last. Nobody pushes unasked,
//! and nobody waits for another's training.
//!
//! At the end of its inner steps a peer encodes its parameters once and publishes them, asks those whose
//! parameters its row of W names, and takes
//!
//! ```text
//! x_i <- (1 - sum_j W_ij) x_i + sum_j W_ij C(x_j)
//! ```
//!
//! over the partners j whose answers came by the deadline. Whoever is asked answers at once with what it
//! published last, of whichever round; who has published nothing yet answers when it has.
//!
//! What holds: every row is a convex combination, whatever is late, lost, refused or comes twice. No value
//! leaves the range that the peers' values spanned, and equals stay equal. The sums over the peers are
//! kept only where W is doubly stochastic and all answers are in and of the same round; unlike pushes,
//! answers carry no mass that could be accounted for. What is lost of an answer is its effect, and
//! nothing has to come back.
//!
//! Cost per peer and round with d partners: d small questions, and d pushes of one encoded fragment in answer
//! to those that ask; two latencies. Waits for the answers of the live partners until the deadline, never
//! longer; half-way there it asks those that have not answered once more. Push-pull, where either end of a link moves by what both have, is `pairwise`.
//!
//! **Source:** Demers et al. 1987, "Epidemic algorithms for replicated database maintenance", section 1.3
//! (push, pull, push-pull); Karp et al. 2000, "Randomized rumor spreading", section 1; asynchronous
//! averaging by rows: Tsitsiklis, Bertsekas and Athans 1986, "Distributed asynchronous deterministic and
//! stochastic gradient optimization algorithms", section II.

mod asking;
mod published;
#[cfg(test)]
mod tests;

use crate::core::context::Context;
use crate::core::timers::Timer;
use crate::exchange::{Ending, Exchange, Outcome, Signal};
use crate::wire::Message;
use crate::{
    Done, FragmentId, Order, OrderId, Part, PeerError, PeerId, SliceId, SliceMeta, Time, Topology,
    TrainSummary, Wait, WorkError,
};
use asking::Asking;
use published::Published;
use std::collections::BTreeSet;

/// The pull exchange of one peer.
pub(crate) struct Pull {
    topology: Box<dyn Topology>,
    published: Published,
    /// The round's fragments.
    asking: Vec<Asking>,
    /// When the round's exchange began.
    began: Time,
    /// When nobody is waited for any longer, once those that have not answered were asked again.
    deadline: Time,
    /// Whether that is still to come.
    ask_again: bool,
}

impl Pull {
    pub(crate) fn new(topology: Box<dyn Topology>) -> Self {
        Self {
            topology,
            published: Published::default(),
            asking: Vec::new(),
            began: Time::ZERO,
            deadline: Time::ZERO,
            ask_again: false,
        }
    }

    /// This peer's row of W: whom it asks, and what each counts. Ranks are positions among the live peers.
    fn row(&self, cx: &Context) -> Vec<(PeerId, f64)> {
        let mut live: Vec<PeerId> = cx.view.live().map(|(id, _)| id).collect();
        let me = live.partition_point(|id| *id < cx.me());
        live.insert(me, cx.me());
        let count = live.len();
        let asked = self.topology.partners(cx.round, me, count).receive;
        let share = |rank: usize| {
            let pushes = self.topology.partners(cx.round, rank, count).send;
            pushes.into_iter().find(|(to, _)| *to == me)
        };
        let row = asked.into_iter().filter(|rank| *rank != me);
        row.filter_map(|rank| Some((*live.get(rank)?, share(rank)?.1)))
            .collect()
    }

    fn arrived(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        slice: SliceId,
        meta: SliceMeta,
    ) -> Result<(), PeerError> {
        let own = slice.origin == from && slice.part == Part::Contribution && slice.shard == 0;
        let known = cx.plan.fragment(slice.fragment).is_some();
        if !own || !known || meta.of != 1 {
            return Err(PeerError::Unexpected {
                what: "an answer must be its sender's own contribution".to_owned(),
            });
        }
        let asking = self.asking.get_mut(usize::from(slice.fragment.0));
        if asking.as_ref().is_some_and(|a| a.holds(slice)) {
            return Ok(()); // a retry of what is here already
        }
        let current = meta.group == cx.round.0;
        if asking.is_some_and(|a| current && a.take(from, slice)) {
            let waited = cx.now.since(self.began);
            cx.deadlines.record(Wait::Partners, from, waited);
        } else {
            // Of a round that went on without it.
            cx.order(Order::Release { slice });
        }
        self.advance(cx);
        Ok(())
    }

    fn done(&mut self, cx: &mut Context, order: OrderId, done: &Done) {
        let Some(asking) = self.asking.iter_mut().find(|a| a.order == Some(order)) else {
            return;
        };
        match done {
            Done::Encoded { bytes, .. } => {
                let slice = asking.encoded();
                self.published.publish(cx, slice, *bytes);
            }
            Done::Combined => asking.mixed(cx),
            Done::Failed(WorkError::BadSlice { slice, reason, .. }) => {
                let bad = *slice;
                cx.accuse(bad.origin, format!("an answer that is bad: {reason}"));
                asking.without(cx, bad);
            }
            _ => asking.failed(cx),
        }
        self.advance(cx);
    }

    /// Takes every fragment one stage further where nothing is left to wait for.
    fn advance(&mut self, cx: &mut Context) {
        self.asking.iter_mut().for_each(|a| a.advance(cx));
        if !self.asking.iter().any(Asking::waits) {
            cx.waited(Wait::Partners, false);
            cx.timers.stop(Timer::Exchange);
        }
    }

    /// Questions get lost: whoever has not answered half-way to the deadline is asked again. At the
    /// deadline what is there counts.
    fn timeout(&mut self, cx: &mut Context) {
        if std::mem::replace(&mut self.ask_again, false) {
            let late: BTreeSet<PeerId> = self.asking.iter().flat_map(Asking::awaited).collect();
            let round = cx.round;
            for peer in late {
                cx.send(peer, Message::PullAsk { round });
            }
            cx.timers.set(Timer::Exchange, self.deadline);
            return;
        }
        cx.waited(Wait::Partners, true);
        let mut late: Vec<PeerId> = Vec::new();
        for asking in &mut self.asking {
            late.extend(asking.give_up());
        }
        late.into_iter().for_each(|peer| cx.suspect(peer));
        self.advance(cx);
    }
}

impl Exchange for Pull {
    fn begin(&mut self, cx: &mut Context, _summary: &TrainSummary) {
        self.began = cx.now;
        let row = self.row(cx);
        let round = cx.round;
        for (peer, _) in &row {
            cx.send(*peer, Message::PullAsk { round });
        }
        if !row.is_empty() {
            let asked = row.iter().map(|(peer, _)| *peer);
            let allowed = cx.deadlines.allow(Wait::Partners, asked);
            self.deadline = cx.wait(Wait::Partners, allowed);
            self.ask_again = true;
            cx.timers.set(Timer::Exchange, cx.now + allowed / 2);
        }
        let fragments: Vec<FragmentId> = cx.plan.fragment_ids().collect();
        self.asking = fragments
            .into_iter()
            .map(|fragment| Asking::new(cx, fragment, row.clone()))
            .collect();
        self.advance(cx);
    }

    fn signal(&mut self, cx: &mut Context, signal: Signal<'_>) -> Result<(), PeerError> {
        if let Signal::Message { from, .. } | Signal::Arrived { from, .. } = signal
            && let Some(remote) = cx.view.get_mut(from)
        {
            // It speaks: what it did not answer was lost, or late.
            remote.suspected = false;
        }
        match signal {
            Signal::Message { from, message } => match message {
                Message::PullAsk { round } => self.published.asked(cx, from, *round),
                _ => {
                    return Err(PeerError::Unexpected {
                        what: "another exchange's message in a run that pulls".to_owned(),
                    });
                }
            },
            Signal::Arrived {
                from, slice, meta, ..
            } => {
                let result = self.arrived(cx, from, slice, meta);
                if result.is_err() {
                    cx.order(Order::Release { slice });
                }
                return result;
            }
            Signal::Pushed { to, slice, outcome } => {
                self.published.pushed(cx, to, slice, outcome);
            }
            Signal::Done { order, done } => self.done(cx, order, done),
            Signal::Gone(peer) => {
                self.published.gone(peer);
                self.asking.iter_mut().for_each(|a| a.gone(peer));
                self.advance(cx);
            }
            Signal::Timeout => self.timeout(cx),
            Signal::Fetched { .. } | Signal::FetchFailed { .. } | Signal::Heard(_) => {}
        }
        Ok(())
    }

    fn ended(&mut self, _cx: &Context) -> Vec<(FragmentId, Ending)> {
        let all: Option<Vec<_>> = self.asking.iter().map(Asking::ending).collect();
        all.unwrap_or_default()
    }

    fn outcome(&mut self) -> Option<Outcome> {
        let all = self.asking.iter().all(|a| a.ending().is_some());
        (all && !self.asking.is_empty()).then_some(Outcome::Ended)
    }

    fn finish(&mut self, cx: &mut Context) {
        for asking in std::mem::take(&mut self.asking) {
            asking.close(cx);
        }
        cx.waited(Wait::Partners, false);
        cx.timers.stop(Timer::Exchange);
    }

    fn waiting(&self) -> usize {
        self.asking.iter().map(Asking::held).sum()
    }
}
