//! Exchange `push`: gossip without waiting.

use super::neighbours::{self, MIXES};
use super::spec::{Chosen, Costs, ExchangeSpec};
use crate::plan::Traffic;
use murmurate_protocol::ExchangeKind;

/// Its entry in the list.
pub(super) const SPEC: ExchangeSpec = ExchangeSpec {
    name: "push",
    summary: "gossip without waiting: mix what has already arrived",
    equation: "x_i' = (m_i x_i + sum_k m_k C(x_k)) / (m_i + sum_k m_k) over the slices k that are there, of any round",
    source: "overlapped SGP: Assran et al., ICML 2019; GoSGD: Blot et al., arXiv 1611.09726",
    label: |kind| matches!(kind, ExchangeKind::Push).then_some("push"),
    read: |_| Ok(Chosen::plain(ExchangeKind::Push)),
    costs: Costs {
        // No peer waits for an exchange, so it takes no time of a round.
        traffic: |strategy, plan, cluster| Traffic {
            seconds: 0.0,
            ..neighbours::traffic(strategy, plan, cluster)
        },
        ..MIXES.costs
    },
    ..MIXES
};
