//! Rounds whose inner steps follow from what the peers agree on: their training loss ([`Pace::Loss`]), or how
//! long exchanges hold their training up ([`Pace::Measured`]).
//!
//! The numbers are followed in all rounds, also while the owner has given another number of inner steps: so
//! peers that hear of that at different times agree on the same ones.

use crate::data::Counted;
use crate::exchange::{AgreedMessage, ExchangeMessage, FormingMessage};
use crate::peer::Peer;
use crate::{Event, Loss, Losses, Pace, PeerId, StepBudget, TrainSummary, TrainingRules};

impl Peer {
    /// What the peers agree on about their training loss or their waits, where the pace follows them.
    pub fn losses(&self) -> Option<&Losses> {
        self.cx.follows_losses().then_some(&self.cx.data.losses)
    }

    /// The pace of the run. While the owner has given a number of inner steps, the plan has another one.
    pub fn configured_pace(&self) -> Pace {
        self.cx.directed.configured().1
    }

    /// How much a peer trains in this round; in a balanced round, at most.
    pub fn budget(&self) -> StepBudget {
        let plan = &self.cx.plan;
        match (plan.synchronization.pace, plan.budget) {
            (pace, StepBudget::Steps(first)) if pace.is_agreed() => {
                let bounds = match pace {
                    Pace::Measured { least, most, .. } => (least, most),
                    _ => (1, first),
                };
                StepBudget::Steps(self.cx.data.losses.steps(first, bounds))
            }
            _ => plan.budget_of(self.cx.round),
        }
    }

    /// What the training of this round goes by beside the plan.
    pub(super) fn training_rules(&self) -> TrainingRules {
        let mut rules = self.with_codec(self.cx.directed.in_force().training);
        let agreed = self.cx.plan.synchronization.pace.is_agreed();
        if let (true, StepBudget::Steps(steps)) = (agreed, self.budget()) {
            rules.inner_steps = Some(steps);
        }
        rules
    }

    /// The round's contribution is ready: it says its loss, or how long exchanges hold training up. One
    /// without samples says nothing.
    pub(super) fn say_loss(&mut self, summary: &TrainSummary) {
        self.cx.data.loss = match self.cx.directed.configured() {
            _ if summary.samples == 0 => None,
            (_, Pace::Loss { .. }) => Some(Loss::of(summary.loss)),
            _ if self.measures_waits() => {
                self.waits
                    .trained(self.cx.round, self.cx.now, summary.steps);
                self.waits.usual().map(Loss::of)
            }
            _ => None,
        };
    }

    /// The training of a round begins.
    pub(super) fn time_training(&mut self) {
        if self.measures_waits() {
            self.waits.begin(self.cx.round, self.cx.now);
        }
    }

    /// Whether this peer measures how long the round's exchange holds training up. Waits under a codec of the
    /// owner say nothing of those that the members choose from.
    fn measures_waits(&self) -> bool {
        let chooses = self.ladder().is_some();
        let by_pace = matches!(self.cx.directed.configured(), (_, Pace::Measured { .. }));
        let own = chooses && self.cx.directed.in_force().training.codec.is_some();
        (chooses || by_pace) && !own
    }

    /// Another peer says that it has trained.
    pub(super) fn time_other(&mut self, from: PeerId, message: &ExchangeMessage) {
        if let ExchangeMessage::Agreed(AgreedMessage::Forming(FormingMessage::Ready {
            round,
            ..
        })) = message
        {
            self.waits.other(from, *round, self.cx.now);
        }
    }

    /// A round is over: what its members said is in force. The peer is in the next round already.
    pub(super) fn settle_losses(&mut self, counted: Option<&Counted>, loss: Option<Loss>) {
        let (budget, pace) = self.cx.directed.configured();
        self.waits.ended(self.cx.now);
        // The codec first: waits under the codec before are no reason for a number of inner steps.
        let recoded = self.settle_codec(counted, loss);
        if !pace.is_agreed() {
            return;
        }
        let before = self.budget();
        let losses = &mut self.cx.data.losses;
        if counted == Some(&Counted::Merged) {
            // Each branch had numbers of its own: the rule begins again at H_0.
            *losses = Losses::default();
        } else {
            losses.note(loss);
            if recoded {
                losses.forget_last();
            }
            match (pace, budget) {
                (Pace::Loss { every, factor }, _) => {
                    losses.open(self.cx.round, every, factor, budget);
                }
                (
                    Pace::Measured {
                        every,
                        share,
                        least,
                        most,
                    },
                    StepBudget::Steps(start),
                ) => {
                    losses.open_measured(self.cx.round, (every, share), (least, most), start);
                }
                _ => {}
            }
        }
        self.tell_steps(before);
    }

    /// Tells where the number of inner steps has changed, and by which number of the members.
    fn tell_steps(&mut self, before: StepBudget) {
        let (StepBudget::Steps(before), StepBudget::Steps(steps)) = (before, self.budget()) else {
            return;
        };
        if steps != before {
            let (round, said) = (self.cx.round, self.cx.data.losses.last());
            self.cx.emit(Event::Paced {
                round,
                steps,
                before,
                said: said.map_or(0.0, Loss::value),
            });
        }
    }
}
