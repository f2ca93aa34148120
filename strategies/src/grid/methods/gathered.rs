//! Exchange `gathered`: every member receives every contribution as it was encoded.

use super::agreed;
use super::keys::{ENOUGH, GRACE, GRACE_MS, LIARS};
use super::spec::{Chosen, Costs, ExchangeSpec, NONE};
use crate::executor::Mixing;
use crate::grid::Strategy;
use crate::plan::{Cluster, Traffic};
use core::time::Duration;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use murmurate_protocol::{ExchangeKind, Plan};

/// A forward pass is about a third of an inner step.
const FORWARD: f64 = 1.0 / 3.0;

pub(super) const SPEC: ExchangeSpec = ExchangeSpec {
    name: "gathered",
    summary: "every member receives every contribution as it was encoded and combines them; all agree on which",
    equation: "a' = outer(a, sum_i w_i C(d_i) / sum_i w_i), over the contributors that the group agreed on; no C of the sum",
    source: "Lin et al., ICLR 2018; Xu et al., ICDCS 2021",
    keys: &[ENOUGH, GRACE, GRACE_MS, LIARS],
    label: |kind| matches!(kind, ExchangeKind::Gathered).then_some("gathered"),
    read: |_| Ok(Chosen::plain(ExchangeKind::Gathered)),
    check: agreed::check,
    mixing: |strategy| Mixing::Gathered {
        rule: strategy.aggregation().build(),
    },
    costs: Costs {
        // Contributions themselves travel to the members.
        aggregate: |_, codec| codec.bytes_bound(),
        traffic,
        stores: |strategy, of| {
            // Each member holds the contributions of all.
            let all = GROUP_MEMBERS_MAX as f64 * of.contribution;
            let scored = strategy.aggregation().scoring();
            vec![
                ("gathered slices", all * of.window),
                ("scored parameters", f64::from(u8::from(scored.is_some()))),
                ("history", of.history(all)),
            ]
        },
    },
    ..NONE
};

/// Gathered contributions among g members: each sends its whole contribution to the g - 1 others
/// and gets theirs: T = (g-1) C / min(up, down) + 4 latencies. Where they score contributions, each evaluates
/// g times some batches between two rounds, and holds the parameters that it evaluates.
fn traffic(strategy: &Strategy, plan: &Plan, cluster: &Cluster) -> Traffic {
    let members = cluster.peers.min(GROUP_MEMBERS_MAX) as f64;
    let (contribution, _) = Traffic::encoded(plan);
    let bytes = (members - 1.0) * contribution;
    let latency: Duration = cluster.link.latency * (agreed::HOPS + 1);
    let values = Traffic::exchanged(plan, cluster);
    let scoring = strategy.aggregation().scoring();
    let batches = scoring.map_or(0.0, |scoring| f64::from(scoring.batches) * members);
    let evaluated = batches * FORWARD * cluster.step.as_secs_f64();
    let staged = match scoring {
        Some(_) => 4.0 * cluster.parameters as f64,
        None => 0.0,
    };
    Traffic {
        up: bytes,
        down: bytes,
        seconds: bytes / cluster.link.up.min(cluster.link.down) + latency.as_secs_f64() + evaluated,
        // Encode all, sum up all of every member, apply all.
        values: (2.0 + members) * values,
        held: members * contribution + staged,
    }
}
