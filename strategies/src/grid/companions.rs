//! What corrections with a companion beside the parameters need of the rest of the grid.

use super::error::refused;
use super::{Strategy, StrategyError};
use crate::correct::Companion;
use crate::outer::OuterKind;
use murmurate_protocol::{Contribution, StepBudget};

const KEY: &str = "inner.correction";

/// Refuses what a companion cannot travel with.
pub(super) fn check(strategy: &Strategy, plain_sgd: bool) -> Result<(), StrategyError> {
    if !plain_sgd {
        return refused(
            "inner.optimizer",
            "the correction counts on moves by the learning rate times the corrected gradient",
            "use inner optimizer \"sgd\" with momentum = 0, or leave `inner.correction` out",
        );
    }
    match strategy.companion() {
        Companion::None | Companion::Anchors { .. } => Ok(()),
        Companion::Mean => mean(strategy),
        Companion::Flows => flows(strategy),
    }
}

/// Control variates with an agreed mean.
fn mean(strategy: &Strategy) -> Result<(), StrategyError> {
    if !strategy.exchange().agrees() || strategy.contribution() != Contribution::Delta {
        return refused(
            KEY,
            "the mean of the peers' control variates must be agreed on with the mean of their deltas",
            "use contribution = \"delta\" with exchange = \"all-reduce\", or leave the key out",
        );
    }
    let codec = strategy.codec().properties();
    if strategy.error_feedback() || codec.needs_feedback || codec.planes > 0 {
        return refused(
            "compression.codec",
            "what a codec leaves out of a control variate is in the next one again, and a residual would bring it twice",
            "use \"f32\", \"bf16\" or \"int8\" without error feedback, or leave `inner.correction` out",
        );
    }
    Ok(())
}

/// Trackers, which flow along links.
fn flows(strategy: &Strategy) -> Result<(), StrategyError> {
    if !strategy.exchange().facts().has_replicas {
        return refused(
            KEY,
            "what flows along a link must be known at both its ends, or the trackers' sum is lost with the first slice",
            "use exchange = \"replicas\"",
        );
    }
    if strategy.budget() != StepBudget::Steps(1) {
        return refused(
            "synchronization.inner_steps",
            "trackers are mixed after every inner step",
            "set inner_steps = 1, or leave `inner.correction` out",
        );
    }
    if strategy.error_feedback() {
        return refused(
            "compression.error_feedback",
            "replicas of trackers take in what a codec left out by themselves",
            "set it to false",
        );
    }
    Ok(())
}

/// Anchors of pairs: what the outer optimizer "no-lo-co" needs.
pub(super) fn anchors(strategy: &Strategy) -> Result<(), StrategyError> {
    if !matches!(strategy.outer_kind(), OuterKind::NoLoCo { .. }) {
        return Ok(());
    }
    let pairs = strategy
        .topology_kind()
        .is_some_and(|k| k.spec().random_pairs);
    let facts = strategy.exchange().facts();
    if !facts.has_mass || !facts.waits || !pairs {
        return refused(
            "outer.optimizer",
            "its momentum is of pairs, drawn at random, that hand over both parameters and anchor",
            "use exchange = \"gossip\" with topology = \"random-matching\", or optimizer \"nesterov\"",
        );
    }
    Ok(())
}
