//! The plan of a strategy: its fragments, the bounds of their bytes, and what the exchange costs.

use super::Strategy;
use crate::Layout;
use crate::aggregate::Nature;
use crate::compress::{Codec, CodecKind, Reduction};
use crate::executor::masks::BYTES as MASKED_BYTES;
use crate::grid::{StrategyError, methods};
use crate::inner::{Rate, RateError, fits};
use crate::plan::{Cluster, Store, Traffic, UnderWay};
use murmurate_protocol::{
    AgreementPlan, Contribution, Digest, FragmentPlan, Layers, OverlapPlan, Passes, Plan, RunId,
    Weighing,
};
use std::ops::Range;

impl Strategy {
    /// What members that lie can do, in a sentence.
    pub fn trust(&self) -> &'static str {
        let signed = self.signs();
        match (signed, self.aggregation.is_robust()) {
            (true, true) => {
                "fewer than a third of the members may lie: what they sign is checked, and the rule bounds what \
                 they contribute"
            }
            (true, false) => {
                "fewer than a third of the members may lie about rounds and votes, which are signed; what they \
                 contribute counts as any other's, and can spoil the model"
            }
            (false, true) => {
                "the rule bounds what a member that lies contributes; what it says of rounds is believed, and can \
                 stop them"
            }
            (false, false) => {
                "every member is believed: one that lies can spoil the model or stop the rounds. Among members \
                 that you do not trust take `guarded` (docs/threat-model.md)"
            }
        }
    }

    /// Members score contributions before they are merged.
    pub(super) fn scores(&self) -> bool {
        self.aggregation().scoring().is_some()
    }

    /// Cuts of the flat parameters, in order: equal ones, whose lengths differ by one at most,
    /// tensors, or merged tensors. Without a count an all-reduce cuts into pieces of 2^20 values at
    /// most, so that the slices in flight are small beside a large model, and into a multiple of the
    /// stagger. Those of a companion follow: as many of them, as long as these.
    pub fn fragments(&self, layout: &Layout) -> Vec<Range<usize>> {
        if self.scores() {
            // A contribution is scored as a whole.
            return std::iter::once(0..layout.len()).collect();
        }
        let bound = self.codec().bytes_bound();
        let bytes = |values: usize| bound.of(values as u64);
        let channels = self.channels();
        let facts = self.exchange().facts();
        self.overlap.cut(layout, facts, channels, &bytes)
    }

    /// The parameters, and their companion if there is one.
    fn channels(&self) -> usize {
        if self.companion().is_none() { 1 } else { 2 }
    }

    /// The plan that the peers of `run` must agree on. Zero rounds means until told to stop.
    ///
    /// # Errors
    /// When the model is smaller than its fragments are many, or beyond a limit; when the schedule of
    /// the learning rate does not fit the rounds, or a pattern names no tensor.
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
        self.learning_rate(rounds)?;
        self.check_patterns(layout)?;
        let codec = self.codec();
        let fragments = self.fragment_plans(&*codec, layout);
        let inner = match self.architecture.contribution {
            Contribution::Gradient => self.inner.optimizer.state_multiple(),
            Contribution::Delta | Contribution::Parameters => 0,
        };
        let runs = self.channels() + inner + self.halves_runs();
        let each = (4 * runs + self.outer_bytes()) as u64;
        let plan = Plan {
            run,
            layout: layout.hash(),
            recipe: Digest::of(self.recipe().as_bytes()),
            exchange: self.architecture.kind,
            schedule: self.architecture.schedule,
            contribution: self.architecture.contribution,
            budget: self.rounds.budget,
            synchronization: self.rounds.synchronization,
            rounds,
            fragments,
            overlap: self.overlap.plan,
            agreement: AgreementPlan {
                contributions: self.contributions(),
                weighing: match self.aggregation().nature() {
                    Nature::Steps => Weighing::Steps,
                    Nature::Private => Weighing::Equal,
                    _ => Weighing::Samples,
                },
                passes: match codec.properties().reduction {
                    Reduction::TwoPasses => Passes::Two,
                    _ => Passes::One,
                },
                parts: self.architecture.parts,
                scoring: self.aggregation().scoring(),
                ladder: self.ladder(),
                whole: self.aggregation().is_masked(),
                ..self.groups.plan()
            },
            deadlines: self.deadlines,
            state_bytes: (parameters as u64).saturating_mul(each) + self.kept_bytes(layout),
        };
        plan.validate()?;
        Ok(plan)
    }

    /// The lengths of the fragments, and the bounds of their bytes by the codec of each.
    fn fragment_plans(&self, codec: &dyn Codec, layout: &Layout) -> Vec<FragmentPlan> {
        let exchange = self.exchange();
        let aggregate = methods::of(exchange).costs.aggregate;
        let plan = |range: &Range<usize>, codec: &dyn Codec| FragmentPlan {
            len: range.len() as u64,
            contribution: match self.aggregation().is_masked() {
                true => MASKED_BYTES,
                false => codec.bytes_bound(),
            },
            aggregate: aggregate(exchange, codec),
        };
        let ranges = self.fragments(layout);
        match self.fragment_codecs(&ranges) {
            None => ranges.iter().map(|range| plan(range, codec)).collect(),
            Some(kinds) => {
                let pairs = ranges.iter().zip(&kinds);
                pairs
                    .map(|(range, kind)| plan(range, &*kind.build()))
                    .collect()
            }
        }
    }

    /// The codec of each of these fragments, where each has a density of its own. It follows from the recipe
    /// and the fragments, which are in the plan's hash.
    pub fn fragment_codecs(&self, fragments: &[Range<usize>]) -> Option<Vec<CodecKind>> {
        self.overlap.codecs(self.codec_kind(), fragments)
    }

    /// The least number of contributions that a group combines; zero where any number will do.
    fn contributions(&self) -> u16 {
        match self.aggregation().contributions() {
            0 | 1 => 0,
            least => u16::try_from(least).unwrap_or(u16::MAX),
        }
    }

    /// What one round of its exchange takes.
    pub(crate) fn traffic(&self, plan: &Plan, cluster: &Cluster) -> Traffic {
        (methods::of(self.exchange()).costs.traffic)(self, plan, cluster)
    }

    /// What its exchange keeps in memory beside what the method keeps.
    pub(crate) fn under_way(&self, of: &UnderWay) -> Vec<Store> {
        (methods::of(self.exchange()).costs.stores)(self, of)
    }

    /// The factor on the inner learning rate by time in rounds, in a run of this number of rounds;
    /// zero rounds have no end.
    ///
    /// # Errors
    /// When the schedule has no end, or is shorter than its parts.
    pub fn learning_rate(&self, rounds: u64) -> Result<Rate, StrategyError> {
        self.inner.rate.of_run(rounds).map_err(|error| match error {
            RateError::NoEnd => StrategyError::Missing {
                key: "inner.schedule_rounds".to_owned(),
                needed: "give the round at which the schedule ends, or the number of `rounds` of the run",
            },
            RateError::TooLong => StrategyError::Refused {
                key: "inner.warmup_rounds",
                reason: "warm-up and decay take longer than the schedule",
                remedy: "shorten them, or raise `inner.schedule_rounds` or the run's `rounds`",
            },
        })
    }

    /// Refuses a pattern that names no tensor of a layout.
    fn check_patterns(&self, layout: &Layout) -> Result<(), StrategyError> {
        let names = || layout.tensors().iter().map(|tensor| tensor.name.as_str());
        let idle = |pattern: &&String| !names().any(|name| fits(pattern, name));
        // Where tensors stay, the trainer has looked at the patterns, which may name these.
        let looks = self.architecture.local.is_empty();
        match self.inner.no_decay.iter().filter(|_| looks).find(idle) {
            None => Ok(()),
            Some(pattern) => Err(StrategyError::NoTensor {
                pattern: pattern.clone(),
                example: names().next_back().unwrap_or("no tensor").to_owned(),
            }),
        }
    }

    /// Set where a trainer has nothing to do between the cut and the round's end, and its parameters are
    /// only read for contributions. Where they lie in this process's memory, the peer then keeps no copy
    /// of the trained parameters.
    pub fn leaves_trainer_free(&self) -> bool {
        let OverlapPlan {
            stagger,
            late_steps,
            layers,
        } = self.overlap.plan;
        let waits = stagger <= 1 && late_steps == 0 && layers == Layers::Together;
        let deltas = self.contribution() == Contribution::Delta;
        let alone = self.companion().is_none() && self.correction_kind().is_none();
        let encoded = (methods::of(self.exchange()).mixing)(self).only_encodes();
        // Where contributions are scored, the trainer measures them before the round ends.
        let measures = self.scores();
        // A private delta is another one than that of the trainer's parameters.
        let private = self.aggregation().privacy().is_some();
        waits && deltas && alone && encoded && !measures && !private
    }
}
