//! What the owner has changed of the plan.

use crate::{Digest, Directives, InForce, Pace, Plan, PlanHash, Round, StepBudget};

/// What the owner has changed of the plan. `Context::plan` is the plan with these changes.
#[derive(Debug)]
pub(crate) struct Directed {
    /// Hash of the plan without changes, which peers compare.
    pub(crate) plan_hash: PlanHash,
    /// Rounds, budget and pace of that plan.
    pub(super) first: (u64, StepBudget, Pace),
    pub(super) all: Directives,
    /// What is in force in the peer's round: it does not change within one.
    pub(super) in_force: InForce,
}

impl Directed {
    /// No directives, of this plan.
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            plan_hash: plan.hash(),
            first: (plan.rounds, plan.budget, plan.synchronization.pace),
            all: Directives::default(),
            in_force: InForce::default(),
        }
    }

    /// All directives that count.
    pub(crate) fn all(&self) -> &Directives {
        &self.all
    }

    /// What is in force in the peer's round.
    pub(crate) fn in_force(&self) -> &InForce {
        &self.in_force
    }

    /// The budget and the pace of the plan without changes.
    pub(crate) const fn configured(&self) -> (StepBudget, Pace) {
        let (_, budget, pace) = self.first;
        (budget, pace)
    }

    /// Whether a round must not begin.
    pub(crate) fn pauses(&self, round: Round) -> bool {
        self.all.in_force(round).paused.is_some()
    }
}

/// One hash over both; the first one where there is no second.
pub(super) fn joint(one: Digest, two: Option<Digest>) -> Digest {
    two.map_or(one, |two| {
        Digest::of(&[*one.as_bytes(), *two.as_bytes()].concat())
    })
}
