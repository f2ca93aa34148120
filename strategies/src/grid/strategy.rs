//! A strategy: a point of the grid that has passed all checks.

mod common;
mod rounds;
mod written;

use super::tables::{self, Tables};
use super::{DEFAULT_PRESET, StrategyError, preset, refuse, validate};
use super::{mixing, optimizers, overlap, schedule, server, synchronization};
use crate::Layout;
use crate::aggregate::AggregationKind;
use crate::compress::{Codec, CodecKind, F32};
use crate::correct::{Companion, Correction, CorrectionKind};
use crate::executor::CenterRule;
use crate::inner::{InnerKind, InnerOptimizer};
use crate::outer::{OuterKind, OuterOptimizer};
use crate::topology::TopologyKind;
pub(super) use common::{HELD, HELD_MEMBERS};
use core::str::FromStr;
use murmurate_protocol::{
    Contribution, DeadlinePlan, Digest, ExchangeKind, FragmentPlan, Plan, Round, RunId, Schedule,
    StepBudget, Synchronization, Topology,
};
use std::collections::BTreeSet;
use std::ops::Range;

/// Bytes that a state transfer takes beside its runs of f32: counts, names and lengths.
pub const STATE_HEADER_BYTES: u64 = 4096;

/// A point in synchronization x architecture x compression x overlap (+ outer optimizer,
/// + aggregation rule, + inner optimizer, + deadlines) that can work.
///
/// The only way to one is to parse a configuration: what exists has been checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    name: String,
    budget: StepBudget,
    synchronization: Synchronization,
    exchange: ExchangeKind,
    arrivals: CenterRule,
    schedule: Schedule,
    contribution: Contribution,
    topology: Option<TopologyKind>,
    rate: Option<f64>,
    codec: CodecKind,
    error_feedback: bool,
    overlap: overlap::Overlap,
    outer: OuterKind,
    aggregation: AggregationKind,
    inner: InnerKind,
    correction: CorrectionKind,
    deadlines: DeadlinePlan,
}

impl Strategy {
    /// Reads a configuration. It is laid over a preset, key by key: the one given, else the one its
    /// key `preset` names, else [`DEFAULT_PRESET`]. Where it chooses another method than the preset
    /// (another codec, say), the preset's parameters of the old one are left out.
    ///
    /// # Errors
    /// The first thing wrong with it.
    ///
    /// ```
    /// use murmurate_strategies::grid::Strategy;
    /// let text = "[compression]\ncodec = \"int8\"";
    /// let strategy = Strategy::parse(text, Some("diloco")).unwrap();
    /// assert_eq!(strategy.codec_kind().name(), "int8");
    /// let error = Strategy::parse("[compression]\ncodec = \"bf15\"", None).unwrap_err();
    /// assert!(error.to_string().contains("did you mean `bf16`?"));
    /// ```
    pub fn parse(toml_text: &str, preset: Option<&str>) -> Result<Self, StrategyError> {
        Self::from_table(tables::parse(toml_text)?, preset)
    }

    /// As [`Strategy::parse`], of a table that is part of a larger configuration.
    ///
    /// # Errors
    /// The first thing wrong with it.
    pub fn from_table(
        mut config: toml::Table,
        preset_name: Option<&str>,
    ) -> Result<Self, StrategyError> {
        let named = match config.remove("preset") {
            None => None,
            Some(toml::Value::String(name)) => Some(name),
            Some(other) => {
                let message = format!("found {}, needs the name of a preset", other.type_str());
                return Err(StrategyError::Type {
                    key: "preset".to_owned(),
                    message,
                });
            }
        };
        let name = preset_name
            .or(named.as_deref())
            .unwrap_or(DEFAULT_PRESET)
            .to_owned();
        let mut whole = tables::parse(preset(&name)?)?;
        tables::check_keys(&config)?;
        tables::lay_over(&mut whole, config);
        Self::from_tables(name, &tables::read(&whole)?)
    }

    /// A preset as it is.
    ///
    /// # Errors
    /// When there is no such preset.
    pub fn preset(name: &str) -> Result<Self, StrategyError> {
        Self::parse("", Some(name))
    }

