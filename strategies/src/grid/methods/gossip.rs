//! Exchange `gossip`: push-sum with the round's partners.

use super::neighbours::MIXES;
use super::spec::{Chosen, ExchangeSpec};
use murmurate_protocol::ExchangeKind;

/// Its entry in the list.
pub(super) const SPEC: ExchangeSpec = ExchangeSpec {
    name: "gossip",
    summary: "push to the round's partners, mix what arrived",
    equation: "x_i' = (m_i x_i + sum_k m_k C(x_k)) / (m_i + sum_k m_k), m_i = w_i - sum_j W_ji w_i, m_k the masses that arrived",
    source: "Lian et al., NeurIPS 2017; push-sum: Kempe et al., FOCS 2003; Assran et al., ICML 2019",
    label: |kind| matches!(kind, ExchangeKind::Gossip).then_some("gossip"),
    read: |_| Ok(Chosen::plain(ExchangeKind::Gossip)),
    ..MIXES
};
