//! What relaying sums along a tree needs of the rest.

use super::refuse::{parameters_as_they_are, refused};
use super::{Strategy, StrategyError};
use crate::topology::TopologyKind;

/// Refuses what cannot be relayed.
pub(super) fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    parameters_as_they_are(strategy)?;
    let spans = strategy.topology_kind().is_some_and(spans);
    if !spans {
        return refused(
            "architecture.topology",
            "sums travel along one spanning tree of few neighbours, and this topology changes with the round, may fall apart or has a hub",
            "use \"binary-tree\", \"ring\", \"torus\", \"hypercube\" or \"exponential\"",
        );
    }
    if !strategy.codec().properties().lossless {
        return refused(
            "compression.codec",
            "most of what a peer goes on with was encoded by others: what rounding takes off small moves is gone in every round anew",
            "use \"f32\", or exchange = \"replicas\"",
        );
    }
    Ok(())
}

/// Whether every rank but 0 has a neighbour below it in round 0, and none has many.
const fn spans(kind: TopologyKind) -> bool {
    matches!(
        kind,
        TopologyKind::BinaryTree
            | TopologyKind::Exponential
            | TopologyKind::Hypercube
            | TopologyKind::Ring
            | TopologyKind::Torus
    )
}
