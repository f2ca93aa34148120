//! Exchange `pull`: ask the round's partners for what they published last.

use super::neighbours::{self, MIXES};
use super::spec::{Chosen, Costs, ExchangeSpec};
use crate::plan::Traffic;
use murmurate_protocol::ExchangeKind;

/// Its entry in the list.
pub(super) const SPEC: ExchangeSpec = ExchangeSpec {
    name: "pull",
    summary: "ask the round's partners, mix what they published last; peers send only answers",
    equation: "x_i' = (1 - sum_j W_ij) x_i + sum_j W_ij C(x_j) over the partners j that answered, with x_j of whichever round: rows sum to one, columns need not",
    source: "Demers et al., PODC 1987; Karp et al., FOCS 2000; Tsitsiklis et al., IEEE Trans. Autom. Control 1986",
    label: |kind| matches!(kind, ExchangeKind::Pull).then_some("pull"),
    read: |_| Ok(Chosen::plain(ExchangeKind::Pull)),
    check: neighbours::clipped_or_not,
    costs: Costs {
        traffic: |strategy, plan, cluster| {
            let pushed = neighbours::traffic(strategy, plan, cluster);
            // A question travels before every answer.
            let seconds = pushed.seconds + cluster.link.latency.as_secs_f64();
            Traffic { seconds, ..pushed }
        },
        ..MIXES.costs
    },
    ..MIXES
};
