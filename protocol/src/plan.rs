//! The plan: what a peer must know of the grid, without tensors.
//!
//! `strategies` builds plans from the configuration; the wire carries only their hash, because two
//! peers exchange only when their plans are equal.

use crate::exchange::KindError;
use crate::limits::{FRAGMENTS_MAX, STATE_BYTES_MAX};
use crate::{
    Digest, ExchangeKind, FragmentId, LayoutHash, OverlapError, OverlapPlan, Pace, PlanHash,
    Quorum, Round, RunId, Schedule, StepBudget, Synchronization,
};
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// What a contribution is, relative to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Contribution {
    /// The gradient of one inner step at the anchor.
    Gradient,
    /// Parameters after the round's inner steps minus the anchor.
    Delta,
    /// The parameters themselves.
    Parameters,
}

/// An upper bound on encoded bytes, linear in the number of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BytesBound {
    /// Bytes that are there whatever the length.
    pub fixed: u64,
    /// Bytes for every 1024 values.
    pub per_1024: u64,
}

impl BytesBound {
    /// The bound for `values` values.
    pub const fn of(&self, values: u64) -> u64 {
        let scaled = values.saturating_mul(self.per_1024).div_ceil(1024);
        self.fixed.saturating_add(scaled)
    }
}

/// One fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentPlan {
    /// Values (f32) in it.
    pub len: u64,
    /// Bound of an encoded contribution.
    pub contribution: BytesBound,
    /// Bound of an encoded aggregate.
    pub aggregate: BytesBound,
}

impl FragmentPlan {
    /// The most bytes that any slice of it has.
    pub fn slice_bytes_max(&self) -> u64 {
        self.contribution
            .of(self.len)
            .max(self.aggregate.of(self.len))
    }
}

/// Bounds of the deadlines; within them they follow what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadlinePlan {
    /// No deadline is shorter: scheduling noise of a loaded machine must fit.
    pub floor: Duration,
    /// Used until something has been measured.
    pub initial: Duration,
    /// No deadline is longer.
    pub ceiling: Duration,
}

impl Default for DeadlinePlan {
    fn default() -> Self {
        Self {
            floor: Duration::from_secs(2),
            initial: Duration::from_secs(5),
            ceiling: Duration::from_secs(60),
        }
    }
}

/// What the peers of a run agree on before they exchange anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The run.
    pub run: RunId,
    /// Hash of the model's tensors.
    pub layout: LayoutHash,
    /// Hash of the configuration's numeric part: codecs, optimizers, topology.
    pub recipe: Digest,
    /// Who exchanges with whom.
    pub exchange: ExchangeKind,
    /// Which way an all-reduce sums up.
    pub schedule: Schedule,
    /// What a contribution is.
    pub contribution: Contribution,
    /// How much to train in the first round; [`Plan::budget_of`] says it of the others.
    pub budget: StepBudget,
    /// Who waits for whom, and how the budget changes.
    pub synchronization: Synchronization,
    /// Rounds in all; zero means until told to stop.
    pub rounds: u64,
    /// The fragments, in the order of the flat parameters.
    pub fragments: Vec<FragmentPlan>,
    /// Which of them a round exchanges, and when.
    pub overlap: OverlapPlan,
    /// Bounds of the deadlines.
    pub deadlines: DeadlinePlan,
    /// Bytes of a state transfer.
    pub state_bytes: u64,
}