    fn from_tables(name: String, tables: &Tables) -> Result<Self, StrategyError> {
        let validate::Exchanges {
            exchange,
            contribution,
            topology,
            rate,
        } = validate::architecture(&tables.architecture)?;
        let (exchange, arrivals) = server::exchange(exchange, tables)?;
        let (codec, error_feedback) = validate::compression(&tables.compression, exchange)?;
        let deadlines = tables.deadlines.clone().unwrap_or_default();
        let strategy = Self {
            name,
            budget: validate::budget(&tables.synchronization)?,
            synchronization: synchronization::read(exchange, &tables.synchronization)?,
            exchange,
            arrivals,
            schedule: schedule::read(exchange, &tables.architecture)?,
            contribution,
            topology,
            rate,
            codec,
            error_feedback,
            overlap: overlap::read(&tables.overlap)?,
            outer: optimizers::outer(&tables.outer)?,
            aggregation: mixing::aggregation(&tables.aggregation)?,
            inner: optimizers::inner(&tables.inner)?,
            correction: optimizers::correction(&tables.inner)?,
            deadlines: validate::deadlines(&deadlines)?,
        };
        refuse::check(&strategy)?;
        Ok(strategy)
    }

    /// The preset that it started from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who exchanges with whom.
    pub const fn exchange(&self) -> ExchangeKind {
        self.exchange
    }

    /// Which way an all-reduce sums up.
    pub const fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// What a contribution is.
    pub const fn contribution(&self) -> Contribution {
        self.contribution
    }

    /// Whether what the codec leaves out goes into the next round.
    pub const fn error_feedback(&self) -> bool {
        self.error_feedback
    }

    /// The codec of contributions, as data.
    pub const fn codec_kind(&self) -> &CodecKind {
        &self.codec
    }

    /// The codec of contributions.
    pub fn codec(&self) -> Box<dyn Codec> {
        self.codec.build()
    }

    /// How far neighbours with replicas of each other move towards each other, and whether by exact
    /// diffusion; only in exchanges of differences to replicas.
    pub fn replicas(&self) -> Option<(f32, bool)> {
        let corrects = self.correction == CorrectionKind::ExactDiffusion;
        self.rate.map(|rate| (rate as f32, corrects))
    }

    /// The topology, as data; only exchanges between neighbours have one.
    pub const fn topology_kind(&self) -> Option<TopologyKind> {
        self.topology
    }

    /// The topology; all peers of a run must give the same seed.
    pub fn topology(&self, seed: u64) -> Option<Box<dyn Topology>> {
        self.topology.map(|kind| kind.build(seed))
    }

    /// The outer optimizer, as data.
    pub const fn outer_kind(&self) -> &OuterKind {
        &self.outer
    }

    /// The outer optimizer for `len` parameters.
    pub fn outer(&self, len: usize) -> Box<dyn OuterOptimizer> {
        self.outer.build(len)
    }

    /// How a center takes arrivals in.
    pub const fn center(&self) -> CenterRule {
        CenterRule {
            elastic: match self.outer {
                OuterKind::Easgd { alpha } => Some(alpha),
                _ => None,
            },
            ..self.arrivals
        }
    }

    /// The aggregation rule.
    pub const fn aggregation(&self) -> AggregationKind {
        self.aggregation
    }

    /// The inner optimizer, as data.
    pub const fn inner_kind(&self) -> &InnerKind {
        &self.inner
    }

    /// The inner optimizer for `len` parameters.
    pub fn inner(&self, len: usize) -> Box<dyn InnerOptimizer> {
        self.inner.build(len)
    }

    /// The correction of inner steps' gradients, as data.
    pub const fn correction_kind(&self) -> &CorrectionKind {
        &self.correction
    }

    /// The correction of inner steps' gradients, for `len` parameters.
    pub fn correction(&self, len: usize) -> Option<Box<dyn Correction>> {
        self.correction.build(len, self.inner.lr())
    }

    /// What travels beside the parameters.
    pub const fn companion(&self) -> Companion {
        match self.correction.companion() {
            Companion::None => self.outer.companion(),
            companion => companion,
        }
    }

