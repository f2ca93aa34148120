//! The life of a round: train, exchange, apply, settle (evaluate, save), next. Also the start
//! before the first round and the end after the last.

use crate::core::timers::Timer;
use crate::core::{EVALUATE_NEVER, Event, Phase, Remote};
use crate::exchange::Outcome;
use crate::limits::{ALIVE_EVERY, LINGER};
use crate::peer::{Peer, Snapshot};
use crate::{Base, Digest, Done, Order, OrderId, PeerId, Time, TrainSummary, WorkError};
use std::collections::BTreeMap;

impl Peer {
    pub(super) fn enter(&mut self, phase: Phase) {
        assert!(
            self.phase.may_become(phase),
            "{} may not become {phase}",
            self.phase
        );
        self.phase = phase;
        self.break_off_forward();
        self.cx.emit(Event::Phase {
            round: self.cx.round,
            phase,
        });
    }

    pub(super) fn start(
        &mut self,
        snapshot: Option<Snapshot>,
        digests: Vec<Digest>,
        opened: Vec<Base>,
    ) {
        assert_eq!(self.phase, Phase::New, "a peer starts once");
        assert_eq!(
            digests.len(),
            self.cx.plan.fragments.len(),
            "one digest a fragment"
        );
        self.cx.digests = digests;
        // Slices of an earlier life may still be under way. The time is the one input that differs.
        let started = Digest::of(&self.cx.now.as_nanos().to_le_bytes());
        let mut session = [0; 8];
        session.copy_from_slice(&started.as_bytes()[..8]);
        self.cx.this_life.session = u64::from_le_bytes(session);
        if let Some(snapshot) = snapshot {
            assert_eq!(
                snapshot.plan, self.cx.directed.plan_hash,
                "the driver checks the snapshot's plan"
            );
            self.cx.round = snapshot.round;
            self.share(&snapshot.roll, &snapshot.ledger);
            self.exchange.set_weights(&snapshot.weights);
            self.life.ahead.taken = snapshot.ahead;
            let finished = snapshot.ahead.map_or(0, |ahead| ahead.blocks);
            self.cx.data.mine.resume(finished);
            self.life.saved_round = Some(snapshot.round);
            if let Some(split) = snapshot.split.map(|split| *split) {
                self.cx.view.split.restore(split);
            }
        }
        opened.into_iter().for_each(|base| self.donor.open(base));
        self.life.saved_at = self.cx.now;
        self.life.started = self.cx.now;
        self.enter(Phase::Join);
        self.dial_mates();
        self.gather();
        // Peers that start together do not all speak at the same instant.
        let spread = (self.cx.me().as_bytes()[0] as u32 + 1) * ALIVE_EVERY / 256;
        self.cx.timers.set(Timer::Alive, self.cx.now + spread);
        self.try_begin();
    }

    /// The first round of this life.
    pub(super) fn begin(&mut self) {
        if self.only_follows() {
            self.looked();
            return;
        }
        if !self.life.once.begun {
            self.await_holders();
        }
        self.life.once.begun = true;
        self.stop_waiting_for_peers();
        // The Executor trains one order at a time: a round that this peer has left must end first.
        self.life.ahead.held = self.life.ahead.order.is_some() || self.life.train.is_some();
        if self.life.ahead.held {
            return;
        }
        if self.is_over() || self.holds() {
            // The others have done all rounds, or pause. The state that this peer took over is evaluated and
            // saved, as theirs was.
            self.enter(Phase::Settle);
            self.settle();
        } else {
            self.next_round();
        }
        self.tell_alive();
    }

    /// Trains the next round, or ends when the plan's rounds are done, or waits in a pause.
    pub(super) fn next_round(&mut self) {
        self.remember_opening();
        self.cx.take_directives();
        if self.is_over() {
            self.finish();
            return;
        }
        if self.only_follows() {
            self.ask_for_a_place();
            self.enter(Phase::Join);
            self.follow_later();
            return;
        }
        self.life.started = self.cx.now;
        // In a pause too: it trains nothing.
        if self.exchange.merge_is_due(&self.cx) {
            self.merge();
            return;
        }
        if self.holds() {
            self.pause();
            return;
        }
        self.enter(Phase::Train);
        self.exchange.open(&mut self.cx);
        self.tell_rates();
        let round = self.cx.round;
        if !self.cx.plan.draws(round, self.cx.me()) {
            // A peer that is not drawn takes part in the round with weight zero.
            self.enter(Phase::Exchange);
            (self.cx.data.taken, self.cx.data.loss) = (None, None);
            self.exchange(TrainSummary::default());
            self.cut_the_rest();
            return;
        }
        let budget = self.rest_of_the_round();
        self.time_training();
        let order = Order::Train {
            round,
            budget: self.balanced(budget),
            cut: true,
            peers: self.cx.participants(),
            blocks: self.tell_blocks(round),
            rules: self.training_rules(),
        };
        self.life.train = Some(self.cx.order(order));
    }

