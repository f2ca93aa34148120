//! Butterfly all-reduce with agreement: survivors hold the same bits, the weighted mean of a
//! stated set of contributions.
//!
//! Life of a round: `grouping` forms the group, one `Butterfly` a fragment reduces its shards
//! (`reduce`), votes on them (`agree`) and mends what a dead member left (`repair`); `history`
//! keeps decisions for those who come late.
//!
//! Messages per round and member when all is well, with n members and f fragments: one `Ready` and
//! one `Propose` (n - 1 of the latter by the proposer), f (n - 1) votes; 2 f (n - 1) pushes of
//! about 1/n of a fragment each. Latency: group (one round trip), contributions, aggregates, votes.

mod agree;
mod butterfly;
mod coordinate;
mod group;
mod grouping;
mod history;
mod mailbox;
mod reduce;
mod repair;

pub(crate) use history::slices_of;

use crate::exchange::{Ending, Exchange, Outcome, Signal};
use crate::peer::FetchId;
use crate::peer::context::Context;
use crate::peer::timers::Timer;
use crate::wire::Message;
use crate::{
    Digest, Event, FragmentId, Order, PeerError, PeerId, Round, SliceId, SliceMeta, TrainSummary,
};
use butterfly::Butterfly;
use group::Group;
use grouping::{Formed, Grouping};
use history::History;
use mailbox::address;

/// A slice that came before its group was known.
type EarlySlice = (PeerId, SliceId, SliceMeta, Option<Digest>);

/// The all-reduce exchange of one peer.
pub(crate) struct AllReduce {
    grouping: Grouping,
    butterflies: Vec<Butterfly>,
    early_slices: Vec<EarlySlice>,
    early_messages: Vec<(PeerId, Message)>,
    history: History,
    outcome: Option<Outcome>,
}

impl AllReduce {
    pub(crate) fn new() -> Self {
        Self {
            grouping: Grouping::default(),
            butterflies: Vec::new(),
            early_slices: Vec::new(),
            early_messages: Vec::new(),
            history: History::default(),
            outcome: None,
        }
    }

    fn formed(&mut self, cx: &mut Context, formed: Formed) {
        match formed {
            Formed::Waiting => {}
            Formed::Group(group) => self.start(cx, group),
            Formed::Outcome(outcome) => {
                self.outcome = Some(outcome);
            }
            Formed::Nobody => {
                self.grouping.end(cx, true);
                self.outcome = Some(Outcome::Ended(vec![Ending::Void; cx.plan.fragments.len()]));
            }
        }
    }

    /// The group is known: start every fragment and hand it what came early.
    fn start(&mut self, cx: &mut Context, group: Group) {
        let members = group.members.iter().map(|m| m.peer).collect();
        cx.emit(Event::Group {
            round: cx.round,
            members,
        });
        let tag = group.tag;
        let fragments: Vec<FragmentId> = cx.plan.fragment_ids().collect();
        self.butterflies = fragments
            .into_iter()
            .map(|f| Butterfly::new(cx, f, group.clone()))
            .collect();
        let round = cx.round;
        for (from, slice, meta, digest) in std::mem::take(&mut self.early_slices) {
            if slice.round > round {
                self.early_slices.push((from, slice, meta, digest));
            } else if slice.round == round && meta.group == tag {
                if let Err(error) = self.arrived(cx, from, slice, meta, digest) {
                    cx.accuse(from, error.to_string());
                }
            } else {
                cx.order(Order::Release { slice });
            }
        }
        for (from, message) in std::mem::take(&mut self.early_messages) {
            match address(&message) {
                Some((r, ..)) if r > round => self.early_messages.push((from, message)),
                Some((r, _, g)) if r == round && g == tag => {
                    if let Err(error) = self.deliver(cx, from, &message) {
                        cx.accuse(from, error.to_string());
                    }
                }
                _ => {}
            }
        }
        self.settle(cx);
    }

    fn of_fragment(&mut self, fragment: FragmentId) -> Option<&mut Butterfly> {
        self.butterflies.get_mut(usize::from(fragment.0))
    }

    fn message(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &Message,
    ) -> Result<(), PeerError> {
        match message {
            Message::Ready {
                round,
                weight,
                anchor,
            } => {
                let late =
                    *round < cx.round || (*round == cx.round && !self.butterflies.is_empty());
                if late {
                    if *round == cx.round {
                        self.grouping.late(cx, from);
                    }
                    let next = if *round < cx.round {
                        cx.round
                    } else {
                        cx.round.next()
                    };
                    cx.send(
                        from,
                        Message::Behind {
                            round: next,
                            resync: false,
                        },
                    );
                    return Ok(());
                }
                let formed = self.grouping.ready(cx, from, *round, *weight, *anchor);
                self.formed(cx, formed);
                Ok(())
            }
            Message::Propose {
                round,
                term,
                members,
            } => {
                let formed = self.grouping.proposed(cx, from, *round, *term, members);
                self.formed(cx, formed);
                Ok(())
            }
            Message::Decline { round, .. } => {
                if *round == cx.round {
                    self.gone(cx, from);
                }
                Ok(())
            }
            Message::Behind { round, resync } => {
                let mine = self.grouping.active() && *round > cx.round;
                if mine {
                    self.grouping.end(cx, false);
                    self.outcome = Some(Outcome::Behind {
                        teller: from,
                        resync: *resync,
                    });
                }
                Ok(())
            }
            other => self.deliver(cx, from, other),
        }
    }

