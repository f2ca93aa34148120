//! Exchanges between neighbours: every peer pushes slices of its own to a few partners, waits for
//! theirs until a deadline, and mixes what has arrived into its own parameters. Peers need not
//! agree on anything, so a round never fails because of another peer.
//!
//! [`Neighbours`] is the engine. It owns what all of these exchanges do in the same way:
//!
//! - the states of a fragment ([`FragmentMix`]): collecting (own slices are encoded, partners'
//!   slices awaited), combining, ended;
//! - which partners are still awaited, the clock and the deadline of that wait, and suspicion of
//!   those that miss it;
//! - the dispatch of signals, and the release of slices that break a rule;
//! - the order to combine, and its repetition without a slice that turns out to be bad;
//! - ranks: which peers a topology means by its numbers ([`ranks::Ranks`]);
//! - the ledger of pushes under way ([`slices::SliceLedger`]), which releases a slice once nothing
//!   needs it.
//!
//! A [`Rule`] decides the rest: the partners of a peer and the slices that it pushes to them, the use
//! of a slice that arrives, and the weights of a mix. There are six:
//!
//! | rule | what travels | why it is correct |
//! |---|---|---|
//! | [`gossip`] | parameters, a share of the sender's weight | the sums of mass are conserved |
//! | [`pull`] | published parameters, to those that ask | rows of W are convex combinations |
//! | [`group_mean`] | published parameters to one member, their mean to all | one sum for a group |
//! | [`pairwise`] | numbered halves of an exchange between two | both ends move by the same bytes |
//! | [`differences`] | numbered differences, the same to all | copies move by all of them in order |
//! | [`relay_sum`] | the mean over one side of a tree's edge, and a count | each peer counts once |
//!
//! Sessions with a neighbour (`pairwise::edge`, `relay_sum::edge`) outlive rounds and have states
//! of their own. They stay with their rules, because they have only the name in common.

mod differences;
mod gossip;
mod group_mean;
mod pairwise;
mod pull;
mod relay_sum;
mod rule;
mod slices;

use crate::core::context::Context;
use crate::core::deadlines::Timer;
use crate::exchange::{Arrived, Exchange, Outcome, PushSum, Signal};
use crate::{
    Checked, Done, Ending, ExchangeKind, FragmentId, OrderId, PeerId, Plan, PullAnswers, Topology,
    TrainSummary, Wait, WorkError,
};
use differences::Differences;
use gossip::Gossip;
use group_mean::GroupMeans;
use pairwise::Pairwise;
pub use pairwise::Standing;
use pull::Pull;
pub use pull::PullMessage;
use relay_sum::RelaySum;
use rule::{Encoded, FragmentMix, MixesOf, Rule};

/// Makes the exchange between neighbours that a plan asks for, if it does.
pub(super) fn build(plan: &Plan, topology: Box<dyn Topology>) -> Option<Box<dyn Exchange>> {
    let exchange: Box<dyn Exchange> = match plan.exchange {
        ExchangeKind::Gossip | ExchangeKind::Push => {
            Box::new(Neighbours::new(Gossip::new(plan, topology)))
        }
        ExchangeKind::Pull(bounds) => Box::new(Neighbours::new(Pull::new(topology, bounds, false))),
        ExchangeKind::PullBy(bounds, PullAnswers::OfTheRound) => {
            Box::new(Neighbours::new(Pull::new(topology, bounds, true)))
        }
        ExchangeKind::PullBy(bounds, PullAnswers::GroupMean) => {
            Box::new(Neighbours::new(GroupMeans::new(topology, bounds)))
        }
        ExchangeKind::Replicas | ExchangeKind::Pairs => {
            Box::new(Neighbours::new(Pairwise::new(plan, topology)))
        }
        ExchangeKind::Differences(_) => Box::new(Neighbours::new(Differences::new(topology))),
        ExchangeKind::RelaySum => Box::new(Neighbours::new(RelaySum::new(topology))),
        _ => return None,
    };
    Some(exchange)
}

struct Neighbours<R: Rule> {
    rule: R,
    /// The round's fragments; none between two rounds.
    mixes: MixesOf<R>,
}

impl<R: Rule> Neighbours<R> {
    fn new(rule: R) -> Self {
        Self {
            rule,
            mixes: MixesOf::<R>::default(),
        }
    }

    fn arrived(&mut self, cx: &mut Context, arrived: &Arrived) -> Checked {
        let slice = arrived.slice;
        self.rule
            .arrived(cx, &mut self.mixes, arrived)
            .inspect_err(|_| {
                // The rule keeps nothing of what it refuses.
                cx.release(slice);
            })?;
        self.advance(cx);
        Ok(())
    }

    fn done(&mut self, cx: &mut Context, order: OrderId, done: &Done) {
        if let Some((slice, note)) = self.mixes.take_encoding(order) {
            let encoded = Encoded {
                order,
                slice,
                note,
                done,
            };
            self.rule.encoded(cx, &mut self.mixes, encoded);
        } else if let Some(index) = self.mixes.combining(order) {
            self.combined(cx, index, done);
        } else {
            // Of the rule, or of a round that this peer has left.
            self.rule.done(cx, &mut self.mixes, order, done);
        }
        self.advance(cx);
    }