    fn finish(&mut self) {
        self.enter(Phase::Finished);
        let digest = self.cx.anchor();
        self.cx.emit(Event::Finished {
            digest,
            rounds: self.cx.round,
        });
        self.tell_alive();
        self.cx.timers.set(Timer::Linger, Time::NEVER);
        if self.cx.config.leave_when_finished {
            self.cx.timers.set(Timer::Linger, self.cx.now + LINGER);
            self.maybe_leave();
        }
    }

    /// A message lost in the last round can leave finished peers with different bits, and no
    /// further round repairs that. A peer that holds the less common bits takes over the others'
    /// state. True if this peer does.
    ///
    /// Peers that are taking over a state still count with the bits that they hold. Without them,
    /// each of three parts could take another one for the largest: all would ask and none could
    /// answer.
    pub(super) fn settle_the_end(&mut self) -> bool {
        if !self.cx.plan.exchange.agrees() {
            return false;
        }
        let round = self.cx.round;
        // A merge after the last round has a number of its own.
        let further = self.cx.view.live().filter(|(_, r)| r.round > round);
        let further: Vec<PeerId> = further.map(|(id, _)| id).collect();
        if let Some(holder) = further.first().filter(|_| further.len() > self.liars()) {
            self.enter(Phase::Join);
            self.fall_behind(*holder, true);
            return true;
        }
        let mine = self.cx.anchor();
        let mut holders: BTreeMap<Digest, (usize, Option<PeerId>)> = BTreeMap::new();
        holders.insert(mine, (1, None));
        let there = self.cx.view.of_this_branch();
        for (peer, remote) in there.filter(|(_, r)| !r.suspected && r.round == round) {
            let Some(anchor) = remote.anchor else {
                continue;
            };
            let (count, holder) = holders.entry(anchor).or_default();
            *count += 1;
            if remote.ready {
                holder.get_or_insert(peer);
            }
        }
        let most = holders
            .into_iter()
            .max_by_key(|(anchor, (count, _))| (*count, *anchor));
        let most = most.filter(|(anchor, (count, _))| *anchor != mine && *count > self.liars());
        let Some((_, (_, Some(holder)))) = most else {
            return false;
        };
        self.enter(Phase::Join);
        self.fall_behind(holder, true);
        true
    }

    /// A finished peer leaves once no other peer needs it.
    pub(super) fn maybe_leave(&mut self) {
        if !self.cx.config.leave_when_finished {
            return;
        }
        let rounds = self.cx.plan.rounds;
        let anchor = self.cx.anchor();
        let agreed = self.cx.plan.exchange.agrees();
        let needs = |(_, remote): (_, &Remote)| {
            remote.round.0 < rounds || (agreed && remote.anchor != Some(anchor))
        };
        let apart = self.cx.view.apart().next().is_some();
        // One that is suspected may only have been stopped for a while: alone it would end with another model.
        let mates = || self.cx.view.of_this_branch().filter(|(_, r)| r.ready);
        let needed = apart || mates().any(needs);
        // Those that only observe cannot take over the last state from a peer that has left.
        let follows = |(id, remote): (_, &Remote)| remote.contact.observes && needs((id, remote));
        let followed = !self.life.once.observes && self.cx.view.audience().any(follows);
        if !needed && !followed {
            self.leave();
        }
    }

    /// An order of the round was answered; false when it is not one.
    pub(super) fn round_done(&mut self, order: OrderId, done: &Done) -> bool {
        if self.life.train == Some(order) {
            self.life.train = None;
            self.trained(done);
        } else if self.life.ahead.order == Some(order) {
            self.trained_ahead(done);
        } else if let Some(fragment) = self.life.applies.remove(&order) {
            self.applied(fragment, done);
        } else if self.life.evaluate == Some(order) {
            self.life.evaluate = None;
            self.life.evaluation.ended = self.cx.now;
            match done {
                Done::Evaluated(evaluation) => {
                    let (round, evaluation) = (self.cx.round, *evaluation);
                    self.cx.emit(Event::Evaluated { round, evaluation });
                }
                Done::Failed(WorkError::Training { .. }) => {
                    self.stop(done);
                    return true;
                }
                other => self.report_failure(other),
            }
            self.settle();
        } else if self.life.save == Some(order) {
            self.life.save = None;
            self.saved(done);
        } else {
            return false;
        }
        true
    }

