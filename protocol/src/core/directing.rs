//! How the owner's directives change what a peer goes by.

use crate::core::context::Context;
use crate::core::directed::joint;
use crate::{Digest, Directive, Round};

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

    /// Whether members say their losses or waits, because the pace of the run follows them.
    pub(crate) fn follows_losses(&self) -> bool {
        self.directed.configured().1.is_agreed()
    }

    /// Whether members say a number with their contributions: their losses or waits, for the pace, or waits for
    /// the codec.
    pub(crate) fn says_losses(&self) -> bool {
        self.follows_losses() || self.plan.agreement.ladder.is_some()
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
