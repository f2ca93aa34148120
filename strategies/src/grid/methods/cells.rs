//! Exchange `cells`: the mean of the parameters over a cell of the swarm, other cells in each round.

use super::super::error::refuse;
use super::super::{Strategy, StrategyError};
use super::agreed;
use super::keys::{CELL, DEALING, GROUPING};
use super::neighbours::MIXES;
use super::spec::{Chosen, Costs, ExchangeSpec};
use crate::executor::Mixing;
use crate::plan::{Cluster, Traffic};
use murmurate_protocol::{Contribution, Dealing, ExchangeKind, Plan};

pub(super) const SPEC: ExchangeSpec = ExchangeSpec {
    name: "cells",
    summary: "the mean of the parameters over a cell of the swarm, dealt along another axis in each round, or at random",
    equation: "x_i' = C(sum_j C(x_j) / g), over the g members j of the cell of i that have trained in time",
    source: "Ryabinin et al., NeurIPS 2021 (Moshpit SGD); Luo et al., ASPLOS 2020 (Prague); with cells dealt from a roll",
    keys: &[GROUPING, CELL, DEALING],
    label: |kind| matches!(kind, ExchangeKind::Cells).then_some("cells"),
    read: |_| Ok(Chosen::plain(ExchangeKind::Cells)),
    check,
    mixing: |_| Mixing::Means,
    costs: Costs {
        aggregate: |_, codec| codec.aggregate().bytes_bound(),
        traffic,
        stores: agreed::stores,
    },
    ..MIXES
};

/// Refuses choices that do not work with a mean of parameters that no other cell knows.
fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    refuse(
        !strategy.aggregation().is_mean(),
        "aggregation.rule",
        "means over cells make the mean over all, and robust rules do not",
        "use \"weighted-mean\", or agreement.grouping = \"flat\" with exchange = \"all-reduce\"",
    )?;
    refuse(
        strategy.contribution() != Contribution::Parameters,
        "architecture.contribution",
        "cells have no common anchor, and deltas or gradients without one diverge",
        "use \"parameters\", or agreement.grouping = \"grid\" with exchange = \"all-reduce\"",
    )?;
    refuse(
        !strategy.outer_kind().is_average(),
        "outer.optimizer",
        "cells agree on no common model that an outer optimizer could move",
        "use \"average\", or agreement.grouping = \"grid\" with exchange = \"all-reduce\"",
    )?;
    refuse(
        !strategy.codec().properties().dense,
        "compression.codec",
        "the parameters themselves would lose too much with a coarse or sparse codec",
        "use \"int8\", or agreement.grouping = \"grid\" with exchange = \"all-reduce\"",
    )?;
    refuse(
        strategy.error_feedback(),
        "compression.error_feedback",
        "the next parameters do not contain what a codec left out of these, so a residual is wrong",
        "set it to false, or use agreement.grouping = \"grid\" with exchange = \"all-reduce\"",
    )
}

/// All-reduce among the g members of a cell by the butterfly: (g - 1) / g (C + A) bytes each way,
/// ready, form and vote. The peers of the largest cells count, and the round that has them.
fn traffic(_: &Strategy, plan: &Plan, cluster: &Cluster) -> Traffic {
    let dealing = Dealing::new(plan.agreement.grouping, plan.run, cluster.peers);
    let members = dealing.map_or(1, |dealing| dealing.largest()) as f64;
    let (contribution, aggregate) = Traffic::encoded(plan);
    let share = (members - 1.0) / members;
    let bytes = share * (contribution + aggregate);
    let slower = cluster.link.up.min(cluster.link.down);
    let latency = cluster.link.latency * (2 + agreed::HOPS);
    Traffic {
        up: bytes,
        down: bytes,
        seconds: bytes / slower + latency.as_secs_f64(),
        // Encode all, sum up one shard of every member, apply all.
        values: 3.0 * Traffic::exchanged(plan, cluster),
        held: contribution + aggregate + share * contribution,
    }
}
