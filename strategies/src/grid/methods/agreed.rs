//! What exchanges have in common whose members agree on every round's result.

use super::super::error::refused;
use super::super::{Strategy, StrategyError};
use crate::aggregate::AggregationKind;
use crate::outer::OuterKind;
use crate::plan::{Store, UnderWay};
use murmurate_protocol::{Contribution, StepBudget};

const SCHEDULE: &str = "architecture.schedule";

/// The largest relative squared error with which a partial sum may be encoded: that of bf16. Each
/// member that passes it on rounds it again, and no error feedback makes up for that.
const ERROR_MAX: f64 = 1.0 / 65536.0;

/// One-way latencies of an agreement: ready, propose, vote.
pub(super) const HOPS: u32 = 3;

/// Refuses what a mean of deltas or gradients at an anchor cannot have.
pub(super) fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    if strategy.exchange().agrees() && strategy.outer_kind().is_for_arrivals() {
        return refused(
            "outer.optimizer",
            "it needs a center at which peers arrive one by one",
            "use \"average\", or exchange = \"parameter-server\" with mode = \"asp\"",
        );
    }
    if strategy.contribution() == Contribution::Parameters {
        return refused(
            "architecture.contribution",
            "all-reduce agrees on deltas or gradients relative to the anchor",
            "use \"delta\" (with outer \"average\" that is the mean of the parameters)",
        );
    }
    schedule(strategy)?;
    rule(strategy)?;
    match strategy.contribution() {
        Contribution::Gradient => gradients(strategy),
        Contribution::Delta | Contribution::Parameters => Ok(()),
    }
}

/// Refuses what a schedule that passes partial sums on cannot do.
fn schedule(strategy: &Strategy) -> Result<(), StrategyError> {
    if !strategy.schedule().relays() {
        return Ok(());
    }
    if strategy.aggregation() != AggregationKind::WeightedMean {
        return refused(
            SCHEDULE,
            "a robust rule needs the contributions apart, and this schedule adds them up on their way",
            "use \"butterfly\", or rule = \"weighted-mean\"",
        );
    }
    let sums = strategy.codec().aggregate().properties();
    if sums.stochastic || sums.error > ERROR_MAX {
        return refused(
            SCHEDULE,
            "every member on the way would round partial sums of this codec coarsely, and no error feedback makes up for that",
            "use \"butterfly\", or codec = \"bf16\"",
        );
    }
    Ok(())
}

/// Refuses what a mean gradient cannot have.
fn gradients(strategy: &Strategy) -> Result<(), StrategyError> {
    if strategy.inner_kind().needs_shapes() {
        return refused(
            "inner.optimizer",
            "it needs whole tensors, and a mean gradient arrives in fragments without shapes",
            "use \"adam-w\", or contribution = \"delta\"",
        );
    }
    if strategy.budget() != StepBudget::Steps(1) {
        return refused(
            "synchronization.inner_steps",
            "a gradient is exchanged after every inner step",
            "set inner_steps = 1, or use contribution = \"delta\"",
        );
    }
    if *strategy.outer_kind() != OuterKind::Average {
        return refused(
            "outer.optimizer",
            "a mean gradient goes to the inner optimizer: there is no delta for an outer one",
            "use \"average\", or contribution = \"delta\"",
        );
    }
    Ok(())
}

/// Refuses what the aggregation rule cannot combine.
fn rule(strategy: &Strategy) -> Result<(), StrategyError> {
    let rule = strategy.aggregation();
    if rule == AggregationKind::SignMajority && strategy.contribution() != Contribution::Gradient {
        return refused(
            "aggregation.rule",
            "a majority of signs has no length, and nothing scales the step of the anchor",
            "use \"median\", or contribution = \"gradient\"",
        );
    }
    if rule.is_coordinate_wise() && !strategy.codec().properties().dense {
        return refused(
            "aggregation.rule",
            "coordinate by coordinate most of a sparse contribution is zero, and so is the middle",
            "use \"centered-clip\", or a dense codec such as \"int8\"",
        );
    }
    Ok(())
}

/// What an exchange keeps whose owners reduce shards, of the fragments that are exchanged at the same
/// time.
pub(super) fn stores(strategy: &Strategy, of: &UnderWay) -> Vec<Store> {
    // Where partial sums are passed on, one arrives and one leaves for every shard.
    let partial_sums = match strategy.schedule().relays() {
        true => 2.0 * of.aggregate,
        false => 0.0,
    };
    // This peer's contributions, those of others to its shards, and the aggregates.
    let slices = 2.0 * of.contribution + of.aggregate + partial_sums;
    vec![
        ("shard reductions", of.window),
        (
            "encoded slices",
            slices * of.window / of.contribution.min(1.0),
        ),
        ("history", of.history(of.aggregate)),
    ]
}
