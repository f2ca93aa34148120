//! Rounds whose inner steps follow from the loss that the peers agree on ([`Pace::Loss`]).
//!
//! The losses are followed in all rounds, also while the owner has given another number of inner steps: so
//! peers that hear of that at different times agree on the same losses.

use crate::data::Counted;
use crate::peer::Peer;
use crate::{Loss, Losses, Pace, StepBudget, TrainSummary, TrainingRules};

impl Peer {
    /// What the peers agree on about their training loss, where the pace follows it.
    pub fn losses(&self) -> Option<&Losses> {
        self.cx.follows_losses().then_some(&self.cx.data.losses)
    }

    /// How much a peer trains in this round; in a balanced round, at most.
    pub fn budget(&self) -> StepBudget {
        let plan = &self.cx.plan;
        match (plan.synchronization.pace, plan.budget) {
            (Pace::Loss { .. }, StepBudget::Steps(first)) => {
                StepBudget::Steps(self.cx.data.losses.steps(first))
            }
            _ => plan.budget_of(self.cx.round),
        }
    }

    /// What the training of this round goes by beside the plan.
    pub(super) fn training_rules(&self) -> TrainingRules {
        let mut rules = self.cx.directed.in_force().training;
        if let (Pace::Loss { .. }, StepBudget::Steps(steps)) =
            (self.cx.plan.synchronization.pace, self.budget())
        {
            rules.inner_steps = Some(steps);
        }
        rules
    }

    /// The round's contribution is ready: it says its loss. One without samples has none.
    pub(super) fn say_loss(&mut self, summary: &TrainSummary) {
        let says = self.cx.follows_losses() && summary.samples > 0;
        self.cx.data.loss = says.then(|| Loss::of(summary.loss));
    }

    /// A round is over: what its members said is in force. The peer is in the next round already.
    pub(super) fn settle_losses(&mut self, counted: Option<&Counted>, loss: Option<Loss>) {
        let (budget, Pace::Loss { every, factor }) = self.cx.directed.configured() else {
            return;
        };
        let losses = &mut self.cx.data.losses;
        if counted == Some(&Counted::Merged) {
            // Each branch had losses of its own: the rule begins again at H_0.
            *losses = Losses::default();
            return;
        }
        losses.note(loss);
        losses.open(self.cx.round, every, factor, budget);
    }
}
