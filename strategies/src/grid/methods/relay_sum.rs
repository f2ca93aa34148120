//! Exchange `relay-sum`: sums of parameters travel along a spanning tree of the topology.

use super::super::error::refuse;
use super::super::{Strategy, StrategyError};
use super::neighbours::{self, MIXES};
use super::spec::{Chosen, Costs, ExchangeSpec};
use crate::executor::Mixing;
use crate::plan::{Cluster, Traffic};
use murmurate_protocol::{ExchangeKind, Plan, SpanningTree};

pub(super) const SPEC: ExchangeSpec = ExchangeSpec {
    name: "relay-sum",
    summary: "sums relayed along a spanning tree of the topology: each peer's parameters reach every mean once, delayed by the distance",
    equation: "m_ij = x_i + sum_{l != j} m_li, c_ij = 1 + sum_{l != j} c_li, x_i' = (x_i + sum_j m_ji + (n - 1 - sum_j c_ji) x_i) / n",
    source: "Vogels et al., NeurIPS 2021",
    label: |kind| matches!(kind, ExchangeKind::RelaySum).then_some("relay-sum"),
    read: |_| Ok(Chosen::plain(ExchangeKind::RelaySum)),
    check,
    mixing: |_| Mixing::Relayed,
    costs: Costs {
        traffic,
        // For each of up to three neighbours this peer's message, and the neighbour's last and next one.
        stores: |_, of| vec![("encoded slices", 9.0 * of.contribution)],
        ..MIXES.costs
    },
    ..MIXES
};

fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    neighbours::parameters_as_they_are(strategy)?;
    refuse(
        !strategy.topology_kind().is_some_and(|k| k.spec().spans),
        "architecture.topology",
        "sums travel along one spanning tree, and this topology changes with the round, may be disconnected or has a hub",
        "use \"binary-tree\", \"ring\", \"torus\", \"hypercube\" or \"exponential\"",
    )?;
    refuse(
        !strategy.codec().properties().lossless,
        "compression.codec",
        "every peer on the way would round a relayed sum again, which removes small changes in every round",
        "use \"f32\", or exchange = \"replicas\"",
    )
}

/// Sums travel along a tree, over reversed ranks in every second fragment: one message to each of d
/// neighbours and one from each. The busiest peer limits the rate:
/// T = max_i sum_f d_if C_f / min(up, down) + latency; bytes are those of the busiest peer.
fn traffic(strategy: &Strategy, plan: &Plan, cluster: &Cluster) -> Traffic {
    let Some(topology) = strategy.topology(0) else {
        return Traffic::default();
    };
    let tree = SpanningTree::of(&*topology, cluster.peers);
    let traffic = |rank: usize| {
        let mut busy = Traffic::default();
        for (index, fragment) in plan.fragments.iter().enumerate() {
            let mirrored = cluster.peers - 1 - rank;
            let degree = tree.neighbours([rank, mirrored][index % 2]).len() as f64;
            busy.up += degree * fragment.contribution.of(fragment.len) as f64;
            // To each neighbour a message of all others' sums; then the mix, and to apply it.
            busy.values += (degree * degree + degree + 2.0) * fragment.len as f64;
        }
        busy
    };
    let all = (0..cluster.peers).map(traffic);
    let busiest = all.max_by(|a, b| a.up.total_cmp(&b.up)).unwrap_or_default();
    let slower = cluster.link.up.min(cluster.link.down);
    Traffic {
        down: busiest.up,
        seconds: busiest.up / slower + cluster.link.latency.as_secs_f64(),
        // Own messages, the neighbours' last and the next.
        held: 3.0 * busiest.up,
        ..busiest
    }
}
