//! A strategy: a point of the grid that has passed all checks.

mod parsed;
mod planned;

use super::error::refuse;
use super::{StrategyError, overlap};
use crate::aggregate::AggregationKind;
use crate::compress::{CODECS, Codec, CodecKind, CodecSpec, may_replace};
use crate::correct::{Companion, Correction, CorrectionKind, Needs};
use crate::executor::{Blend, CenterRule};
use crate::inner::{InnerKind, InnerOptimizer, RateSchedule};
use crate::outer::{OuterKind, StatePrecision, StoredOuter};
use crate::topology::TopologyKind;
use crate::{KeptBack, Layout, Trainer};
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use murmurate_protocol::{
    Contribution, DeadlinePlan, ExchangeKind, Grouping, LinkTable, OverlapPlan, Round, Schedule,
    StepBudget, Synchronization, Topology,
};
use std::collections::BTreeSet;
use std::ops::Range;

/// Bytes of a state transfer besides its f32: counts, names and lengths.
pub const STATE_HEADER_BYTES: u64 = 4096;

/// What every member holds of how many, as states are listed.
pub(super) const HELD: &str = "held of 16 members";
pub(super) const HELD_MEMBERS: usize = 16;

/// Members that a transferred state holds the last word of, at most: those of a group, and as many
/// that were in it within the last rounds.
const COMMON_MEMBERS: u64 = 128;

/// A point in synchronization x architecture x compression x overlap (+ outer optimizer,
/// + aggregation rule, + inner optimizer, + deadlines) that can work.
///
/// It is made only by parsing a configuration, so every strategy has been checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    name: String,
    rounds: Rounds,
    pub(super) architecture: Architecture,
    pub(super) compression: Compression,
    /// When fragments are exchanged, and which.
    pub(super) overlap: overlap::Overlap,
    outer: OuterKind,
    aggregation: AggregationKind,
    pub(super) groups: GroupChoice,
    pub(super) inner: Inner,
    deadlines: DeadlinePlan,
}

/// How much a round trains, and which peers wait for which.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rounds {
    budget: StepBudget,
    synchronization: Synchronization,
}

/// Which peers exchange what.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Architecture {
    pub(super) kind: ExchangeKind,
    pub(super) arrivals: CenterRule,
    pub(super) schedule: Schedule,
    /// The links that the schedule was found for.
    pub(super) links: Option<LinkTable>,
    pub(super) contribution: Contribution,
    pub(super) topology: Option<TopologyKind>,
    /// How far neighbours with replicas move towards each other.
    pub(super) rate: Option<f64>,
    /// Patterns of names of tensors that do not travel.
    pub(super) local: Vec<String>,
    /// Parts of a fragment that owners share by their lines; zero where each owns a shard.
    pub(super) parts: u16,
}

/// What a strategy says of its groups; `None` leaves it to the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GroupChoice {
    /// Members that may lie without harm; `u16::MAX` for as many as a group of its size survives.
    pub(super) liars: Option<u16>,
    pub(super) grouping: Option<Grouping>,
}

/// How contributions are encoded.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Compression {
    pub(super) codec: CodecKind,
    pub(super) error_feedback: bool,
    pub(super) choice: Option<Choice>,
}

/// From which codecs the members of a round choose.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    /// Rounds after which the codec follows from the waits again.
    pub(super) every: u64,
    /// The share of the time that training should have, in thousandths.
    pub(super) share: u16,
    /// Those behind the configured one, the most exact first.
    pub(super) codecs: Vec<CodecKind>,
}

/// What an inner step does.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Inner {
    optimizer: InnerKind,
    correction: CorrectionKind,
    pub(super) rate: RateSchedule,
    pub(super) no_decay: Vec<String>,
}

impl Strategy {
    /// The preset that it started from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who exchanges with whom.
    pub const fn exchange(&self) -> ExchangeKind {
        self.architecture.kind
    }

    /// Set where members sign, because some of them may lie.
    pub(super) fn signs(&self) -> bool {
        self.groups.plan().signs()
    }

    /// Which way an all-reduce sums up.
    pub const fn schedule(&self) -> Schedule {
        self.architecture.schedule
    }

    /// What a contribution is.
    pub const fn contribution(&self) -> Contribution {
        self.architecture.contribution
    }

    /// Set where values that the codec leaves out go into the next round.
    pub const fn error_feedback(&self) -> bool {
        self.compression.error_feedback
    }

    /// The codecs behind the configured one from which the members of a round choose; none where they do not.
    pub fn choices(&self) -> &[CodecKind] {
        let choice = self.compression.choice.as_ref();
        choice.map_or(&[], |choice| &choice.codecs)
    }

