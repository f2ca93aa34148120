//! What the owner has changed of the plan.

use crate::core::context::Context;
use crate::{Digest, Directive, Directives, InForce, Pace, Plan, PlanHash, Round, StepBudget};

/// What the owner has changed of the plan. [`Context::plan`] is the plan with these changes.
#[derive(Debug)]
pub(crate) struct Directed {
    /// Hash of the plan without changes, which peers compare.
    pub(crate) plan_hash: PlanHash,
    /// Rounds, budget and pace of that plan.
    first: (u64, StepBudget, Pace),
    all: Directives,
    /// What is in force in the peer's round: it does not change within one.
    in_force: InForce,
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

    /// Whether a round must not begin.
    pub(crate) fn pauses(&self, round: Round) -> bool {
        self.all.in_force(round).paused.is_some()
    }
}

impl Context {
    /// The owner's directives, as the host has checked them. Returns those that are new.
    pub(crate) fn direct(&mut self, directives: Vec<Directive>) -> Vec<Directive> {
        let new = self.directed.all.merge(directives);
        // The number of rounds is no rule of a round: it counts at once.
        let rounds = self.directed.all.in_force(self.round).rounds;
        self.plan.rounds = rounds.unwrap_or(self.directed.first.0);
        new
    }

    /// A round begins: what is in force in it is the plan. A change that this plan cannot carry out is left
    /// out by all peers alike, because all have the same plan.
    pub(crate) fn take_directives(&mut self) {
        let mut first = self.plan.clone();
        (first.rounds, first.budget, first.synchronization.pace) = self.directed.first;
        let mut in_force = self.directed.all.in_force(self.round);
        let plan = in_force.applied_to(&first).unwrap_or_else(|_| {
            in_force.training.inner_steps = None;
            first.rounds = in_force.rounds.unwrap_or(first.rounds);
            first
        });
        self.plan = plan;
        self.directed.in_force = in_force;
    }

    /// How this peer begins its round, in one hash: its anchor and the owner's rules for the round, where there
    /// are any. Peers form a group with those that begin alike.
    pub(crate) fn start(&self) -> Digest {
        joint(self.anchor(), self.directed.in_force.rules())
    }

    /// Whether a peer that begins a round like this has this anchor, as far as this peer can tell: it may know
    /// fewer directives than this one, or this one may have heard of them since the round began.
    pub(crate) fn starts_from(&self, anchor: Digest, round: Round, start: Digest) -> bool {
        let rules = self.directed.all.in_force(round).rules();
        let known = [None, rules, self.directed.in_force.rules()];
        known.iter().any(|rules| joint(anchor, *rules) == start)
    }
}

/// One hash over both; the first one where there is no second.
pub(super) fn joint(one: Digest, two: Option<Digest>) -> Digest {
    two.map_or(one, |two| {
        Digest::of(&[*one.as_bytes(), *two.as_bytes()].concat())
    })
}
