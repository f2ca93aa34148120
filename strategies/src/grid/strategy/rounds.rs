//! The rounds of a strategy: how long each trains, which fragments it exchanges, and when results
//! are applied.

use super::Strategy;
use crate::Trainer;
use crate::executor::Blend;
use crate::grid::StrategyError;
use murmurate_protocol::{OverlapPlan, Round, StepBudget, Synchronization};

impl Strategy {
    /// How much to train in the first round.
    pub const fn budget(&self) -> StepBudget {
        self.rounds.budget
    }

    /// How much to train in a round.
    pub fn budget_of(&self, round: Round) -> StepBudget {
        self.rounds
            .synchronization
            .pace
            .budget(self.rounds.budget, round)
    }

    /// Rounds with this number of inner steps; `None` where rounds are bounded by time.
    pub fn rounds(&self, inner_steps: u64) -> Option<u64> {
        self.rounds
            .synchronization
            .pace
            .rounds(self.rounds.budget, inner_steps)
    }

    /// Who waits for whom in a round, and how the budget changes.
    pub const fn synchronization(&self) -> Synchronization {
        self.rounds.synchronization
    }

    /// Which fragments a round exchanges, and how late its result is.
    pub const fn overlap_plan(&self) -> OverlapPlan {
        self.overlap.plan
    }

    /// Whether the configuration cuts the parameters into fragments.
    pub(in crate::grid) fn is_cut(&self) -> bool {
        self.overlap.is_cut()
    }

    /// Refuses a trainer that cannot do what the strategy needs.
    ///
    /// # Errors
    /// When contributions are scored and the trainer has no held sample.
    pub fn check_trainer(&self, trainer: &dyn Trainer) -> Result<(), StrategyError> {
        if self.aggregation().scoring().is_some() && !trainer.holds_a_sample() {
            return Err(StrategyError::Refused {
                key: "aggregation.rule",
                reason: "this trainer cannot evaluate, and members score contributions by their loss",
                remedy: "give it held-out data or an evaluation, or use rule = \"centered-clip\"",
            });
        }
        Ok(())
    }

    /// What the trainer makes of a result that comes while it trains.
    pub const fn blend(&self) -> Blend {
        self.overlap.blend
    }

    /// Runs of an eager update: the private optimizer's state, the peer's own part, and the buffer
    /// that carries it.
    pub(super) fn eager_runs(&self) -> usize {
        match self.blend() {
            Blend::Eager => 2 + self.outer.state_multiple(),
            Blend::OwnProgress | Blend::Estimate | Blend::Alpha(_) => 0,
        }
    }

    /// Runs of what is kept of the first half of an inner step: the parameters, and the mean gradient.
    pub(super) fn halves_runs(&self) -> usize {
        2 * usize::from(self.blend() == Blend::Estimate)
    }
}
