//! What methods with a companion beside the parameters require of a strategy's other choices.

use super::error::refused;
use super::{Strategy, StrategyError};
use crate::correct::Companion;
use crate::outer::Nature;
use murmurate_protocol::{Contribution, StepBudget};

const KEY: &str = "inner.correction";

/// Refuses choices that do not work with a companion.
pub(super) fn check(strategy: &Strategy, plain_sgd: bool) -> Result<(), StrategyError> {
    if !plain_sgd {
        return refused(
            "inner.optimizer",
            "the correction assumes that a step is the learning rate times the corrected gradient",
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
            "the next control variate contains again what the codec left out of this one, and a residual would add it twice",
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
            "both ends of a link must know what was exchanged, or the first lost slice changes the sum of the trackers",
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
            "the next difference to a replica contains what the codec left out, so no residual is needed",
            "set it to false",
        );
    }
    Ok(())
}

/// Anchors of pairs: the requirements of the outer optimizer "no-lo-co".
pub(super) fn anchors(strategy: &Strategy) -> Result<(), StrategyError> {
    if strategy.outer_kind().spec().nature != Nature::Pairs {
        return Ok(());
    }
    let pairs = strategy
        .topology_kind()
        .is_some_and(|k| k.spec().random_pairs);
    let facts = strategy.exchange().facts();
    if !facts.has_mass || !facts.waits || !pairs {
        return refused(
            "outer.optimizer",
            "its momentum needs random pairs that exchange both parameters and anchors",
            "use exchange = \"gossip\" with topology = \"random-matching\", or optimizer \"nesterov\"",
        );
    }
    Ok(())
}
