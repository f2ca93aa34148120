//! Exchange `gathered`: every member receives every contribution as it was encoded.

use super::agreed;
use super::keys::{ENOUGH, GRACE, GRACE_MS, LIARS};
use super::spec::{Chosen, Costs, ExchangeSpec};
use crate::executor::Mixing;
use crate::grid::Strategy;
use crate::plan::{Cluster, Traffic};
use core::time::Duration;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use murmurate_protocol::{Contribution, ExchangeKind, Plan};

/// Its entry in the list.
pub(super) const SPEC: ExchangeSpec = ExchangeSpec {
    name: "gathered",
    summary: "every member receives every contribution as it was encoded and combines them; all agree on which",
    equation: "a' = outer(a, sum_i w_i C(d_i) / sum_i w_i), over the contributors that the group agreed on; no C of the sum",
    source: "Lin et al., ICLR 2018; Xu et al., ICDCS 2021",
    keys: &[ENOUGH, GRACE, GRACE_MS, LIARS],
    parameters: &[],
    modes: &[],
    contribution: Contribution::Delta,
    label: |kind| matches!(kind, ExchangeKind::Gathered).then_some("gathered"),
    read: |_| Ok(Chosen::plain(ExchangeKind::Gathered)),
    write: |_, _| {},
    check: agreed::check,
    mixing: |strategy| Mixing::Gathered {
        rule: strategy.aggregation().build(),
    },
    costs: Costs {
        // Contributions themselves travel to the members.
        aggregate: |_, codec| codec.bytes_bound(),
        traffic,
        stores: |_, of| {
            // Each member holds the contributions of all.
            let all = GROUP_MEMBERS_MAX as f64 * of.contribution;
            vec![
                ("gathered slices", all * of.window),
                ("history", of.history(all)),
            ]
        },
    },
};

/// Gathered contributions among g members: each sends its whole contribution to the g - 1 others
/// and gets theirs: T = (g-1) C / min(up, down) + 4 latencies.
fn traffic(_: &Strategy, plan: &Plan, cluster: &Cluster) -> Traffic {
    let members = cluster.peers.min(GROUP_MEMBERS_MAX) as f64;
    let (contribution, _) = Traffic::encoded(plan);
    let bytes = (members - 1.0) * contribution;
    let latency: Duration = cluster.link.latency * (agreed::HOPS + 1);
    let values = Traffic::exchanged(plan, cluster);
    Traffic {
        up: bytes,
        down: bytes,
        seconds: bytes / cluster.link.up.min(cluster.link.down) + latency.as_secs_f64(),
        // Encode all, sum up all of every member, apply all.
        values: (2.0 + members) * values,
        held: members * contribution,
    }
}
