//! The plan: what a peer must know of the grid, without tensors.
//!
//! `strategies` builds plans from the configuration; the wire carries only their hash, because two
//! peers exchange only when their plans are equal.

mod agreement;
#[cfg(test)]
mod tests;
mod validate;

pub(crate) use agreement::Tolerance;
pub use agreement::{AgreementPlan, Grouping, Passes, Weighing};
pub use validate::PlanError;

use crate::id::rendezvous;
use crate::limits::{
    DATA_LEDGER_BYTES_MAX, GROUP_MEMBERS_MAX, RATINGS_BYTES_MAX, ROLL_BYTES_MAX,
    ROUND_NOTE_BYTES_MAX, SCORES_BYTES_MAX, SHARED_HEAD_BYTES,
};
use crate::{
    Digest, ExchangeKind, FragmentId, Layers, LayoutHash, OverlapPlan, Part, PeerId, PlanHash,
    Round, RunId, Sampling, Schedule, StepBudget, Synchronization,
};
use core::ops::Range;
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// The slot of the hash that draws the sample; zero picks proposers, independently of it.
const SAMPLE_SLOT: u8 = 1;

/// Bytes at most that precede the values of a slice of plain f32.
const PLAIN_HEADER_BYTES_MAX: u64 = 64;

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

/// Bounds of the deadlines, which follow measurements within them.
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
    /// Bytes of the model in a state transfer; see [`Plan::state_bytes_max`].
    pub state_bytes: u64,
    /// What the members of a group expect of each other, where they agree.
    pub agreement: AgreementPlan,
}

impl Plan {
    /// The number of parts, each voted on by itself, of a fragment of `len` values in a group of
    /// `members`.
    pub(crate) fn parts(&self, len: u64, members: usize) -> u64 {
        if self.exchange.facts().has_schedule {
            self.schedule.shards(members, len)
        } else if self.scores() {
            2 * self.exchange.parts(len, members)
        } else if self.agreement.parts > 0 {
            u64::from(self.agreement.parts).min(len).max(1)
        } else {
            self.exchange.parts(len, members)
        }
    }

    /// Contributions are scored before they are merged. Each member's scores are a part, too.
    pub const fn scores(&self) -> bool {
        self.agreement.scoring.is_some()
    }

    /// Returns `true` if a fragment of `len` values may have this number of parts in a group of `members`.
    pub(crate) fn may_have_parts(&self, parts: u64, len: u64, members: usize) -> bool {
        if self.exchange.facts().has_schedule {
            self.schedule.may_cut_into(parts, members, len)
        } else {
            parts == self.parts(len, members)
        }
    }

    /// The most bytes of any fragment's aggregate: what schedules that go by links are found for.
    pub(crate) fn largest_aggregate(&self) -> u64 {
        let bytes = self.fragments.iter().map(|f| f.aggregate.of(f.len));
        bytes.max().unwrap_or(0)
    }

    /// Members of a group go by rates that they measure, so that its proposer must name them.
    pub(crate) const fn names_links(&self) -> bool {
        self.schedule.link_plan().is_some() && !self.agreement.signs()
    }

    /// Members of a group go by where they are, so that its proposer must say it.
    pub(crate) const fn names_places(&self) -> bool {
        (self.agreement.parts > 0 || self.schedule.goes_by_sites()) && !self.agreement.signs()
    }

    /// The hash that peers compare.
    pub fn hash(&self) -> PlanHash {
        let mut bytes = crate::wire::canonical(self);
        // The last field. What is usual in it is left out, so that the hash is that of plans from before
        // there was such a field, and so are the random numbers that codecs draw from it.
        bytes.truncate(bytes.len() - self.agreement.usual_bytes());
        PlanHash::from_bytes(*Digest::of(&bytes).as_bytes())
    }

    /// Members choose the codec of each round.
    pub fn chooses_codecs(&self) -> bool {
        self.agreement.ladder.is_some()
    }

    /// This many contributions are too few to be combined.
    pub(crate) fn too_few(&self, contributions: usize) -> bool {
        contributions < usize::from(self.agreement.contributions.max(1))
    }

    /// The most bytes of a transferred state: the model's, and what the peers agree on beside it. In a
    /// swarm of many peers their roll can be larger than a small model.
    pub fn state_bytes_max(&self) -> u64 {
        let roll = if self.agreement.grouping.has_roll() {
            ROLL_BYTES_MAX
        } else {
            0
        };
        let ratings = if self.scores() { RATINGS_BYTES_MAX } else { 0 };
        self.state_bytes + (roll + ratings + DATA_LEDGER_BYTES_MAX + SHARED_HEAD_BYTES) as u64
    }

    /// The most bytes that a slice of the fragment has. In a merge of branches values travel as f32.
    pub fn slice_bytes_max(&self, fragment: &FragmentPlan) -> u64 {
        let plain = if self.merges() {
            PLAIN_HEADER_BYTES_MAX + 4 * fragment.len
        } else {
            0
        };
        let scores = if self.scores() { SCORES_BYTES_MAX } else { 0 };
        fragment.slice_bytes_max().max(plain).max(scores)
    }

    /// The most bytes of a slice of one of `of` shards of a fragment.
    pub fn shard_bytes_max(&self, fragment: &FragmentPlan, part: Part, of: u64) -> u64 {
        let values = fragment.len.div_ceil(of.max(1));
        let note = if self.agreement.grouping.is_grid() {
            ROUND_NOTE_BYTES_MAX as u64 + 4
        } else {
            0
        };
        match part {
            Part::Contribution | Part::Basis | Part::Second => fragment.contribution.of(values),
            Part::Aggregate => fragment.aggregate.of(values) + note,
            Part::Partial => fragment.aggregate.of(values),
            Part::Scores => {
                if self.scores() {
                    SCORES_BYTES_MAX
                } else {
                    0
                }
            }
            Part::RowMean => PLAIN_HEADER_BYTES_MAX + 4 * values,
            Part::Bundle => {
                // A column has at most as many parts as a group has members.
                let parts = GROUP_MEMBERS_MAX as u64;
                let heads = parts * (fragment.aggregate.of(1) + 4);
                fragment.aggregate.of(values) + heads + note + 8
            }
        }
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

/// What a plan says about a single round: how much is trained, by which peers, and which fragments.
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
        let place = u128::from(rendezvous(&self.run, round, SAMPLE_SLOT, peer));
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
