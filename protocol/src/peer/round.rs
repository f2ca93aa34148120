//! The life of a round: train, exchange, apply, settle (evaluate, save), next. Also the start
//! before the first round, a pause between two, and the end after the last.

use crate::core::context::Anchor;
use crate::core::deadlines::Timer;
use crate::core::{EVALUATE_NEVER, Event, Output, Phase, Remote};
use crate::data::Counted;
use crate::exchange::Outcome;
use crate::limits::{ALIVE_EVERY, LINGER};
use crate::peer::{Peer, SNAPSHOT_VERSION, Snapshot};
use crate::sorted::SortedMap;
use crate::wire::{MembershipMessage, Reason};
use crate::{
    Base, Digest, Directive, Directives, Done, Ending, FragmentId, InForce, Layers, Order, OrderId,
    PeerId, Round, StepBudget, Time, TrainSummary, Unneeded, WorkError,
};

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
        self.cx.anchor = Anchor::new(digests);
        // Slices of an earlier life may still be under way. The time is the one input that differs.
        let started = Digest::of(&self.cx.now.as_nanos().to_le_bytes());
        self.cx.this_life.session = started.first_bits();
        if let Some(snapshot) = snapshot {
            assert_eq!(
                snapshot.plan, self.cx.directed.plan_hash,
                "the driver checks the snapshot's plan"
            );
            self.cx.round = snapshot.round;
            self.adopt(&snapshot.roll, &snapshot.ledger);
            let (now, last) = (self.cx.now, Round(snapshot.round.0.saturating_sub(1)));
            self.cx
                .view
                .seats
                .note(now, last, snapshot.seats.into_iter().collect());
            // Mass that was under way in the earlier life is lost; what was this peer's own is not.
            self.exchange.set_weights(&snapshot.weights);
            self.life.ahead.taken = snapshot.ahead;
            let finished = snapshot.ahead.map_or(0, |ahead| ahead.blocks);
            self.cx.data.mine.resume(finished);
            self.life.saved_round = Some(snapshot.round);
            if let Some(split) = snapshot.split.map(|split| *split) {
                self.cx.view.split.restore(split);
            }
        }
        // Others may ask for the openings of an earlier life: after a restart of all, only these
        // are left.
        opened.into_iter().for_each(|base| self.donor.open(base));
        self.life.saved_at = self.cx.now;
        self.life.started = self.cx.now;
        self.enter(Phase::Join);
        self.dial_counterparts();
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
    fn next_round(&mut self) {
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
        // Before the training: in a grid a peer does its part for others while it still trains.
        self.exchange.open(&mut self.cx);
        self.tell_rates();
        let round = self.cx.round;
        if !self.cx.plan.draws(round, self.cx.me()) {
            // A peer that is not drawn takes part in the round with weight zero.
            self.enter(Phase::Exchange);
            (self.cx.data.taken, self.cx.data.loss) = (None, None);
            self.exchange(TrainSummary::default());
            // No training order will hand out its fragments.
            self.cut_the_rest();
            return;
        }
        let budget = self.rest_of_the_round();
        let order = Order::Train {
            round,
            budget: self.pacer.begin(&self.cx, budget),
            cut: true,
            peers: self.cx.participants(),
            blocks: self.cx.tell_blocks(round),
            rules: self.cx.training_rules(),
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
        // The owner may add rounds, so it stays unless it was told to leave.
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
        if let Some(holder) = further.first().filter(|_| self.believes(further.len())) {
            self.enter(Phase::Join);
            self.fall_behind(*holder, true);
            return true;
        }
        let mine = self.cx.anchor();
        let mut holders: SortedMap<Digest, (usize, Option<PeerId>)> = SortedMap::new();
        holders.insert(mine, (1, None));
        let there = self.cx.view.of_this_branch();
        for (peer, remote) in there.filter(|(_, r)| !r.suspected && r.round == round) {
            let Some(anchor) = remote.anchor else {
                continue;
            };
            let (count, holder) = holders.entry(anchor).or_default();
            *count += 1;
            // One that takes a state over itself counts, but has none to give.
            if remote.ready {
                holder.get_or_insert(peer);
            }
        }
        let most = holders
            .into_iter()
            .max_by_key(|(anchor, (count, _))| (*count, *anchor));
        let most = most.filter(|(anchor, (count, _))| *anchor != mine && self.believes(*count));
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
        // A peer that is behind may need this peer's history, or its state where bits differ.
        let needs = |(_, remote): (_, &Remote)| {
            remote.round.0 < rounds || (agreed && remote.anchor != Some(anchor))
        };
        let apart = self.cx.view.apart().next().is_some();
        // One that is suspected may only have been stopped for a while: alone it would end with another model.
        let others = || self.cx.view.of_this_branch().filter(|(_, r)| r.ready);
        let needed = apart || others().any(needs);
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
                // A trainer that fails here can train nothing either.
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
        self.pacer.trained(&mut self.cx, &summary);
        // Before the next round's blocks are told, where rounds overlap.
        self.cx.claim_blocks(&summary);
        self.cx.emit(Event::Trained { round, summary });
        match self.phase {
            // The last round's result is still being applied, and its answer goes on from there.
            Phase::Leaving if !self.life.applies.is_empty() => {}
            Phase::Leaving => self.leave_after_training(),
            // The others wait for this peer. What it trained since the anchor is of one side, and
            // is dropped.
            Phase::Train if self.exchange.merge_is_due(&self.cx) => self.merge(),
            Phase::Train => {
                self.enter(Phase::Exchange);
                // Ordered before the exchange, so that the trainer has work while others are
                // awaited.
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

    /// Applies fragments whose exchange has ended, and leaves the phase once all have.
    pub(super) fn check_outcome(&mut self) {
        // Elsewhere an outcome would be of a round that this peer has left.
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

    /// Between rounds: evaluates and saves if due. Each answer calls this again.
    pub(super) fn settle(&mut self) {
        if self.phase != Phase::Settle || self.life.evaluate.is_some() || self.life.save.is_some() {
            return;
        }
        let round = self.cx.round;
        let last = self.is_over();
        let every = self.cx.config.evaluate_every;
        let (now, percent) = (self.cx.now, self.cx.config.evaluate_percent);
        let due = every > 0 && round.0.is_multiple_of(every);
        // The last round is always looked at: it is what the run ends with.
        let look = last || (due && self.life.evaluation.is_worth_another(now, percent));
        let look = look && every != EVALUATE_NEVER;
        if look && self.life.evaluated_round != Some(round) {
            // Noted at once: the answer leads here again, and one look at a round is enough.
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

    /// What a checkpoint keeps of this peer.
    pub(super) fn snapshot(&self) -> Vec<u8> {
        let all = self.cx.replicated();
        let snapshot = Snapshot {
            version: SNAPSHOT_VERSION,
            plan: self.cx.directed.plan_hash,
            round: self.cx.round,
            weights: self.exchange.push_sum().weights,
            ahead: self.life.ahead.taken,
            roll: all.roll,
            ledger: all.ledger,
            split: self.cx.view.split.kept().map(Box::new),
            seats: self.cx.view.seats.of(self.cx.round).into_iter().collect(),
        };
        snapshot.to_bytes()
    }

    /// Takes over roll, ledger and notes, as bytes of a checkpoint.
    fn adopt(&mut self, roll: &[u8], ledger: &[u8]) {
        self.cx.adopt(roll, ledger);
        if self.chosen().is_some() {
            self.pacer.forget_waits();
        }
    }

    /// Takes over roll, ledger and notes of a state.
    pub(super) fn take_replicated(&mut self, bytes: &[u8]) {
        self.cx.take_replicated(bytes);
        if self.chosen().is_some() {
            self.pacer.forget_waits();
        }
    }

    /// A round is over and applied: its decisions beside the parameters come into force, and new counterparts
    /// are dialled. The peer is in the next round already. `kept` says whether this peer's training of the
    /// round, if it was not counted, is part of its next contribution.
    pub(super) fn turn(&mut self, round: Round, kept: bool) {
        let plan = &self.cx.plan;
        let history = self.exchange.history();
        let decided = history.zip(plan.fragments_of(round).next());
        let said = decided.and_then(|(history, first)| history.loss(plan.exchange, round, first));
        let decided = decided.map(|(history, first)| history.counted(plan.exchange, round, first));
        let note = self.cx.rolls.take_note();
        // In a grid the note says whose data counted, because no peer sees all contributors.
        let counted = self.cx.counted(note.as_ref()).or(decided);
        self.pacer.ended(self.cx.now);
        let merged = counted == Some(Counted::Merged);
        if self.cx.settle_notes(round, merged, said) {
            self.pacer.forget_waits();
        }
        if let Some(counted) = counted {
            self.cx.settle_data(round, &counted, kept);
        }
        if self.cx.turn_roll(&note.unwrap_or_default().change) {
            self.dial_counterparts();
        }
    }

    pub(super) fn save(&mut self) {
        let (round, snapshot) = (self.cx.round, self.snapshot());
        self.life.save = Some(self.cx.order(Order::Save {
            round,
            snapshot,
            branch: false,
        }));
    }

    fn saved(&mut self, done: &Done) {
        let round = self.cx.round;
        self.life.saved_at = self.cx.now;
        // Training continues without a checkpoint that failed. The round counts as saved, or this would be
        // repeated at once and for ever.
        self.life.saved_round = Some(round);
        match done {
            Done::Saved => self.cx.emit(Event::Saved { round }),
            other => self.report_failure(other),
        }
        match self.phase {
            Phase::Leaving => self.left(),
            _ => self.settle(),
        }
    }
}

/// Training ahead: the first inner steps of the next round are taken during this round's exchange.
/// Its result is applied a fixed number of inner steps late; training waits for it there.
impl Peer {
    /// A round has been cut: orders the beginning of the next one.
    fn train_ahead(&mut self) {
        let next = self.cx.round.next();
        // In a pause the next round may not begin, so nothing of it may be trained.
        if self.cx.plan.trains_ahead(self.cx.round) && !self.cx.directed.pauses(next) {
            let order = Order::Train {
                round: next,
                budget: StepBudget::Steps(self.cx.plan.overlap.late_steps),
                cut: false,
                peers: self.cx.participants(),
                blocks: self.cx.tell_blocks(next),
                rules: self.cx.directed.all.in_force(next).training,
            };
            self.life.ahead.order = Some(self.cx.order(order));
        }
    }

    /// The backward pass has ended: the next forward pass begins with decided layers.
    fn begin_forward(&mut self) {
        let (round, next) = (self.cx.round, self.cx.round.next());
        let open = matches!(self.phase, Phase::Exchange | Phase::Apply);
        if !open || !self.cx.plan.forward_begins(round) || self.cx.directed.pauses(next) {
            return;
        }
        let order = Order::Train {
            round: next,
            budget: StepBudget::Steps(0),
            cut: false,
            peers: self.cx.participants(),
            blocks: None,
            rules: self.cx.directed.all.in_force(next).training,
        };
        self.life.ahead.forward = true;
        self.life.ahead.order = Some(self.cx.order(order));
    }

    /// Where this peer has left the round, a forward pass must not wait for fragments that may never end.
    fn break_off_forward(&mut self) {
        let left = matches!(self.phase, Phase::Join | Phase::Leaving);
        let ahead = &mut self.life.ahead;
        if left && ahead.order.is_some() && std::mem::take(&mut ahead.forward) {
            let round = self.cx.round.next();
            self.cx.order(Order::Forget(Unneeded::Forward(round)));
        }
    }

    /// How much of the round that begins is left to train.
    fn rest_of_the_round(&self) -> StepBudget {
        match (self.cx.budget(), self.life.ahead.taken) {
            (StepBudget::Steps(steps), Some(ahead)) => {
                let taken = u32::try_from(ahead.steps).unwrap_or(u32::MAX);
                StepBudget::Steps(steps.saturating_sub(taken))
            }
            (budget, _) => budget,
        }
    }

    /// All of a round's training: the inner steps taken ahead and the rest.
    fn with_ahead(&mut self, rest: TrainSummary) -> TrainSummary {
        let Some(ahead) = self.life.ahead.taken.take() else {
            return rest;
        };
        let steps = ahead.steps + rest.steps;
        let loss = |part: TrainSummary| match part.steps {
            0 => 0.0,
            taken => part.loss * (taken as f64 / steps as f64),
        };
        TrainSummary {
            steps,
            samples: ahead.samples + rest.samples,
            loss: loss(ahead) + loss(rest),
            seconds: ahead.seconds + rest.seconds,
            blocks: rest.blocks.max(ahead.blocks),
        }
    }

    /// The beginning of the next round is trained, or this peer leaves and it was interrupted.
    fn trained_ahead(&mut self, done: &Done) {
        let forward = self.cx.plan.overlap.layers.reach_forward();
        (self.life.ahead.order, self.life.ahead.forward) = (None, false);
        match done {
            // A forward pass is no inner step, and its samples are counted with the gradient.
            Done::Trained(_) if forward => {}
            Done::Trained(summary) if matches!(self.phase, Phase::Exchange | Phase::Apply) => {
                let next = self.cx.round.next();
                // The blocks count for the next round, whose rest will not train them again.
                self.cx.data.mine.finish(next, summary.blocks);
                self.life.ahead.taken = Some(*summary);
            }
            Done::Trained(_) => {}
            other => self.stop(other),
        }
        self.go_on_after_training();
    }

    /// Training that ran ahead has ended. Continues what waited for its end.
    fn go_on_after_training(&mut self) {
        // The first round of this life waited for the Executor to be free.
        if self.life.ahead.held && self.phase == Phase::Join && self.catch_up.idle() {
            self.begin();
            return;
        }
        self.go_on_when_done();
    }

    /// Ends the round once its result is applied and no training of the next one is under way.
    fn go_on_when_done(&mut self) {
        let life = &self.life;
        let training = life.train.is_some() || life.ahead.order.is_some();
        if training || !life.applies.is_empty() || life.save.is_some() {
            return;
        }
        match self.phase {
            // The round has no result here, so the checkpoint is that of the one before.
            Phase::Leaving if life.broken_off => self.save_unless_saved(),
            Phase::Apply | Phase::Leaving => self.end_round(),
            _ => {}
        }
    }
}

/// Fragments that leave during the backward pass: the exchange begins with the first of them, while
/// the training order that makes the others is still under way.
impl Peer {
    /// The backward pass has completed a fragment.
    pub(super) fn cut(&mut self, order: OrderId, fragment: FragmentId, samples: u64) {
        if self.life.train != Some(order) || self.cx.plan.overlap.layers == Layers::Together {
            return;
        }
        if self.phase == Phase::Train {
            self.enter(Phase::Exchange);
            let seconds = self.cx.now.since(self.life.started).as_secs_f64();
            self.exchange(TrainSummary {
                steps: 1,
                samples,
                loss: 0.0,
                seconds,
                blocks: 0,
            });
        }
        if self.phase == Phase::Exchange {
            self.exchange.cut(&mut self.cx, fragment);
            self.check_outcome();
        }
    }

    /// A trainer may hand out its whole gradient at the end: the rest of it leaves now.
    fn cut_the_rest(&mut self) {
        if self.cx.plan.overlap.layers == Layers::Together {
            return;
        }
        for fragment in self.cx.plan.fragments_of(self.cx.round) {
            if self.phase == Phase::Exchange {
                self.exchange.cut(&mut self.cx, fragment);
                self.check_outcome();
            }
        }
    }

    /// The training ended after its fragments began to leave: the round may be over.
    fn trained_under_the_exchange(&mut self) {
        if self.phase == Phase::Exchange {
            self.cut_the_rest();
        }
        self.begin_forward();
        self.go_on_after_training();
    }
}

/// The end of a round: its result is applied, fragment by fragment.
impl Peer {
    /// Applies the ending of one fragment, while others may still be under way.
    pub(super) fn apply(&mut self, fragment: FragmentId, ending: Ending) {
        let round = self.cx.round;
        if self.cx.plan.fragments_of(round).next() == Some(fragment) {
            self.life.voided = ending == Ending::Void;
        }
        self.order_ending(fragment, ending);
    }

    fn order_ending(&mut self, fragment: FragmentId, ending: Ending) {
        let order = Order::Apply {
            round: self.cx.round,
            fragment,
            ending,
            keep_local: false,
            rules: self.cx.with_codec(self.cx.directed.in_force.training),
        };
        self.life.applies.insert(self.cx.order(order), fragment);
    }

    pub(super) fn applied(&mut self, fragment: FragmentId, done: &Done) {
        match done {
            Done::Applied { digest, note } => {
                self.cx.fragment_applied(fragment, *digest, note);
            }
            other => {
                // The same bytes fail at every peer. So all of them apply the fragment without
                // these bytes, or all void it, and they hold the same anchor either way.
                self.report_failure(other);
                if let Done::Failed(WorkError::BadSlice { slice, reason, .. }) = other
                    && let Some(ending) = self.exchange.without(&mut self.cx, *slice, reason)
                {
                    self.apply(fragment, ending);
                    return;
                }
                // It cannot fail again: nothing is decoded, and training stays for the next
                // contribution.
                self.order_ending(fragment, Ending::Void);
                return;
            }
        }
        // From now on the history serves it, and the exchange's own copies are released.
        self.exchange.applied(&mut self.cx, fragment);
        self.go_on_when_done();
    }

    pub(super) fn report_failure(&mut self, done: &Done) {
        if let Done::Failed(error) = done {
            self.cx.emit(Event::WorkFailed {
                what: format!("{error}"),
            });
        }
    }

    pub(super) fn end_round(&mut self) {
        let (round, digest) = (self.cx.round, self.cx.anchor());
        let seconds = self.cx.now.since(self.life.started).as_secs_f64();
        self.exchange.finish(&mut self.cx);
        // Nothing was agreed: the same round is tried again, with more inner steps behind it.
        if std::mem::take(&mut self.life.alone) {
            self.cx.emit(Event::Alone { round, seconds });
        } else {
            self.cx.round = self.cx.round.max(round).next();
            let kept = std::mem::take(&mut self.life.voided);
            self.turn(round, kept);
            self.cx.emit(Event::RoundEnded {
                round,
                digest,
                seconds,
            });
        }
        if self.phase == Phase::Leaving {
            self.save();
            return;
        }
        self.enter(Phase::Settle);
        // Before the next round changes the anchor: those that asked meanwhile get this state.
        let exchange = self.exchange.as_mut();
        self.donor.round_ended(&mut self.cx, exchange, self.phase);
        self.settle();
    }
}

/// What the owner of the run changes while it trains.
///
/// A change of the training is in force from the beginning of its round on. A pause holds a peer between two
/// rounds, in a phase of its own: it waits for no one, so no deadline passes, and it still answers, gives its
/// state to newcomers, and catches up with peers that had gone further before they heard of the pause.
impl Peer {
    /// The owner's directives that count.
    pub fn directives(&self) -> &Directives {
        &self.cx.directed.all
    }

    /// The owner's changes that are in force in this peer's round.
    pub fn in_force(&self) -> &InForce {
        &self.cx.directed.in_force
    }

    /// The host knows these directives of the owner.
    pub(super) fn directed(&mut self, directives: Vec<Directive>) {
        let new = self.cx.direct(directives);
        if new.is_empty() {
            return;
        }
        let round = self.cx.round;
        for directive in new {
            self.cx.emit(Event::Directed { round, directive });
        }
        match self.phase {
            Phase::Paused if !self.holds() => self.next_round(),
            Phase::Finished if !self.is_over() => self.train_on(),
            _ => {}
        }
    }

    /// All rounds are done.
    pub(super) fn is_over(&self) -> bool {
        let rounds = self.cx.plan.rounds;
        rounds > 0 && self.cx.round.0 >= rounds
    }

    /// The owner has paused the run: this peer begins no round.
    pub(super) fn holds(&self) -> bool {
        !self.is_over() && self.cx.directed.pauses(self.cx.round)
    }

    /// Between two rounds, while the owner has paused the run.
    pub(super) fn pause(&mut self) {
        if self.phase != Phase::Paused {
            self.enter(Phase::Paused);
            self.tell_alive();
        }
    }

    /// The owner has added rounds to a run that was over.
    fn train_on(&mut self) {
        self.cx.timers.stop(Timer::Linger);
        self.enter(Phase::Join);
        self.begin();
    }

    /// In a pause: others went further before they heard of it. What they have decided is taken over.
    pub(super) fn catch_up_in_a_pause(&mut self) {
        if !self.cx.plan.exchange.agrees() {
            return;
        }
        let round = self.cx.round;
        let further = || self.cx.view.live().filter(|(_, r)| r.round > round);
        let furthest = further().max_by_key(|(id, r)| (r.round, *id));
        let furthest: Option<PeerId> = furthest.map(|(id, _)| id);
        if let Some(teller) = furthest.filter(|_| self.believes(further().count())) {
            self.enter(Phase::Join);
            self.fall_behind(teller, false);
        }
    }
}

/// Leaving: the peers are told, the inner step ends, a last checkpoint is written.
impl Peer {
    /// Leaves: tells the peers, ends the inner step, writes a checkpoint.
    pub(super) fn leave(&mut self) {
        match self.phase {
            Phase::Leaving | Phase::Left => return,
            Phase::New => {
                self.enter(Phase::Leaving);
                self.left();
                return;
            }
            _ => {}
        }
        let was = self.phase;
        self.enter(Phase::Leaving);
        for timer in [Timer::Exchange, Timer::Join, Timer::CatchUp, Timer::Linger] {
            self.cx.timers.stop(timer);
        }
        if was == Phase::Exchange {
            self.exchange.finish(&mut self.cx);
        }
        // Before the checkpoint, which can take longer than the others' deadlines on a slow disk.
        self.say_goodbye();
        self.life.broken_off = matches!(was, Phase::Exchange | Phase::Join);
        if self.life.train.is_some() || self.life.ahead.order.is_some() {
            // A training order may take minutes; its answer continues the leave.
            self.cx.put(Output::Interrupt);
        } else if self.life.applies.is_empty() && self.life.save.is_none() {
            self.save_unless_saved();
        }
    }

    fn save_unless_saved(&mut self) {
        // From a checkpoint one that was to join a run, and has no state of it, would found another run.
        let outside = self.cx.config.join && self.fresh() && !self.life.once.begun;
        if outside || self.life.saved_round == Some(self.cx.round) {
            self.left();
        } else {
            self.save();
        }
    }

    /// The interrupted training ended. Its progress counts where no agreement would decide on it.
    fn leave_after_training(&mut self) {
        if self.cx.plan.exchange.facts().moves_the_anchor {
            self.save_unless_saved();
        } else {
            for fragment in self.cx.plan.fragment_ids() {
                self.apply(fragment, Ending::Apply(Vec::new()));
            }
        }
    }

    /// Without a trainer this peer cannot contribute: it saves its state and leaves.
    pub(super) fn stop(&mut self, done: &Done) {
        if let Done::Failed(error) = done {
            let what = format!("{error}");
            self.cx.emit(Event::TrainerFailed { what });
        }
        match self.phase {
            // The interrupted training has ended, and has nothing to apply.
            Phase::Leaving if self.life.applies.is_empty() => self.save_unless_saved(),
            _ => self.leave(),
        }
    }

    /// Tells the peers that this one takes part in nothing more.
    fn say_goodbye(&mut self) {
        for peer in self.audience() {
            let goodbye = MembershipMessage::Goodbye(Reason::Leaving);
            self.cx.send(peer, goodbye);
        }
    }

    /// Stops: the last checkpoint is written.
    pub(super) fn left(&mut self) {
        self.enter(Phase::Left);
        self.cx.put(Output::Left);
    }
}