/// Why a plan cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// It has no fragment, or more than the limit.
    #[error("the plan has {count} fragments; it needs 1 to {FRAGMENTS_MAX}")]
    Fragments {
        /// How many.
        count: usize,
    },
    /// A fragment without values.
    #[error("fragment {index} is empty")]
    EmptyFragment {
        /// Which.
        index: usize,
    },
    /// Training for no time or no steps.
    #[error("a round of no inner steps trains nothing; give at least one")]
    NoBudget,
    /// Gradients are those of exactly one inner step.
    #[error("a gradient is exchanged after every inner step: the budget must be one inner step")]
    GradientBudget,
    /// A pace that trains nothing, or that a time has.
    #[error(
        "a round's inner steps can change with the round when they are counted, and never to none"
    )]
    Pace,
    /// Probability outside (0, 1], or an exchange that cannot skip peers.
    #[error(
        "peers are sampled with a probability above 0 and up to 1, and only where the butterfly or a parameter server in step takes their deltas up"
    )]
    Sampling,
    /// A quorum for an exchange without agreement.
    #[error(
        "only a round that ends with an agreement goes on with enough of its peers: let it wait for all"
    )]
    Quorum,
    /// Gossip mixes parameters.
    #[error(
        "gossip mixes parameters: neighbours' deltas or gradients without an agreed anchor diverge"
    )]
    GossipContribution,
    /// All-reduce agrees on deltas or gradients.
    #[error("what peers agree on are deltas or gradients relative to the agreed anchor")]
    AllReduceContribution,
    /// The exchange's own numbers.
    #[error(transparent)]
    Exchange(#[from] KindError),
    /// A schedule of something that follows none.
    #[error(
        "only an all-reduce follows a schedule: use the butterfly elsewhere, it is the default"
    )]
    Schedule,
    /// Fragments at times that cannot be.
    #[error(transparent)]
    Overlap(#[from] OverlapError),
    /// The state is too large.
    #[error("a state of {bytes} bytes is above the limit of {STATE_BYTES_MAX}")]
    State {
        /// Its size.
        bytes: u64,
    },
    /// Deadlines out of order.
    #[error("deadlines must satisfy 0 < floor <= initial <= ceiling")]
    Deadlines,
}

impl Plan {
    /// Checks that the plan can work.
    ///
    /// # Errors
    /// The first rule it breaks.
    pub fn validate(&self) -> Result<(), PlanError> {
        if self.fragments.is_empty() || self.fragments.len() > FRAGMENTS_MAX {
            return Err(PlanError::Fragments {
                count: self.fragments.len(),
            });
        }
        if let Some(index) = self.fragments.iter().position(|f| f.len == 0) {
            return Err(PlanError::EmptyFragment { index });
        }
        if matches!(
            self.budget,
            StepBudget::Steps(0) | StepBudget::Time(Duration::ZERO)
        ) {
            return Err(PlanError::NoBudget);
        }
        let when = &self.synchronization;
        if !when.pace.fits(self.budget) {
            return Err(PlanError::Pace);
        }
        let one = self.budget == StepBudget::Steps(1) && when.pace == Pace::Steady;
        if self.contribution == Contribution::Gradient && !one {
            return Err(PlanError::GradientBudget);
        }
        if !self.samples_well() {
            return Err(PlanError::Sampling);
        }
        if when.quorum != Quorum::default() && !self.exchange.agrees() {
            return Err(PlanError::Quorum);
        }
        let facts = self.exchange.facts();
        match self.contribution {
            Contribution::Delta | Contribution::Gradient if facts.has_neighbours => {
                return Err(PlanError::GossipContribution);
            }
            Contribution::Parameters if facts.agrees => {
                return Err(PlanError::AllReduceContribution);
            }
            _ => {}
        }
        self.exchange.check()?;
        if !facts.has_schedule && self.schedule != Schedule::Butterfly {
            return Err(PlanError::Schedule);
        }
        self.overlap.validate(self)?;
        if self.state_bytes > STATE_BYTES_MAX {
            return Err(PlanError::State {
                bytes: self.state_bytes,
            });
        }
        let d = &self.deadlines;
        if d.floor.is_zero() || d.floor > d.initial || d.initial > d.ceiling {
            return Err(PlanError::Deadlines);
        }
        Ok(())
    }

    /// How much to train in a round.
    pub fn budget_of(&self, round: Round) -> StepBudget {
        self.synchronization.pace.budget(self.budget, round)
    }

    /// The number of parts, each voted on by itself, of a fragment of `len` values in a group of
    /// `members`.
    pub(crate) fn parts(&self, len: u64, members: usize) -> u64 {
        match self.exchange.facts().has_schedule {
            true => self.schedule.shards(members, len),
            false => self.exchange.parts(len, members),
        }
    }

    /// The hash that peers compare.
    pub fn hash(&self) -> PlanHash {
        let bytes = crate::wire::canonical(self);
        PlanHash::from_bytes(*Digest::of(&bytes).as_bytes())
    }

    /// The plan of one fragment, if there is such a fragment.
    pub fn fragment(&self, id: FragmentId) -> Option<&FragmentPlan> {
        self.fragments.get(usize::from(id.0))
    }

    /// Names of all fragments, in order.
    pub fn fragment_ids(&self) -> impl Iterator<Item = FragmentId> + use<> {
        let count = u16::try_from(self.fragments.len()).unwrap_or(u16::MAX);
        (0..count).map(FragmentId)
    }
}
