//! What directives say of one round.

use super::TrainingRules;
use crate::{Digest, Pace, Plan, PlanError, Round, StepBudget};

/// What is in force in one round. By default nothing differs from the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InForce {
    /// The round from which on the run pauses, if it does in this one.
    pub paused: Option<Round>,
    /// Rounds in all, if they were changed.
    pub rounds: Option<u64>,
    /// What the training of the round goes by.
    pub training: TrainingRules,
}

impl InForce {
    /// What the members of a group must have in common to train and exchange by the same rules; `None`
    /// where they are those of the plan.
    pub(crate) fn rules(&self) -> Option<Digest> {
        let rules = &self.training;
        let usual = *rules == TrainingRules::default();
        (!usual).then(|| Digest::of(&crate::wire::canonical(&("rules", rules))))
    }

    /// The plan with these changes.
    ///
    /// # Errors
    /// When no configuration could say the same.
    pub fn applied_to(&self, plan: &Plan) -> Result<Plan, PlanError> {
        let mut changed = plan.clone();
        changed.rounds = self.rounds.unwrap_or(plan.rounds);
        if let Some(steps) = self.training.inner_steps {
            changed.budget = StepBudget::Steps(steps);
            let pace = &mut changed.synchronization.pace;
            if *pace != Pace::Balanced {
                *pace = Pace::Steady;
            }
        }
        changed.validate().map(|()| changed)
    }
}
