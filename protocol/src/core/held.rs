//! What a peer's context holds beside the clock and the view: its settings, its life, its roll, its data, and what
//! the owner has changed.

use crate::data::Mine;
use crate::roll::{RoundNote, SharedRolls};
use crate::sorted::SortedSet;
use crate::{
    Chosen, Digest, Directives, InForce, Ledger, Loss, Losses, Pace, PeerId, Plan, PlanHash, Pool,
    Ratings, Roll, Round, Score, StepBudget, Taken,
};
use core::time::Duration;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The value of [`PeerConfig::evaluate_every`] of a peer that has nothing to evaluate with.
pub const EVALUATE_NEVER: u64 = u64::MAX;

/// Settings of one peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerConfig {
    /// Who this peer is.
    pub me: PeerId,
    /// Seed of its only source of randomness.
    pub seed: u64,
    /// How many peers, itself included, a fresh run waits for before its first round.
    pub start_with: usize,
    /// How many others it trained with at the end of its earlier life: a peer with a checkpoint waits
    /// for them where no run is under way.
    pub companions: usize,
    /// How long it waits for them, or, when it joins, for a peer that has a state.
    pub start_wait: Duration,
    /// Set to join a run that others began: it trains nothing before it has their state.
    pub join: bool,
    /// How often it writes a checkpoint; `None` for only at the end.
    pub save_every: Option<Duration>,
    /// Rounds between evaluations on held-out data; zero for only at the end, [`EVALUATE_NEVER`] for none.
    pub evaluate_every: u64,
    /// The most of the time, in percent, that these evaluations may take: then some of them are left out. Zero for
    /// no bound.
    pub evaluate_percent: u8,
    /// Set to leave without being told once the plan's rounds are done.
    pub leave_when_finished: bool,
    /// The data set that it shares with others, if it does.
    pub pool: Option<Pool>,
    /// The last round for which an earlier life masked deltas: up to it, this peer contributes nothing.
    pub masked: Option<Round>,
}

/// What tells this life of a peer from others.
#[derive(Debug, Default)]
pub(crate) struct ThisLife {
    /// Tells it from earlier ones. Statements of an earlier life count in no group of this one.
    pub(crate) session: u64,
    /// Set until this peer is in a group: it may not know all peers yet.
    pub(crate) newcomer: bool,
    /// The last round that this peer's contribution could not be made for.
    pub(crate) failed_in: Option<Round>,
    /// The last round to which this peer brings nothing, where one that fails would leave all without a result.
    pub(crate) rests_until: Option<Round>,
}

/// The roll of a swarm that has one.
#[derive(Debug, Default)]
pub(crate) struct Rolls {
    /// Who takes part in the round.
    pub(crate) roll: Option<Arc<Roll>>,
    /// What the round has decided about the next one.
    pub(crate) note: Vec<u8>,
    /// Those that other peers of this process hold.
    pub(crate) shared: SharedRolls,
    /// The peers of this one's row and column, or of its cells.
    mates: Arc<SortedSet<PeerId>>,
}

impl Rolls {
    /// This roll is in force, in which this peer has these mates; returns those that are new.
    pub(crate) fn hold(
        &mut self,
        roll: Option<Arc<Roll>>,
        mates: SortedSet<PeerId>,
    ) -> Vec<PeerId> {
        let fresh = mates.difference(&self.mates).copied().collect();
        (self.roll, self.mates) = (roll, Arc::new(mates));
        fresh
    }

    /// A peer of this one's row, column or cells.
    pub(crate) fn is_mate(&self, peer: PeerId) -> bool {
        self.mates.contains(&peer)
    }

    pub(crate) fn mates(&self) -> impl Iterator<Item = PeerId> {
        self.mates.iter().copied()
    }

    /// All of them, to go through while the rest of the context changes.
    pub(crate) fn all_mates(&self) -> Arc<SortedSet<PeerId>> {
        self.mates.clone()
    }

    /// What the round's note says, if the round has one. All peers have the same bytes, so a note that cannot
    /// be read changes nothing at any of them.
    pub(crate) fn take_note(&mut self) -> Option<RoundNote> {
        // Taken, so that no later round reads it again.
        let note = std::mem::take(&mut self.note);
        (!note.is_empty()).then(|| RoundNote::from_bytes(&note).unwrap_or_default())
    }
}

/// Who trains which data, and with which loss, where the peers agree on it.
#[derive(Debug, Default)]
pub(crate) struct Data {
    pub(crate) ledger: Ledger,
    /// What this peer trains.
    pub(crate) mine: Mine,
    /// The statement about that data in its contribution to the round.
    pub(crate) taken: Option<Taken>,
    /// The loss that it says with its contribution, where the pace follows losses.
    pub(crate) loss: Option<Loss>,
    pub(crate) losses: Losses,
    /// The codec of the round, where members choose it by waits.
    pub(crate) chosen: Chosen,
    pub(crate) ratings: Ratings,
    /// The scores that the members of a round agreed on, until the round is over.
    pub(crate) judged: Option<(Round, Vec<(PeerId, Score)>)>,
}

/// What the owner has changed of the plan. `Context::plan` is the plan with these changes.
#[derive(Debug)]
pub(crate) struct Directed {
    /// Hash of the plan without changes, which peers compare.
    pub(crate) plan_hash: PlanHash,
    pub(super) first: (u64, StepBudget, Pace),
    pub(crate) all: Directives,
    /// The changes in force in the peer's round: they stay the same within a round.
    pub(crate) in_force: InForce,
}

impl Directed {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            plan_hash: plan.hash(),
            first: (plan.rounds, plan.budget, plan.synchronization.pace),
            all: Directives::default(),
            in_force: InForce::default(),
        }
    }

    pub(crate) const fn configured(&self) -> (StepBudget, Pace) {
        let (_, budget, pace) = self.first;
        (budget, pace)
    }

    /// A round must not begin.
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
