//! What a plan says about a single round: how much is trained, by which peers, and which fragments.

use crate::plan::{Contribution, Plan};
use crate::rendezvous::rendezvous;
use crate::{FragmentId, Layers, OverlapPlan, PeerId, Round, Sampling, StepBudget};
use core::ops::Range;

/// The slot of the hash that draws the sample; zero picks proposers, independently of it.
const SLOT: u8 = 1;

impl Plan {
    /// How much to train in a round. Where that depends on losses or waits, this is a forecast, and
    /// [`Peer::budget`](crate::Peer::budget) returns the budget itself.
    pub fn budget_of(&self, round: Round) -> StepBudget {
        self.synchronization.pace.budget(self.budget, round)
    }

    /// A peer is drawn to train in a round.
    pub fn draws(&self, round: Round, peer: PeerId) -> bool {
        let sampling = self.synchronization.sampling;
        if sampling == Sampling::ALL {
            return true;
        }
        let place = u128::from(rendezvous(&self.run, round, SLOT, peer));
        let all = u128::from(Sampling::ALL.per_million);
        (place * all) >> 64 < u128::from(sampling.per_million)
    }

    /// Where the fragments lie in the flat parameters and their companion.
    pub fn ranges(&self) -> Vec<Range<usize>> {
        let mut start = 0;
        let lens = self.fragments.iter().map(|fragment| fragment.len as usize);
        lens.map(|len| {
            start += len;
            start - len..start
        })
        .collect()
    }

    /// No round follows this one.
    pub const fn ends_with(&self, round: Round) -> bool {
        self.rounds > 0 && round.0.saturating_add(1) >= self.rounds
    }

    /// The next round's training begins before this round's result is applied. Never in the
    /// last round, which no other follows.
    pub const fn trains_ahead(&self, round: Round) -> bool {
        self.overlap.late_steps > 0 && !self.ends_with(round)
    }

    /// The next round's first forward pass begins while fragments of this round are exchanged.
    pub const fn forward_begins(&self, round: Round) -> bool {
        self.overlap.layers.reach_forward() && !self.ends_with(round)
    }

    /// The sides of a swarm that was split are merged by weight when they meet: where a round
    /// ends with one anchor for all fragments, the training between two rounds ends with the first of
    /// them, and members do not sign.
    pub fn merges(&self) -> bool {
        let OverlapPlan {
            stagger,
            late_steps,
            layers,
        } = self.overlap;
        let whole = stagger <= 1 && late_steps == 0 && layers == Layers::Together;
        let deltas = self.contribution == Contribution::Delta;
        let grid = self.agreement.grouping.is_grid();
        self.exchange.agrees() && deltas && whole && !self.agreement.signs() && !grid
    }

    /// Rounds settle which blocks of the data were trained, so that peers know who has the same data. They
    /// do not where fragments leave before the training has ended, and where members sign what they say.
    pub fn settles_data(&self) -> bool {
        self.exchange.agrees() && !self.agreement.signs() && self.overlap.layers == Layers::Together
    }

    /// The fragments that a round exchanges, in the order in which they leave: the last one first
    /// where they leave during the backward pass.
    pub fn fragments_of(&self, round: Round) -> impl Iterator<Item = FragmentId> + use<> {
        let (overlap, count) = (self.overlap, self.fragments.len() as u16);
        let backward = overlap.layers != Layers::Together;
        (0..count)
            .map(move |at| FragmentId(if backward { count - 1 - at } else { at }))
            .filter(move |fragment| overlap.exchanges(round, *fragment))
    }
}
