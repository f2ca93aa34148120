//! Exchange `pairs`: two neighbours average their parameters whenever one of them starts an
//! exchange.

use super::neighbours::{self, MIXES};
use super::spec::{Chosen, Costs, ExchangeSpec};
use crate::plan::Traffic;
use murmurate_protocol::ExchangeKind;

/// Its entry in the list.
///
/// Its traffic: in every round a peer begins one exchange and answers one, on average, and waits
/// for neither: T = 0.
pub(super) const SPEC: ExchangeSpec = ExchangeSpec {
    name: "pairs",
    summary: "push-pull: two neighbours average whenever one of them begins to; no peer waits",
    equation: "x_i' = x_i + w (C(x_j) - C(x_i)), x_j' = x_j - w (C(x_j) - C(x_i)), w = 1/2, less where several are under way",
    source: "Lian et al., ICML 2018",
    label: |kind| matches!(kind, ExchangeKind::Pairs).then_some("pairs"),
    read: |_| Ok(Chosen::plain(ExchangeKind::Pairs)),
    check: |strategy| {
        neighbours::both_ways(strategy)?;
        neighbours::parameters_as_they_are(strategy)
    },
    costs: Costs {
        traffic: |_, plan, cluster| {
            let (contribution, _) = Traffic::encoded(plan);
            Traffic {
                up: contribution,
                down: contribution,
                seconds: 0.0,
                // Encode, and mix one's own and the other's.
                values: 3.0 * cluster.parameters as f64,
                held: 2.0 * contribution,
            }
        },
        // Own slices until the other ends have confirmed them, and theirs, for two neighbours.
        stores: |_, of| vec![("encoded slices", 4.0 * of.contribution)],
        ..MIXES.costs
    },
    ..MIXES
};