    /// The order to combine a fragment was answered.
    fn combined(&mut self, cx: &mut Context, index: usize, done: &Done) {
        let Some(mix) = self.mixes.at(index) else {
            return;
        };
        match done {
            Done::Combined => self.rule.mixed(cx, mix),
            Done::Failed(WorkError::BadSlice { slice, reason, .. }) => {
                cx.accuse(slice.origin, format!("a slice that is bad: {reason}"));
                // Nothing of a combination that failed is in the parameters, so it is repeated. A
                // slice that was no input cannot be left out: the same would fail again.
                match self.rule.without(cx, mix, *slice) {
                    Some(mixture) => mix.combine(cx, mixture),
                    None => self.fail(cx, index),
                }
            }
            _ => self.fail(cx, index),
        }
    }

    fn fail(&mut self, cx: &mut Context, index: usize) {
        if let Some(mix) = self.mixes.at(index) {
            self.rule.unmixed(cx, mix);
            mix.void();
        }
    }

    /// Combines what has nothing left to wait for, and stops the clock if nothing waits.
    fn advance(&mut self, cx: &mut Context) {
        // Fragments combine one by one: a slice that is late for one of them holds up no other.
        for mix in self.mixes.iter_mut() {
            if mix.is_ready() {
                match self.rule.mixture(cx, mix) {
                    Some(mixture) => mix.combine(cx, mixture),
                    None => mix.void(),
                }
            }
        }
        // Not the end of the round: own slices may be encoded, or a mix be under way.
        if !self.mixes.iter().any(|mix| self.rule.waits(mix)) {
            cx.waited(Wait::Partners);
            cx.timers.stop(Timer::Exchange);
        }
    }

    /// The deadline has passed: mixes what has arrived and waits for no other slices.
    fn timeout(&mut self, cx: &mut Context) {
        // Asking again extends the wait, so no partner is late yet.
        if let Some(later) = self.rule.ask_again(cx, &mut self.mixes) {
            cx.timers.set(Timer::Exchange, later);
            self.advance(cx);
            return;
        }
        cx.waited(Wait::Partners);
        for mix in self.mixes.iter_mut() {
            for peer in std::mem::take(&mut mix.expected) {
                cx.overdue(Wait::Partners, [peer]);
                self.rule.missed(cx, mix.fragment, peer);
            }
        }
        self.advance(cx);
    }
}

impl<R: Rule> Exchange for Neighbours<R> {
    fn begin(&mut self, cx: &mut Context, _summary: &TrainSummary) {
        self.mixes.begin(cx);
        self.rule.begin(cx, &mut self.mixes);
        self.advance(cx);
    }

    fn signal(&mut self, cx: &mut Context, signal: Signal<'_>) -> Checked {
        match signal {
            Signal::Message { from, message } => {
                self.rule.message(cx, &mut self.mixes, from, message)?;
                self.advance(cx);
            }
            Signal::Arrived(arrived) => return self.arrived(cx, &arrived),
            Signal::Pushed(end) => self.rule.pushed(cx, &mut self.mixes, end),
            Signal::Done { order, done } => self.done(cx, order, done),
            Signal::Gone(peer) => {
                self.rule.gone(cx, &mut self.mixes, peer);
                self.mixes.gone(peer);
                self.advance(cx);
            }
            Signal::Timeout => self.timeout(cx),
            Signal::Heard(_) => {
                self.rule.heard(cx, &mut self.mixes);
                self.advance(cx);
            }
            Signal::Fetched { .. } | Signal::FetchFailed(_) => {}
        }
        Ok(())
    }

    /// Fragments are reported together: the parameters of a peer change once a round.
    fn ended(&mut self, _cx: &Context) -> Vec<(FragmentId, Ending)> {
        let endings = self.mixes.iter().map(FragmentMix::ending);
        let ended: Option<Vec<_>> = endings.collect();
        ended.unwrap_or_default()
    }

    fn outcome(&mut self) -> Option<Outcome> {
        let ended = self.mixes.iter().all(|mix| mix.ending().is_some());
        (ended && self.mixes.iter().next().is_some()).then_some(Outcome::Ended)
    }

    fn finish(&mut self, cx: &mut Context) {
        // The rule first: it releases what the fragments have read.
        self.rule.finish(cx, &mut self.mixes);
        self.mixes.clear();
        cx.timers.stop(Timer::Exchange);
    }

    fn push_sum(&self) -> PushSum {
        self.rule.push_sum(&self.mixes)
    }

    fn set_weights(&mut self, weights: &[f64]) {
        self.rule.set_weights(weights);
    }

    fn standings(&self) -> Vec<Standing> {
        self.rule.standings()
    }

    fn waiting(&self) -> usize {
        self.rule.waiting(&self.mixes)
    }

    fn awaited(&self, _cx: &Context, _wait: Wait, _fragment: FragmentId) -> Vec<PeerId> {
        // All fragments share one wait.
        let expected = self.mixes.iter().flat_map(|mix| &mix.expected);
        expected.copied().collect()
    }
}
