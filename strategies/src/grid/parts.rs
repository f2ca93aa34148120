//! From a checked strategy to the parts of its Executor.

use super::{Strategy, methods};
use crate::compress::Switched;
use crate::executor::{Blend, ByFragment, Hidden, Late, Overlap, Parts, Rules};
use murmurate_protocol::{Contribution, Plan};

impl Parts {
    /// What a strategy's Executor is made of, for `len` parameters.
    ///
    /// # Panics
    /// If the plan is not this strategy's.
    pub fn new(strategy: &Strategy, plan: &Plan, len: usize) -> Self {
        let gradients = strategy.contribution() == Contribution::Gradient;
        let replicas = strategy.exchange().facts().has_replicas;
        let rate = strategy.learning_rate(plan.rounds);
        let rate = rate.expect("`Strategy::plan` refuses rounds that the schedule does not fit");
        Self {
            plan: plan.hash(),
            contribution: strategy.contribution(),
            companion: strategy.companion(),
            codecs: codecs(strategy, plan),
            fragments: plan.ranges(),
            // Between neighbours what is left out is kept for each neighbour.
            error_feedback: strategy.error_feedback() && !replicas,
            mixing: (methods::of(strategy.exchange()).mixing)(strategy),
            overlap: Overlap {
                layers: plan.overlap.layers,
                trains_ahead: plan.overlap.stagger > 1 || plan.overlap.late_steps > 0,
                late: Late::new(strategy.blend(), plan),
                eager: (strategy.blend() == Blend::Eager).then(|| strategy.outer_kind().build(len)),
            },
            outer: strategy.outer(len),
            inner: gradients.then(|| strategy.inner(len)),
            correction: strategy.correction(len),
            ema: None,
            hidden: Hidden {
                noised: strategy.aggregation().privacy(),
                masked: strategy.aggregation().is_masked(),
                secrets: None,
            },
            rules: Rules::new(
                rate,
                plan.budget,
                plan.synchronization.pace,
                strategy.no_decay().to_vec(),
            ),
            leaves_trainer_free: strategy.leaves_trainer_free(),
        }
    }
}

fn codecs(strategy: &Strategy, plan: &Plan) -> ByFragment {
    match strategy.fragment_codecs(&plan.ranges()) {
        Some(kinds) => ByFragment::each(&kinds),
        None if strategy.exchange().agrees() => {
            Switched::of(strategy.codec_kind(), strategy.choices()).into()
        }
        None => strategy.codec().into(),
    }
}
