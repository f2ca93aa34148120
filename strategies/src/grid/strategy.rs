//! A strategy: a point of the grid that has passed all checks.

mod common;
mod parsed;
mod planned;
mod rounds;
mod stores;
mod written;

use super::chosen::{Choice, Compression};
use super::overlap;
use crate::aggregate::AggregationKind;
use crate::compress::{CODECS, Codec, CodecKind, CodecSpec, may_replace};
use crate::correct::{Companion, Correction, CorrectionKind, Needs};
use crate::executor::CenterRule;
use crate::inner::{InnerKind, InnerOptimizer, RateSchedule};
use crate::outer::{OuterKind, StatePrecision, StoredOuter};
use crate::topology::TopologyKind;
pub(super) use common::{HELD, HELD_MEMBERS};
use murmurate_protocol::{
    Contribution, DeadlinePlan, ExchangeKind, Grouping, LinkTable, Schedule, StepBudget,
    Synchronization, Topology,
};

/// Bytes of a state transfer besides its f32: counts, names and lengths.
pub const STATE_HEADER_BYTES: u64 = 4096;

/// A point in synchronization x architecture x compression x overlap (+ outer optimizer,
/// + aggregation rule, + inner optimizer, + deadlines) that can work.
///
/// It is made only by parsing a configuration, so every strategy has been checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    name: String,
    rounds: Rounds,
    architecture: Architecture,
    compression: Compression,
    overlap: overlap::Overlap,
    outer: OuterKind,
    aggregation: AggregationKind,
    liars: Option<u16>,
    pub(super) grouping: Option<Grouping>,
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
    pub(super) rate: Option<f64>,
    /// Parts of a fragment that owners share by their lines; zero where each owns a shard.
    pub(super) parts: u16,
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

    /// How far neighbours with replicas move towards each other.
    pub(super) const fn rate(&self) -> Option<f64> {
        self.architecture.rate
    }

    /// Parts of a fragment that owners share by their lines; zero where each owns a shard.
    pub(super) const fn parts(&self) -> u16 {
        self.architecture.parts
    }

    /// Who exchanges with whom.
    pub const fn exchange(&self) -> ExchangeKind {
        self.architecture.kind
    }

    /// How many members of a group may lie without harm; `None` where the configuration leaves it to
    /// the run. `u16::MAX` stands for as many as a group of its size can survive.
    pub const fn liars(&self) -> Option<u16> {
        self.liars
    }

    /// Which way an all-reduce sums up.
    pub const fn schedule(&self) -> Schedule {
        self.architecture.schedule
    }

    /// The links that the schedule was found for.
    pub(super) const fn links(&self) -> Option<&LinkTable> {
        self.architecture.links.as_ref()
    }

    /// What a contribution is.
    pub const fn contribution(&self) -> Contribution {
        self.architecture.contribution
    }

    /// Whether what the codec leaves out goes into the next round.
    pub const fn error_feedback(&self) -> bool {
        self.compression.error_feedback
    }

    /// From which codecs the members of a round choose, if they do.
    pub(super) const fn choice(&self) -> Option<&Choice> {
        self.compression.choice.as_ref()
    }

    /// The codecs behind the configured one from which the members of a round choose; none where they do not.
    pub fn choices(&self) -> &[CodecKind] {
        self.choice().map_or(&[], |choice| &choice.codecs)
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
        let one = !self.overlap.has_densities();
        match self.exchange().agrees() && one && all.len() > 1 {
            true => all,
            false => Vec::new(),
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
    pub fn inner(&self, len: usize) -> Box<dyn InnerOptimizer> {
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

    /// When fragments are exchanged, and which.
    pub(super) const fn overlap(&self) -> &overlap::Overlap {
        &self.overlap
    }
}
