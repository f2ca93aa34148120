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
        let rules = self.training;
        if rules == TrainingRules::default() {
            return None;
        }
        let TrainingRules {
            inner_steps,
            rate,
            codec,
            // What the members choose follows from their state.
            rung: _,
        } = rules;
        // Peers that know no change of the codec hash what it says of the others.
        let said = match codec {
            None => crate::wire::canonical(&("rules", inner_steps, rate)),
            Some(codec) => crate::wire::canonical(&("rules", inner_steps, rate, codec)),
        };
        Some(Digest::of(&said))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RateFactor;

    /// Daemons of the version before know no change of the codec, and must find the same hash for the others.
    #[test]
    fn rules_without_a_codec_hash_as_they_did_before_there_was_one() {
        #[derive(serde::Serialize)]
        struct Before {
            inner_steps: Option<u32>,
            rate: RateFactor,
        }
        let with = |codec| InForce {
            training: TrainingRules {
                inner_steps: Some(7),
                codec,
                ..TrainingRules::default()
            },
            ..InForce::default()
        };
        let before = Before {
            inner_steps: Some(7),
            rate: RateFactor::ONE,
        };
        let before = Digest::of(&crate::wire::canonical(&("rules", before)));
        assert_eq!(with(None).rules(), Some(before));
        assert_ne!(with(Some(7)).rules(), Some(before));
        assert_ne!(with(Some(7)).rules(), with(Some(8)).rules());
        assert_eq!(InForce::default().rules(), None);
    }
}