    /// What the method keeps between rounds, store by store, in multiples of 4 bytes x parameters;
    /// what an exchange has under way comes on top.
    pub fn stores(&self) -> Vec<(&'static str, usize)> {
        let gradients = self.contribution == Contribution::Gradient;
        let inner = self.inner.state_multiple();
        let mut stores = vec![
            ("parameters", 1),
            ("gradients", 1),
            // Beside the trainer's own, the one that takes the mean gradient.
            ("inner optimizer", if gradients { 2 * inner } else { inner }),
            ("anchor", 1),
            ("local", 1),
            // Its part of anchor and local buffer.
            ("companion", 2 * self.companion().len(1)),
            ("outer optimizer", self.outer.state_multiple()),
            ("eager updates", self.eager_runs()),
            (
                "residual",
                usize::from(self.error_feedback && self.rate.is_none()),
            ),
            ("replicas of neighbours", self.replica_runs()),
            ("codec", self.codec.build().properties().planes),
            (HELD, self.held_runs()),
            ("correction", self.correction.state_multiple()),
        ];
        stores.retain(|(_, multiple)| *multiple > 0);
        stores
    }

    /// Runs of replicas among 16 peers: two for each neighbour that one meets, three with exact diffusion
    /// or error feedback, and three of a companion that flows.
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
        met * (2 + usize::from(corrects || self.error_feedback) + flows)
    }

    /// Bounds of the deadlines.
    pub const fn deadlines(&self) -> DeadlinePlan {
        self.deadlines
    }

    /// When fragments are exchanged, and which.
    pub(super) const fn overlap(&self) -> &overlap::Overlap {
        &self.overlap
    }

    /// Cuts of the flat parameters, in order: equal ones, whose lengths differ by one at most, tensors, or
    /// merged tensors. Without a count an all-reduce cuts into pieces of 2^20 values at most, so that what is
    /// in flight is small beside a large model, and into a multiple of the stagger. Those of a companion follow:
    /// as many of them, as long as these.
    pub fn fragments(&self, layout: &Layout) -> Vec<Range<usize>> {
        let bound = self.codec().bytes_bound();
        let bytes = |values: usize| bound.of(values as u64);
        let channels = self.channels();
        self.overlap.cut(layout, self.exchange, channels, &bytes)
    }

    /// The parameters, and their companion if there is one.
    const fn channels(&self) -> usize {
        if self.companion().is_none() { 1 } else { 2 }
    }

    /// The plan that the peers of `run` must agree on. Zero rounds means until told to stop.
    ///
    /// # Errors
    /// When the model is smaller than its fragments are many, or beyond a limit.
    pub fn plan(&self, run: RunId, layout: &Layout, rounds: u64) -> Result<Plan, StrategyError> {
        let parameters = layout.len();
        let least = usize::from(self.overlap.plan.stagger);
        let fragments = self.overlap.fragments().unwrap_or(least);
        if parameters < fragments {
            return Err(StrategyError::Fragments {
                fragments,
                parameters,
            });
        }
        let codec = self.codec();
        let contribution = codec.bytes_bound();
        let aggregate = match self.exchange {
            ExchangeKind::Gathered => contribution,
            // The center itself travels; a session between neighbours begins with whole parameters.
            ExchangeKind::Center(_) | ExchangeKind::Replicas => F32.bytes_bound(),
            _ => codec.aggregate().bytes_bound(),
        };
        let fragments = self
            .fragments(layout)
            .into_iter()
            .map(|range| FragmentPlan {
                len: range.len() as u64,
                contribution,
                aggregate,
            });
        let inner = match self.contribution {
            Contribution::Gradient => self.inner.state_multiple(),
            Contribution::Delta | Contribution::Parameters => 0,
        };
        let runs = (self.channels() + self.outer.state_multiple() + inner) as u64;
        let plan = Plan {
            run,
            layout: layout.hash(),
            recipe: Digest::of(self.recipe().as_bytes()),
            exchange: self.exchange,
            schedule: self.schedule,
            contribution: self.contribution,
            budget: self.budget,
            synchronization: self.synchronization,
            rounds,
            fragments: fragments.collect(),
            overlap: self.overlap.plan,
            deadlines: self.deadlines,
            state_bytes: (4 * parameters as u64).saturating_mul(runs) + self.kept_bytes(layout),
        };
        plan.validate()?;
        Ok(plan)
    }
}

impl FromStr for Strategy {
    type Err = StrategyError;

    fn from_str(text: &str) -> Result<Self, StrategyError> {
        Self::parse(text, None)
    }
}
