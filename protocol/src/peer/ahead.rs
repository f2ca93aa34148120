//! Training ahead: the first inner steps of the next round are taken during this round's exchange.
//! Its result is applied a fixed number of inner steps late; training waits for it there.

use crate::core::Phase;
use crate::peer::Peer;
use crate::{Done, Order, StepBudget, TrainSummary};

impl Peer {
    /// A round has been cut: orders the beginning of the next one.
    pub(super) fn train_ahead(&mut self) {
        let pauses = self.cx.directed.pauses(self.cx.round.next());
        if self.cx.plan.trains_ahead(self.cx.round) && !pauses {
            let order = Order::Train {
                round: self.cx.round.next(),
                budget: StepBudget::Steps(self.cx.plan.overlap.late_steps),
                cut: false,
                peers: self.cx.participants(),
                blocks: self.tell_blocks(self.cx.round.next()),
                rules: self
                    .cx
                    .directed
                    .all()
                    .in_force(self.cx.round.next())
                    .training,
            };
            self.life.ahead.order = Some(self.cx.order(order));
        }
    }

    /// The backward pass has ended: the next forward pass begins with the layers whose fragments are
    /// decided.
    pub(super) fn begin_forward(&mut self) {
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
            rules: self.cx.directed.all().in_force(next).training,
        };
        self.life.ahead.forward = true;
        self.life.ahead.order = Some(self.cx.order(order));
    }

    /// Where this peer has left the round, a forward pass must not wait for fragments that may never end.
    pub(super) fn break_off_forward(&mut self) {
        let left = matches!(self.phase, Phase::Join | Phase::Leaving);
        let ahead = &mut self.life.ahead;
        if left && ahead.order.is_some() && std::mem::take(&mut ahead.forward) {
            let round = self.cx.round.next();
            self.cx.order(Order::BreakOff { round });
        }
    }

    /// How much of the round that begins is left to train.
    pub(super) fn rest_of_the_round(&self) -> StepBudget {
        match (self.budget(), self.life.ahead.taken) {
            (StepBudget::Steps(steps), Some(ahead)) => {
                let taken = u32::try_from(ahead.steps).unwrap_or(u32::MAX);
                StepBudget::Steps(steps.saturating_sub(taken))
            }
            (budget, _) => budget,
        }
    }

    /// All of a round's training: what was taken ahead and the rest.
    pub(super) fn with_ahead(&mut self, rest: TrainSummary) -> TrainSummary {
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
    pub(super) fn trained_ahead(&mut self, done: &Done) {
        let forward = self.cx.plan.overlap.layers.reach_forward();
        (self.life.ahead.order, self.life.ahead.forward) = (None, false);
        match done {
            // A forward pass is no inner step, and its samples are counted with the gradient.
            Done::Trained(_) if forward => {}
            Done::Trained(summary) if matches!(self.phase, Phase::Exchange | Phase::Apply) => {
                let next = self.cx.round.next();
                self.cx.data.mine.finish(next, summary.blocks);
                self.life.ahead.taken = Some(*summary);
            }
            Done::Trained(_) => {}
            other => self.stop(other),
        }
        self.go_on_after_training();
    }

    /// Training that ran ahead has ended. Continues what waited for its end.
    pub(super) fn go_on_after_training(&mut self) {
        if self.life.ahead.held && self.phase == Phase::Join && self.catch_up.idle() {
            self.begin();
            return;
        }
        self.go_on_when_done();
    }

    /// Ends the round once its result is applied and no training of the next one is under way.
    pub(super) fn go_on_when_done(&mut self) {
        let life = &self.life;
        let training = life.train.is_some() || life.ahead.order.is_some();
        if training || !life.applies.is_empty() || life.save.is_some() {
            return;
        }
        match self.phase {
            Phase::Leaving if life.broken_off => self.save_unless_saved(),
            Phase::Apply | Phase::Leaving => self.end_round(),
            _ => {}
        }
    }
}
