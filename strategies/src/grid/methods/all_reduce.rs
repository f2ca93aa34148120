//! Exchange `all-reduce`: the weighted mean of all members, along a schedule.

use super::agreed;
use super::keys::{ENOUGH, FRACTION, GRACE, GRACE_MS, GROUPING, LIARS, ROW};
use super::spec::{Chosen, Costs, ExchangeSpec, NONE};
use crate::executor::Mixing;
use crate::grid::Strategy;
use crate::plan::{Cluster, GridShape, Traffic};
use core::time::Duration;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use murmurate_protocol::{ExchangeKind, Plan, Schedule};

pub(super) const SPEC: ExchangeSpec = ExchangeSpec {
    name: "all-reduce",
    summary: "the weighted mean of all members, along a schedule; all agree on the result",
    equation: "a' = outer(a, sum_i w_i C(d_i) / sum_i w_i), over the contributors that the group agreed on",
    source: "Thakur et al., IJHPCA 2005; of the members that are ready: Li et al., PPoPP 2020",
    keys: &[ENOUGH, GRACE, GRACE_MS, FRACTION, LIARS, GROUPING, ROW],
    label: |kind| matches!(kind, ExchangeKind::AllReduce).then_some("all-reduce"),
    read: |_| Ok(Chosen::plain(ExchangeKind::AllReduce)),
    write: |strategy, tables| {
        let links = strategy.architecture.links.as_ref();
        tables.architecture.set_schedule(strategy.schedule(), links);
    },
    check: agreed::check,
    mixing: |strategy| Mixing::Agreed {
        rule: strategy.aggregation().build(),
    },
    costs: Costs {
        aggregate: |_, codec| codec.aggregate().bytes_bound(),
        traffic,
        stores: agreed::stores,
    },
    ..NONE
};

/// All-reduce among g members, by the cost of its schedule: S shards, h hops, b pushes of the
/// busiest member. Half of these pushes are partial sums (C bytes; in the butterfly,
/// contributions), and half are aggregates (A bytes): T = max(b, h / F) / S (C + A) / 2 / min(up,
/// down) + (h + 3) latencies, with F fragments, one after another. The 3 are ready, propose, vote.
///
/// Trees and orders that are found again while the run is under way take what their model says of the largest
/// fragment, and as long as the butterfly in the rounds that measure, for links that are given.
///
/// Trees that were packed onto measured links take what their certificate says in place of the bytes of
/// the busiest over an equal link, if the cluster has as many peers.
///
/// Special cases: more peers than the largest group form rows and columns, whose cost is
/// [`GridShape::traffic`]; if they cannot, they take turns in one group of that size. For the butterfly, b / S (C + A) / 2 = (g-1)/g (C + A).
fn traffic(_: &Strategy, plan: &Plan, cluster: &Cluster) -> Traffic {
    if let Some(shape) = GridShape::of(plan, cluster.peers) {
        return shape.traffic(plan, cluster);
    }
    let members = cluster.peers.min(GROUP_MEMBERS_MAX);
    let cost = plan.schedule.cost(members);
    let shards = cost.shards as f64;
    let share = (members - 1) as f64 / members as f64;
    let (contribution, aggregate) = Traffic::encoded(plan);
    let whole = (contribution + aggregate) / 2.0;
    let bytes = cost.busiest as f64 / shards * whole;
    let fragments = plan.fragments.len() as f64 / f64::from(plan.overlap.stagger);
    let chain = cost.hops as f64 / shards / fragments * whole;
    let slower = cluster.link.up.min(cluster.link.down);
    let hops = u32::try_from(cost.hops).unwrap_or(u32::MAX);
    let latency: Duration = cluster.link.latency * hops.saturating_add(agreed::HOPS);
    let moving = match plan.schedule {
        Schedule::Measured(links) => {
            let largest = plan.fragments.iter().map(|f| f.aggregate.of(f.len)).max();
            let largest = largest.unwrap_or(1).max(1);
            let equal = bytes.max(chain) / slower;
            links
                .micros(members, largest)
                .map_or(equal, |(found, butterfly)| {
                    let every = f64::from(links.every.max(1));
                    let mean = ((every - 1.0) * found as f64 + butterfly as f64) / every;
                    mean * 1e-6 * whole / largest as f64
                })
        }
        Schedule::Packed(packing) if packing.members() == members => {
            f64::from(packing.certificate().micros) * 1e-12 * whole
        }
        _ => bytes.max(chain) / slower,
    };
    let values = Traffic::exchanged(plan, cluster);
    Traffic {
        up: bytes,
        down: bytes,
        seconds: moving + latency.as_secs_f64(),
        // Encode all, sum up one shard of every member, apply all.
        values: 3.0 * values,
        held: contribution + aggregate + share * contribution,
    }
}
