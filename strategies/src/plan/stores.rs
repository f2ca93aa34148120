//! What a peer is expected to keep in memory, store by store.

use super::UnderWay;
use crate::grid::Strategy;
use murmurate_protocol::Plan;
use std::collections::BTreeMap;

/// What a peer of a strategy keeps, store by store, in multiples of 4 bytes x parameters: what the
/// method keeps between rounds, and what its exchange has under way.
pub fn stores(strategy: &Strategy, plan: &Plan, parameters: u64) -> BTreeMap<String, f64> {
    let method = strategy.stores().into_iter();
    let under_way = UnderWay::of(plan, parameters);
    let all = method.chain(strategy.under_way(&under_way));
    all.filter(|(_, multiple)| *multiple > 0.0)
        .map(|(name, multiple)| (name.to_owned(), multiple))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;
    use murmurate_protocol::RunId;

    fn kept(preset: &str, parameters: u64) -> BTreeMap<String, f64> {
        let strategy = Strategy::preset(preset).unwrap();
        let layout = Layout::new([("parameters", vec![parameters])]);
        let run = RunId::from_bytes([0; 32]);
        let plan = strategy.plan(run, &layout, 0).unwrap();
        stores(&strategy, &plan, parameters)
    }

    #[test]
    fn an_all_reduce_keeps_two_contributions_and_an_aggregate() {
        let stores = kept("local-sgd", 1_000_000);
        assert!((stores["encoded slices"] - 3.0).abs() < 1e-3, "{stores:?}");
        assert!((stores["shard reductions"] - 1.0).abs() < 1e-9);
        assert_eq!((stores["parameters"], stores["anchor"]), (1.0, 1.0));
    }

    #[test]
    fn exchanges_between_neighbours_keep_slices_and_no_history() {
        for (preset, slices) in [("d-psgd", 3.0), ("ad-psgd", 4.0), ("relaysgd", 9.0)] {
            let stores = kept(preset, 1_000_000);
            let encoded = stores["encoded slices"];
            assert!((encoded - slices).abs() < 1e-2, "{preset}: {encoded}");
            assert!(!stores.contains_key("history"), "{preset}");
        }
        assert!(!kept("none", 1_000_000).contains_key("encoded slices"));
    }
}
