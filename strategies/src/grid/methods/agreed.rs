//! Common parts of exchanges whose members agree on the result of every round.

use super::super::error::{no_liars, refuse};
use super::super::{Strategy, StrategyError};
use crate::aggregate::Nature;
use crate::plan::{Store, UnderWay};
use murmurate_protocol::{Contribution, Layers, StepBudget};

const SCHEDULE: &str = "architecture.schedule";

/// The largest relative squared error with which a partial sum may be encoded: that of bf16. Each
/// member that passes it on rounds it again, and no error feedback corrects that.
const ERROR_MAX: f64 = 1.0 / 65536.0;

/// One-way latencies of an agreement: ready, propose, vote.
pub(super) const HOPS: u32 = 3;

/// Refuses choices that do not work with a mean of deltas or gradients at an anchor.
pub(super) fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    refuse(
        strategy.exchange().agrees() && strategy.outer_kind().is_for_arrivals(),
        "outer.optimizer",
        "it needs a center to which peers contribute one by one",
        "use \"average\", or exchange = \"parameter-server\" with mode = \"asp\"",
    )?;
    refuse(
        strategy.contribution() == Contribution::Parameters,
        "architecture.contribution",
        "all-reduce agrees on deltas or gradients relative to the anchor",
        "use \"delta\" (with outer \"average\" that is the mean of the parameters)",
    )?;
    schedule(strategy)?;
    rule(strategy)?;
    match strategy.contribution() {
        Contribution::Gradient => gradients(strategy),
        Contribution::Delta | Contribution::Parameters => Ok(()),
    }
}

/// Refuses choices that do not work with a schedule that passes partial sums on.
fn schedule(strategy: &Strategy) -> Result<(), StrategyError> {
    if !strategy.schedule().relays() {
        return Ok(());
    }
    refuse(
        !strategy.aggregation().is_mean() && !strategy.aggregation().is_masked(),
        SCHEDULE,
        "a robust rule needs separate contributions, and this schedule sums them on their way",
        "use \"butterfly\", or rule = \"weighted-mean\"",
    )?;
    let sums = strategy.codec().aggregate().properties();
    refuse(
        sums.stochastic || sums.error > ERROR_MAX,
        SCHEDULE,
        "every member on the way would round partial sums coarsely with this codec, and no error feedback corrects that",
        "use \"butterfly\", or codec = \"bf16\"",
    )
}

/// Refuses choices that do not work with a mean gradient.
fn gradients(strategy: &Strategy) -> Result<(), StrategyError> {
    refuse(
        strategy.inner_kind().needs_shapes(),
        "inner.optimizer",
        "it needs whole tensors, and a mean gradient arrives in fragments without shapes",
        "use \"adam-w\", or contribution = \"delta\"",
    )?;
    refuse(
        strategy.budget() != StepBudget::Steps(1),
        "synchronization.inner_steps",
        "a gradient is exchanged after every inner step",
        "set inner_steps = 1, or use contribution = \"delta\"",
    )?;
    refuse(
        !strategy.outer_kind().is_average(),
        "outer.optimizer",
        "a mean gradient goes to the inner optimizer: there is no delta for an outer one",
        "use \"average\", or contribution = \"delta\"",
    )
}

/// Refuses contributions that the aggregation rule cannot combine.
fn rule(strategy: &Strategy) -> Result<(), StrategyError> {
    let rule = strategy.aggregation();
    refuse(
        rule.nature() == Nature::Partners,
        "aggregation.rule",
        "it goes by the distance of partners from a peer's own parameters, and members of a group send deltas",
        "use \"nearest-trimmed-mean\", or exchange = \"pull\"",
    )?;
    refuse(
        rule.nature() == Nature::Steps && strategy.contribution() != Contribution::Delta,
        "aggregation.rule",
        "it divides deltas by their inner steps, and a gradient is that of one",
        "use \"weighted-mean\", or contribution = \"delta\"",
    )?;
    refuse(
        rule.nature() == Nature::Steps && strategy.signs(),
        "aggregation.rule",
        "it is a sum that one liar can move, by values or by its count of inner steps",
        concat!("use \"centered-clip\", or ", no_liars!()),
    )?;
    refuse(
        rule.nature() == Nature::Steps && strategy.overlap_plan().stagger > 1,
        "aggregation.rule",
        "it divides deltas by the inner steps of one round, and staggered fragments hold those of several",
        "use \"weighted-mean\", or stagger = 1",
    )?;
    if rule.scoring().is_some() {
        scored(strategy)?;
    }
    refuse(
        rule.nature() == Nature::Signs && strategy.contribution() != Contribution::Gradient,
        "aggregation.rule",
        "a majority of signs has no length, so the anchor's step would have no scale",
        "use \"median\", or contribution = \"gradient\"",
    )?;
    refuse(
        rule.is_coordinate_wise() && !strategy.codec().properties().dense,
        "aggregation.rule",
        "most values of a sparse contribution are zero, and so is their median in each coordinate",
        "use \"centered-clip\", or a dense codec such as \"int8\"",
    )
}

/// Refuses choices with which members cannot score contributions before they are merged.
fn scored(strategy: &Strategy) -> Result<(), StrategyError> {
    const RULE: &str = "aggregation.rule";
    let overlap = strategy.overlap_plan();
    refuse(
        !strategy.exchange().facts().shows_contributions,
        RULE,
        "members evaluate every contribution by itself, and in this exchange none of them gets all",
        "use exchange = \"gathered\", or rule = \"centered-clip\"",
    )?;
    refuse(
        strategy.contribution() != Contribution::Delta,
        RULE,
        "a contribution is evaluated as a move of the anchor, and a gradient is none before the optimizer",
        "use contribution = \"delta\", or rule = \"centered-clip\"",
    )?;
    refuse(
        strategy.signs(),
        RULE,
        "what members sign is not about scores yet",
        no_liars!("use rule = \"centered-clip\""),
    )?;
    refuse(
        overlap.late_steps > 0 || overlap.stagger > 1 || overlap.layers != Layers::Together,
        RULE,
        "the trainer evaluates contributions between two rounds, each as a whole",
        "leave out overlap.late_steps, overlap.stagger and overlap.layers, or use rule = \"centered-clip\"",
    )?;
    refuse(
        strategy.overlap.is_cut(),
        RULE,
        "a contribution is evaluated as a whole",
        "leave out overlap.fragments and overlap.cut, or use rule = \"centered-clip\"",
    )?;
    refuse(
        !strategy.companion().is_none(),
        RULE,
        "a companion travels beside the parameters, and no loss says whether it is true",
        "leave inner.correction out, or use rule = \"centered-clip\"",
    )
}

/// Stores of an exchange whose owners reduce shards, for the fragments that are exchanged at the same time.
pub(super) fn stores(strategy: &Strategy, of: &UnderWay) -> Vec<Store> {
    // Where partial sums are passed on, one arrives and one leaves for every shard.
    let partial_sums = if strategy.schedule().relays() {
        2.0 * of.aggregate
    } else {
        0.0
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
