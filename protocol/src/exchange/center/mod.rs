//! A parameter server whose peers need not be in the same round. Contributions arrive at the owners
//! of the center's shards one by one. Each worker pulls the shards and continues (ASP), or waits
//! for the slowest peer when it is too far ahead (SSP). Any peer may own a shard: the winner of the
//! rendezvous hash over the live peers does.
//!
//! ```text
//! push:   c' = outer(c, mean_k w(tau_k) C(d_k)) over the K arrivals that are taken in at once
//! pull:   a_i = c'                       tau_k = versions of the center since k pulled it
//! lead:   a peer begins round r only when all live peers are in round r - s or later; s is fixed,
//!         or chosen between two bounds by how long rounds take (`bound`)
//! ```
//!
//! With elastic averaging parameters travel instead, and neither end takes over the other's:
//! `c' = c + alpha (x_i - c)`, `x_i' = x_i - alpha (x_i - c)`.
//!
//! Every version of a shard has a number, and every worker holds the shard as it last pulled it.
//! When an owner dies, the next in hash order continues from its own copy; a worker that has pulled
//! a newer one says so with its next push and is asked for it first. Only arrivals that no worker
//! has pulled are lost. Peers do not vote on owners: a peer that is not the owner in its own view
//! refuses, and the worker tries the next. A round whose pushes no owner answers is void: its
//! training stays for the next round.
//!
//! Cost per worker and round with k shards, f fragments of m encoded bytes and a center of M bytes
//! (f32) in all: f k pushes of contributions (m / (f k) bytes each) and f k replies (M / (f k)),
//! fewer by those of its own shards; with a bounded lead n - 1 signs of life. Latency: two ways.
//! Each worker waits for its owners' answers until the deadline, never longer, and an owner never
//! waits.
//!
//! **Source:** Dean et al. 2012 (Downpour) and Lian et al. 2015 (ASP); Ho et al. 2013 (SSP),
//! section 3; Zhao et al. 2019 (dynamic SSP); Nguyen et al. 2022, "FedBuff" (K arrivals at once);
//! Zhang et al. 2015 (EASGD), algorithm 1; Li et al. 2014, "Scaling Distributed Machine Learning
//! with the Parameter Server", section 4.3 (owners and their successors).

mod bound;
mod lead;
mod owner;
mod state;
#[cfg(test)]
mod tests;
mod worker;

pub(crate) use state::Center;

use crate::core::context::Context;
use crate::core::deadlines::Timer;
use crate::exchange::{
    Arrived, Exchange, ExchangeMessage, Outcome, PushEnd, Signal, broke, forbid, foreign_message,
    foreign_tag, tell,
};
use crate::{
    Checked, Done, Ending, FragmentId, OrderId, Part, PeerId, PushOutcome, Round, SliceId,
    SliceMeta, Tag, TrainSummary, Wait,
};
use serde::{Deserialize, Serialize};
use state::{Arrival, COPY, EXCHANGE, Shard, Task, VERSION_MAX};

impl Center {
    fn done(&mut self, cx: &mut Context, order: OrderId, done: &Done) {
        let Some(task) = self.tasks.remove(&order) else {
            return;
        };
        let bytes = match done {
            Done::Encoded { bytes, .. } => Some(*bytes),
            _ => None,
        };
        match task {
            Task::Contribution(slice) => self.encoded(cx, slice, bytes),
            Task::Reply(slice) => self.reply_encoded(cx, slice, bytes),
            Task::Arrive(place, arrivals) => self.arrived_done(cx, place, arrivals, done),
            Task::Copy(slice, to) => self.copy_encoded(cx, slice, to, bytes),
            Task::Adopt(slice, place, before) => {
                if let Done::Failed(error) = done {
                    if let Some(shard) = self.shards.get_mut(&place) {
                        // The copy was no copy: the shard is what it was, and another one may be
                        // asked for.
                        shard.version = before;
                    }
                    cx.accuse(slice.origin, format!("a copy of the center: {error}"));
                }
                cx.release(slice);
            }
            Task::Seed => {}
        }
    }

    fn arrived(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        slice: SliceId,
        meta: SliceMeta,
    ) -> Checked {
        let place = (slice.fragment, slice.shard);
        let known = cx.plan.fragment(slice.fragment).is_some();
        if !known || meta.of != Self::of(cx, slice.fragment) || slice.shard >= meta.of {
            return broke("a slice that does not fit the center's shards");
        }
        let version = match meta.tag {
            Tag::Update { base, .. } => base,
            Tag::Version { version, .. } | Tag::Copy { version } => version,
            other => return Err(foreign_tag(other, EXCHANGE)),
        };
        // A liar's number would otherwise be above all that come later.
        forbid(version > VERSION_MAX, "a version that no center reaches")?;
        let is_copy = slice.attempt.0 & COPY != 0;
        match (slice.part, meta.tag) {
            (Part::Partial, _) => broke("a partial sum in a run with a center"),
            (Part::Contribution, Tag::Update { base, round }) => {
                let arrival = Arrival {
                    from,
                    slice,
                    base,
                    round,
                };
                self.arrival(cx, place, arrival)
            }
            (Part::Aggregate, Tag::Copy { version }) if is_copy => {
                self.copy_arrived(cx, place, from, slice, version);
                Ok(())
            }
            (Part::Aggregate, Tag::Version { version, round }) if !is_copy => {
                if !self.shard_arrived(cx, place, from, slice, (version, round)) {
                    cx.release(slice);
                }
                Ok(())
            }
            (_, other) => Err(foreign_tag(other, EXCHANGE)),
        }
    }