    /// The codec of contributions, as data.
    pub const fn codec_kind(&self) -> &CodecKind {
        &self.compression.codec
    }

    /// The codec of contributions.
    pub fn codec(&self) -> Box<dyn Codec> {
        self.compression.codec.build()
    }

    /// The codecs that the owner of a run may choose while it trains, that of the configuration first; none
    /// where it cannot be changed.
    pub fn codecs(&self) -> Vec<&'static CodecSpec> {
        let own = self.codec_kind();
        let others = CODECS
            .iter()
            .copied()
            .filter(|spec| spec.tag != own.spec().tag && may_replace(own, spec).is_ok());
        let all: Vec<_> = std::iter::once(own.spec()).chain(others).collect();
        // Masked contributions are not encoded, and not every codec fits means alone.
        let one = !self.overlap.has_densities() && !self.aggregation().is_masked();
        if self.exchange().agrees() && one && all.len() > 1 {
            all
        } else {
            Vec::new()
        }
    }

    /// How far neighbours with replicas of each other move towards each other, and whether by exact
    /// diffusion; only in exchanges of differences to replicas.
    pub fn replicas(&self) -> Option<(f32, bool)> {
        let corrects = self.inner.correction.needs() == Needs::Moves;
        self.architecture.rate.map(|rate| (rate as f32, corrects))
    }

    /// The topology, as data; only exchanges between neighbours have one.
    pub const fn topology_kind(&self) -> Option<TopologyKind> {
        self.architecture.topology
    }

    /// The topology; all peers of a run must give the same seed.
    pub fn topology(&self, seed: u64) -> Option<Box<dyn Topology>> {
        self.architecture.topology.map(|kind| kind.build(seed))
    }

    /// The outer optimizer, as data.
    pub const fn outer_kind(&self) -> &OuterKind {
        &self.outer
    }

    /// The outer optimizer for `len` parameters.
    pub fn outer(&self, len: usize) -> StoredOuter {
        StoredOuter::new(&self.outer, self.outer_state(), len)
    }

    /// How the outer optimizer's state is kept.
    pub fn outer_state(&self) -> StatePrecision {
        StatePrecision::of(&self.outer)
    }

    /// Bytes that the outer optimizer keeps for each parameter.
    pub fn outer_bytes(&self) -> usize {
        self.outer.state_multiple() * self.outer_state().bytes()
    }

    /// How a center takes arrivals in.
    pub fn center(&self) -> CenterRule {
        CenterRule {
            elastic: self.outer.elastic(),
            ..self.architecture.arrivals
        }
    }

    /// The aggregation rule.
    pub const fn aggregation(&self) -> AggregationKind {
        self.aggregation
    }

    /// The inner optimizer, as data.
    pub const fn inner_kind(&self) -> &InnerKind {
        &self.inner.optimizer
    }

    /// The inner optimizer for `len` parameters.
    pub fn inner(&self, len: usize) -> InnerOptimizer {
        self.inner.optimizer.build(len)
    }

    /// The correction of inner steps' gradients, as data.
    pub const fn correction_kind(&self) -> &CorrectionKind {
        &self.inner.correction
    }

    /// The correction of inner steps' gradients, for `len` parameters.
    pub fn correction(&self, len: usize) -> Option<Box<dyn Correction>> {
        self.inner.correction.build(len, self.inner.optimizer.lr())
    }

    /// What travels beside the parameters.
    pub fn companion(&self) -> Companion {
        match self.inner.correction.companion() {
            Companion::None => self.outer.companion(),
            companion => companion,
        }
    }

    /// Bounds of the deadlines.
    pub const fn deadlines(&self) -> DeadlinePlan {
        self.deadlines
    }

    /// Patterns of the names of tensors without weight decay.
    pub fn no_decay(&self) -> &[String] {
        &self.inner.no_decay
    }

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

    /// The trainer as the others know it: without the tensors that stay with this peer.
    ///
    /// # Errors
    /// When contributions are scored and the trainer has no held sample; when a pattern of `architecture.local`
    /// names no tensor of it, or all stay.
    pub fn trainer(&self, trainer: Box<dyn Trainer>) -> Result<Box<dyn Trainer>, StrategyError> {
        refuse(
            self.scores() && !trainer.holds_a_sample(),
            "aggregation.rule",
            "this trainer cannot evaluate, and members score contributions by their loss",
            "give it held-out data or an evaluation, or use rule = \"centered-clip\"",
        )?;
        match &self.architecture.local[..] {
            [] => Ok(trainer),
            local => Ok(Box::new(KeptBack::new(trainer, local, self.no_decay())?)),
        }
    }

    /// What the trainer makes of a result that comes while it trains.
    pub const fn blend(&self) -> Blend {
        self.overlap.blend
    }

    /// Runs of an eager update: the private optimizer's state, the peer's own part, and the buffer
    /// that carries it.
    fn eager_runs(&self) -> usize {
        match self.blend() {
            Blend::Eager => 2 + self.outer.state_multiple(),
            Blend::OwnProgress | Blend::Estimate | Blend::Alpha(_) => 0,
        }
    }

    /// Runs of the state of the first half of an inner step: the parameters, and the mean gradient.
    pub(super) fn halves_runs(&self) -> usize {
        2 * usize::from(self.blend() == Blend::Estimate)
    }

    /// What the method keeps between rounds, store by store, in multiples of 4 bytes x parameters;
    /// what an exchange has under way comes on top. A trainer whose parameters are not at hand
    /// ([`Trainer::is_at_hand`](crate::Trainer::is_at_hand)) needs the store `local` with every method.
    pub fn stores(&self) -> Vec<(&'static str, f64)> {
        let gradients = self.architecture.contribution == Contribution::Gradient;
        let inner = self.inner.optimizer.state_multiple();
        let inner = if gradients { 2 * inner } else { inner };
        let residual = self.compression.error_feedback && self.architecture.rate.is_none();
        let runs = |name, runs: usize| (name, runs as f64);
        let mut stores = vec![
            runs("parameters", 1),
            runs("gradients", 1),
            // Where peers exchange gradients: the trainer's own, and the one that takes the mean gradient.
            runs("inner optimizer", inner),
            runs("anchor", 1),
            runs("local", usize::from(!self.leaves_trainer_free())),
            // Its part of anchor and local buffer.
            runs("companion", 2 * self.companion().len(1)),
            ("outer optimizer", self.outer_bytes() as f64 / 4.0),
            runs("eager updates", self.eager_runs()),
            runs("first halves", self.halves_runs()),
            runs("residual", usize::from(residual)),
            runs("replicas of neighbours", self.replica_runs()),
            runs("codec", self.codec().properties().planes),
            runs(HELD, self.held_runs()),
            runs("correction", self.inner.correction.state_multiple()),
        ];
        stores.retain(|(_, multiple)| *multiple > 0.0);
        stores
    }

    /// Runs of replicas among 16 peers: two for each neighbour that one meets, three with exact
    /// diffusion or error feedback, and three of a companion that flows.
    fn replica_runs(&self) -> usize {
        let Some((_, corrects)) = self.replicas() else {
            return 0;
        };
        let met = self.topology(0).map_or(0, |topology| {
            let rounds = (0..64).map(Round);
            let met = rounds.flat_map(|round| topology.partners(round, 5, 16).send);
            let met: BTreeSet<usize> = met.map(|(rank, _)| rank).collect();
            met.len()
        });
        let flows = if self.companion() == Companion::Flows {
            3
        } else {
            0
        };
        met * (2 + usize::from(corrects || self.compression.error_feedback) + flows)
    }

    /// Bytes of a transferred state beside its runs of parameters.
    pub(super) fn kept_bytes(&self, layout: &Layout) -> u64 {
        let fragments = self.fragments(layout);
        // Of each fragment is said whether it keeps a first half.
        let halves = match self.halves_runs() {
            0 => 0,
            _ => 4 * fragments.len() as u64,
        };
        STATE_HEADER_BYTES + halves + self.common_bytes(&fragments)
    }

    /// Runs that every member holds of others, among 16.
    fn held_runs(&self) -> usize {
        let mut codec = self.codec();
        let holds = codec.gathering().is_some_and(|common| common.holds());
        if holds { HELD_MEMBERS } else { 0 }
    }

    /// What the codec keeps in common at most, in bytes of a transferred state.
    fn common_bytes(&self, fragments: &[Range<usize>]) -> u64 {
        let mut codec = self.codec();
        if let Some(twice) = codec.two_passes() {
            // The number of shards, and the number of values of each.
            let of = |len: usize| twice.shared_most(len) as u64 + 1 + GROUP_MEMBERS_MAX as u64;
            return fragments.iter().map(|f| 4 * of(f.len()) + 16).sum();
        }
        let Some(common) = codec.gathering() else {
            return 0;
        };
        let members = if common.holds() { COMMON_MEMBERS } else { 0 };
        let of = |len: usize| (common.shared_most(len) as u64) + members * (len as u64 + 16);
        fragments.iter().map(|f| 4 * of(f.len()) + 16).sum()
    }
}
