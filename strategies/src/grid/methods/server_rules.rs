//! What a parameter server requires from the rest of a strategy, and the cost of its rounds.

use super::super::error::refuse;
use super::super::{Strategy, StrategyError};
use super::agreed;
use crate::compress::Reduction;
use crate::plan::{Cluster, Store, Traffic, UnderWay};
use core::time::Duration;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use murmurate_protocol::{Contribution, Plan};

/// Refuses choices that do not work with a center that applies contributions one by one.
pub(super) fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    let elastic = strategy.outer_kind().elastic().is_some();
    let parameters = strategy.contribution() == Contribution::Parameters;
    refuse(
        elastic != parameters,
        "architecture.contribution",
        "only elastic averaging moves the parameters themselves towards a center",
        "use \"parameters\" with outer \"easgd\", or \"delta\" with another",
    )?;
    refuse(
        !strategy.aggregation().is_mean(),
        "aggregation.rule",
        "a robust rule compares all contributions of a round, and here they arrive one by one",
        "use \"weighted-mean\", or mode = \"bsp\"",
    )?;
    refuse(
        strategy.center().compensation > 0.0 && strategy.contribution() != Contribution::Gradient,
        "synchronization.compensation",
        "it corrects a gradient by its square, and a delta is a sum of many gradients times a rate",
        "set it to 0, or use contribution = \"gradient\" with inner_steps = 1",
    )?;
    if elastic {
        let codec = strategy.codec().properties();
        refuse(
            !codec.dense || strategy.error_feedback(),
            "compression.codec",
            "the parameters themselves would lose too much with a coarse or sparse codec; only differences work with it",
            "use \"int8\" without error feedback, or contribution = \"delta\"",
        )?;
        return Ok(());
    }
    let counted = strategy.inner_kind().spec().counts_steps;
    refuse(
        strategy.contribution() == Contribution::Gradient && counted,
        "inner.optimizer",
        "it counts inner steps of the whole model, and shards of a center change one by one",
        "use \"sgd\", or contribution = \"delta\"",
    )?;
    agreed::check(strategy)
}

/// Refuses parts that do not work with the owners, the codec or the agreement.
pub(super) fn in_parts(strategy: &Strategy) -> Result<(), StrategyError> {
    const KEY: &str = "architecture.parts";
    let parts = strategy.architecture.parts;
    refuse(
        parts > 0 && strategy.signs(),
        KEY,
        "members that sign are in a group by their own words, and no proposer says how fast their lines are",
        "set it to 0, or agreement.liars to 0",
    )?;
    refuse(
        parts > 0 && strategy.codec().properties().reduction == Reduction::Squeezed,
        KEY,
        "the owner of a shard keeps the residual of its reductions, and parts move when a member comes or goes",
        "set it to 0, or use codec \"top-k\" with error feedback",
    )
}

/// The traffic of one round, in step or one by one.
pub(super) fn traffic(strategy: &Strategy, plan: &Plan, cluster: &Cluster) -> Traffic {
    let owners = plan.exchange.owners().unwrap_or(1);
    if strategy.exchange().agrees() {
        in_step(plan, cluster, owners)
    } else {
        one_by_one(plan, cluster, owners)
    }
}

/// Stores of a center: its shards, and as encoded slices this peer's contribution, one that
/// arrives, a copy of the center that is sent, and one that was pulled.
pub(super) fn center_stores(of: &UnderWay) -> Vec<Store> {
    vec![
        ("own shards of the center", 1.0),
        ("encoded slices", 2.0 * of.contribution + 2.0 * of.aggregate),
    ]
}

/// A parameter server of k owners among g members in step. The owners' links limit the rate: g - 1
/// others send them contributions to 1 / k of the model and receive as many reductions. T = (g-1)/k
/// (C + A) / min(up, down) + 5 latencies. Bytes are those of an owner; other members send C and
/// receive A. Lines are equal here, and then owners that share parts have as much as with shards, to a part.
fn in_step(plan: &Plan, cluster: &Cluster, owners: u16) -> Traffic {
    let members = cluster.peers.min(GROUP_MEMBERS_MAX) as f64;
    let owners = f64::from(owners).min(members);
    let (contribution, aggregate) = Traffic::encoded(plan);
    let (inward, outward) = (
        (members - 1.0) / owners * contribution,
        (members - 1.0) / owners * aggregate,
    );
    // Its own part it neither sends nor gets.
    let rest = 1.0 - 1.0 / owners;
    let slower = cluster.link.up.min(cluster.link.down);
    let latency: Duration = cluster.link.latency * (agreed::HOPS + 2);
    let values = Traffic::exchanged(plan, cluster);
    Traffic {
        up: outward + rest * contribution,
        down: inward + rest * aggregate,
        seconds: (inward + outward) / slower + latency.as_secs_f64(),
        // Encode all, sum up a part of every member, apply all.
        values: (2.0 + members / owners) * values,
        held: contribution + aggregate + inward,
    }
}

/// A parameter server of k owners among n peers that do not wait: in each round a worker sends its
/// contribution and receives the center, over owners' links that n - 1 others share. T = max(C + M,
/// (n-1)/k (C + M)) / min(up, down) + 2 latencies. Bytes are those of an owner.
fn one_by_one(plan: &Plan, cluster: &Cluster, owners: u16) -> Traffic {
    let peers = cluster.peers as f64;
    let owners = f64::from(owners).min(peers);
    let (contribution, center) = Traffic::encoded(plan);
    let share = (peers - 1.0) / owners;
    let rest = 1.0 - 1.0 / owners;
    let slower = cluster.link.up.min(cluster.link.down);
    let latency: Duration = cluster.link.latency * 2;
    let values = cluster.parameters as f64;
    Traffic {
        up: share * center + rest * contribution,
        down: share * contribution + rest * center,
        seconds: share.max(1.0) * (contribution + center) / slower + latency.as_secs_f64(),
        // Encode all, move a part by every arrival and encode it for each, apply all.
        values: (2.0 + 2.0 * peers / owners) * values,
        held: 2.0 * contribution + center,
    }
}