    fn pushed(&mut self, cx: &mut Context, end: PushEnd) {
        let PushEnd { to, slice, outcome } = end;
        match slice.part {
            Part::Partial
            | Part::RowMean
            | Part::Bundle
            | Part::Basis
            | Part::Second
            | Part::Scores => {}
            Part::Contribution => {
                if matches!(outcome, PushOutcome::Lost | PushOutcome::Refused) {
                    // Where the fate is unknown it may have been taken in: the deadline asks again.
                    self.push_failed(cx, to, slice);
                }
            }
            Part::Aggregate if slice.attempt.0 & COPY != 0 => {
                if self.copies.remove(&slice).is_some() {
                    cx.release(slice);
                }
            }
            Part::Aggregate => self.reply_pushed(cx, end),
        }
    }

    fn message(&mut self, cx: &mut Context, from: PeerId, message: &ExchangeMessage) -> Checked {
        let ExchangeMessage::Center(message) = message else {
            return Err(foreign_message(message, EXCHANGE));
        };
        match message {
            CenterMessage::Ask { fragment, shard } => {
                if cx.plan.fragment(*fragment).is_none() || *shard >= Self::of(cx, *fragment) {
                    return broke("a question for a shard that the center does not have");
                }
                self.asked_for_copy(cx, from, (*fragment, *shard));
                Ok(())
            }
            CenterMessage::Moved {
                round,
                fragment,
                shard,
            } => {
                if *round == cx.round {
                    self.moved(cx, from, (*fragment, *shard));
                }
                Ok(())
            }
        }
    }

    /// After every signal: ends what can end, and sets the timer to the earliest deadline.
    fn settle(&mut self, cx: &mut Context) {
        // Versions are released once no reply needs them, whatever the signal was.
        self.sweep(cx);
        self.check_end(cx);
        let fragments = self.fragments.iter().filter(|p| p.ending.is_none());
        let asked = self.shards.values().filter_map(Shard::asked_until);
        let all = fragments
            .map(|p| p.deadline)
            .chain(asked)
            .chain(self.lead.until);
        match all.min() {
            Some(deadline) => cx.timers.set(Timer::Exchange, deadline),
            None => cx.timers.stop(Timer::Exchange),
        }
    }
}

impl Exchange for Center {
    fn begin(&mut self, cx: &mut Context, _summary: &TrainSummary) {
        self.outcome = None;
        self.start_round(cx);
        self.settle(cx);
    }

    fn signal(&mut self, cx: &mut Context, signal: Signal<'_>) -> Checked {
        let mut result = Ok(());
        match signal {
            Signal::Message { from, message } => result = self.message(cx, from, message),
            Signal::Arrived(Arrived {
                from, slice, meta, ..
            }) => {
                result = self.arrived(cx, from, slice, meta);
                if result.is_err() {
                    cx.release(slice);
                }
            }
            Signal::Pushed(end) => self.pushed(cx, end),
            Signal::Done { order, done } => self.done(cx, order, done),
            Signal::Gone(peer) => self.owner_gone(cx, peer),
            Signal::Heard(peer) => self.heard(cx, peer),
            Signal::Timeout => {
                self.owners_timeout(cx);
                self.ask_timeout(cx);
                self.lead_timeout(cx);
            }
            Signal::Fetched { .. } | Signal::FetchFailed(_) => {}
        }
        self.settle(cx);
        result
    }

    fn ended(&mut self, _cx: &Context) -> Vec<(FragmentId, Ending)> {
        let all = self.fragments.iter_mut();
        tell(all.map(|f| (f.fragment, f.ending.as_ref(), &mut f.told)))
    }

    fn applied(&mut self, cx: &mut Context, fragment: FragmentId) {
        self.release_fragment(cx, fragment);
    }

    fn without(&mut self, cx: &mut Context, bad: SliceId, reason: &str) -> Option<Ending> {
        cx.accuse(bad.origin, format!("a center that is bad: {reason}"));
        None
    }

    fn outcome(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    fn finish(&mut self, cx: &mut Context) {
        for fragment in cx.plan.fragment_ids() {
            cx.waited_in(fragment, Wait::Center);
            self.release_fragment(cx, fragment);
        }
        self.fragments.clear();
        self.end_lead(cx);
        self.settle(cx);
    }

    fn awaited(&self, cx: &Context, wait: Wait, fragment: FragmentId) -> Vec<PeerId> {
        match wait {
            Wait::Lead => Self::laggards(cx, self.hard()),
            _ => self.owners_awaited(fragment),
        }
    }

    fn waiting(&self) -> usize {
        self.shards.values().map(Shard::waiting).sum()
    }
}

/// A message between a worker and the owner of a shard of the center.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CenterMessage {
    /// The sender owns a shard of the center and lacks the version that the receiver has pulled:
    /// asks for it.
    Ask {
        /// The fragment.
        fragment: FragmentId,
        /// The shard.
        shard: u16,
    },
    /// The sender does not own the shard of the center that the receiver contributed to.
    Moved {
        /// The receiver's round.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The shard.
        shard: u16,
    },
}

impl CenterMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ask { .. } => "center-ask",
            Self::Moved { .. } => "center-moved",
        }
    }

    /// The round that the message is about, if it is about one.
    pub(crate) const fn round(&self) -> Option<Round> {
        match self {
            Self::Ask { .. } => None,
            Self::Moved { round, .. } => Some(*round),
        }
    }
}