    fn gone(&mut self, cx: &mut Context, peer: PeerId) {
        for butterfly in &mut self.butterflies {
            if let Some(index) = butterfly.group.index(peer) {
                butterfly.give_up(group::bit(index));
                butterfly.advance(cx);
            }
        }
        self.early_slices.retain(|(from, slice, ..)| {
            let keep = *from != peer;
            if !keep {
                cx.order(Order::Release { slice: *slice });
            }
            keep
        });
    }

    /// After every signal: the timer follows the earliest open deadline.
    fn settle(&mut self, cx: &mut Context) {
        if self.butterflies.is_empty() {
            return;
        }
        if let Some(teller) = self.butterflies.iter().find_map(|b| b.missed) {
            cx.timers.stop(Timer::Exchange);
            let resync = true;
            self.outcome
                .get_or_insert(Outcome::Behind { teller, resync });
            return;
        }
        let open = self.butterflies.iter().filter(|b| b.ending.is_none());
        match open.map(|b| b.deadline).min() {
            Some(deadline) => cx.timers.set(Timer::Exchange, deadline),
            None => {
                cx.timers.stop(Timer::Exchange);
                let endings = self.butterflies.iter().filter_map(|b| b.ending.clone());
                self.outcome
                    .get_or_insert(Outcome::Ended(endings.collect()));
            }
        }
    }
}

impl Exchange for AllReduce {
    fn begin(&mut self, cx: &mut Context, summary: &TrainSummary) {
        self.outcome = None;
        let formed = self.grouping.begin(cx, summary.samples as f64);
        self.formed(cx, formed);
        self.settle(cx);
    }

    fn signal(&mut self, cx: &mut Context, signal: Signal<'_>) -> Result<(), PeerError> {
        let result = match signal {
            Signal::Message { from, message } => self.message(cx, from, message),
            Signal::Arrived {
                from,
                slice,
                meta,
                digest,
            } => self.arrived(cx, from, slice, meta, digest),
            Signal::Pushed { to, slice, outcome } => {
                if let Some(butterfly) = self.of_fragment(slice.fragment)
                    && butterfly.round == slice.round
                {
                    butterfly.pushed(cx, to, slice, outcome);
                }
                Ok(())
            }
            Signal::Fetched {
                what: FetchId::Slice(slice),
                digest,
            } => {
                let kept = self.kept(slice);
                let butterfly = self.of_fragment(slice.fragment);
                if let Some(butterfly) = butterfly.filter(|b| b.round == slice.round) {
                    butterfly.fetched(cx, slice, digest);
                } else if !kept {
                    cx.order(Order::Release { slice });
                }
                Ok(())
            }
            Signal::FetchFailed {
                what: FetchId::Slice(slice),
            } => {
                if let Some(butterfly) = self.of_fragment(slice.fragment) {
                    butterfly.fetch_failed(cx, slice);
                }
                Ok(())
            }
            Signal::Done { order, done } => {
                self.butterflies.iter_mut().any(|b| b.done(cx, order, done));
                Ok(())
            }
            Signal::Gone(peer) => {
                self.gone(cx, peer);
                let formed = self.grouping.gone(cx, peer);
                self.formed(cx, formed);
                Ok(())
            }
            Signal::Timeout => {
                self.butterflies.iter_mut().for_each(|b| b.timeout(cx));
                if self.grouping.active() {
                    let formed = self.grouping.timeout(cx);
                    self.formed(cx, formed);
                }
                Ok(())
            }
            Signal::Fetched { .. } | Signal::FetchFailed { .. } => Ok(()),
        };
        self.settle(cx);
        result
    }

    fn outcome(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    fn finish(&mut self, cx: &mut Context) {
        self.grouping.end(cx, false);
        cx.timers.stop(Timer::Exchange);
        let butterflies = std::mem::take(&mut self.butterflies);
        self.history.close(cx, butterflies);
        let round = cx.round;
        self.early_slices.retain(|(_, slice, ..)| {
            let keep = slice.round > round;
            if !keep {
                cx.order(Order::Release { slice: *slice });
            }
            keep
        });
        self.early_messages
            .retain(|(_, m)| address(m).is_some_and(|(r, ..)| r > round));
    }

    fn history(&self, round: Round) -> Option<Vec<Message>> {
        self.history.get(round)
    }

    fn remember(&mut self, cx: &mut Context, round: Round, decisions: Vec<Message>) {
        self.history.learned(cx, round, decisions);
    }

    fn waiting(&self) -> usize {
        self.early_slices.len() + self.early_messages.len()
    }
}