    fn trained(&mut self, done: &Done) {
        let Done::Trained(summary) = done else {
            self.stop(done);
            return;
        };
        let (round, summary) = (self.cx.round, self.with_ahead(*summary));
        self.balance_own(&summary);
        // Before the next round's blocks are told, where rounds overlap.
        self.claim_blocks(round, &summary);
        self.say_loss(&summary);
        self.cx.emit(Event::Trained { round, summary });
        match self.phase {
            Phase::Leaving if !self.life.applies.is_empty() => {}
            Phase::Leaving => self.leave_after_training(),
            Phase::Train if self.exchange.merge_is_due(&self.cx) => self.merge(),
            Phase::Train => {
                self.enter(Phase::Exchange);
                self.train_ahead();
                self.exchange(summary);
                self.cut_the_rest();
                self.begin_forward();
            }
            _ => self.trained_under_the_exchange(),
        }
    }

    /// Merges branches instead of a round.
    pub(super) fn merge(&mut self) {
        self.enter(Phase::Exchange);
        self.exchange.merge(&mut self.cx);
        self.check_outcome();
    }

    pub(super) fn exchange(&mut self, summary: TrainSummary) {
        self.exchange.begin(&mut self.cx, &summary);
        self.check_outcome();
    }

    /// Whether the exchange has ended, and what follows.
    pub(super) fn check_outcome(&mut self) {
        if self.phase != Phase::Exchange {
            return;
        }
        // Endings before the outcome: the round counts as applied once no order to apply is open.
        for (fragment, ending) in self.exchange.ended(&self.cx) {
            self.apply(fragment, ending);
        }
        match self.exchange.outcome() {
            None => {}
            Some(outcome @ (Outcome::Ended | Outcome::Alone)) => {
                self.life.alone = outcome == Outcome::Alone;
                self.enter(Phase::Apply);
                self.go_on_when_done();
            }
            Some(Outcome::Behind { teller, resync }) => {
                // The exchange forgets the round first: its slices have the names of those that the
                // replay fetches.
                self.exchange.finish(&mut self.cx);
                self.enter(Phase::Join);
                self.fall_behind(teller, resync);
            }
        }
    }

    /// Between rounds: evaluates and writes a checkpoint when these are due. Each answer calls this
    /// again, until nothing is due.
    pub(super) fn settle(&mut self) {
        if self.phase != Phase::Settle || self.life.evaluate.is_some() || self.life.save.is_some() {
            return;
        }
        let round = self.cx.round;
        let last = self.is_over();
        let every = self.cx.config.evaluate_every;
        let (now, percent) = (self.cx.now, self.cx.config.evaluate_percent);
        let due = every > 0 && round.0.is_multiple_of(every);
        let look = last || (due && self.life.evaluation.is_worth_another(now, percent));
        let look = look && every != EVALUATE_NEVER;
        if look && self.life.evaluated_round != Some(round) {
            self.life.evaluated_round = Some(round);
            self.life.evaluation.began = now;
            self.life.evaluate = Some(self.cx.order(Order::Evaluate { round }));
            return;
        }
        let since = self.cx.now.since(self.life.saved_at);
        // A pause may last, and machines may be switched off in it.
        let due = last
            || self.holds()
            || self
                .cx
                .config
                .save_every
                .is_some_and(|every| since >= every);
        if due && self.life.saved_round != Some(round) {
            self.save();
            return;
        }
        self.next_round();
    }

    pub(super) fn save(&mut self) {
        let (round, snapshot) = (self.cx.round, self.snapshot());
        self.life.save = Some(self.cx.order(Order::Save { round, snapshot }));
    }

    fn saved(&mut self, done: &Done) {
        self.life.saved_at = self.cx.now;
        match done {
            Done::Saved => {
                self.life.saved_round = Some(self.cx.round);
                self.cx.emit(Event::Saved {
                    round: self.cx.round,
                });
            }
            other => {
                // Training continues without the checkpoint. The round counts as saved, or this
                // would be repeated at once and for ever.
                self.life.saved_round = Some(self.cx.round);
                self.report_failure(other);
            }
        }
        match self.phase {
            Phase::Leaving => self.left(),
            _ => self.settle(),
        }
    }
}
