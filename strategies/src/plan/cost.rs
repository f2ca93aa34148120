//! The cost of one round of a strategy: time, bytes and memory of each peer.

use super::{Cluster, Groups, Traffic, UnderWay};
use crate::Layout;
use crate::grid::{Strategy, StrategyError};
use murmurate_protocol::{Contribution, Layers, Plan, RunId, StepBudget};
use serde::Serialize;
use std::collections::BTreeMap;

/// Nanoseconds for one value that the mix lane encodes, sums up or applies: it moves 12 bytes, and
/// one core moves about 6 GB/s.
const MIX_NS_PER_VALUE: f64 = 2.0;

/// Rounds of the run. No cost depends on them, but some schedules of the learning rate need an end.
const ROUNDS: u64 = 1 << 20;

/// The cost of one round, for each peer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Inner steps in a round.
    pub inner_steps: f64,
    /// Seconds of training.
    pub train_s: f64,
    /// Seconds of the exchange: transfers and latencies.
    pub exchange_s: f64,
    /// Seconds of encoding, combining and applying.
    pub mix_s: f64,
    /// Seconds of the whole round. Training waits for the previous round's exchange, except for the
    /// inner steps that late results let it take meanwhile.
    pub round_s: f64,
    /// The share of a round that is training.
    pub utilization: f64,
    /// Bytes sent in a round.
    pub bytes_up: f64,
    /// Bytes received in a round.
    pub bytes_down: f64,
    /// Bytes sent and received in an hour.
    pub bytes_per_hour: f64,
    /// Bytes of memory: parameters, gradients, optimizers, anchor, residual and slices.
    pub memory_bytes: f64,
    /// How the swarm is cut into groups; `None` where members do not agree.
    pub groups: Option<Groups>,
}

impl Cost {
    /// The cost of a strategy on a cluster. Where the strategy leaves it open, the number of peers
    /// decides whether they form a grid.
    ///
    /// # Errors
    /// When the model is beyond what the strategy can plan for.
    pub fn of(strategy: &Strategy, cluster: &Cluster) -> Result<Self, StrategyError> {
        let layout = Layout::new([("parameters", vec![cluster.parameters])]);
        let strategy = strategy.clone().for_peers(cluster.peers);
        let plan = strategy.plan(RunId::from_bytes([0; 32]), &layout, ROUNDS)?;
        Ok(Self::planned(&strategy, &plan, cluster))
    }

    /// The cost of a strategy by its plan, with the fragments of a real model.
    pub fn planned(strategy: &Strategy, plan: &Plan, cluster: &Cluster) -> Self {
        let traffic = match cluster.peers {
            1 => Traffic::default(),
            _ => strategy.traffic(plan, cluster),
        };
        let step = cluster.step.as_secs_f64();
        let inner_steps = match strategy.synchronization().pace.usual(strategy.budget()) {
            StepBudget::Steps(steps) => f64::from(steps),
            StepBudget::Time(time) => (time.as_secs_f64() / step).floor().max(1.0),
        };
        let train_s = inner_steps * step;
        let mix_s = traffic.values * MIX_NS_PER_VALUE * 1e-9;
        // The first inner steps of a round run during the previous round's exchange.
        let ahead_s = f64::from(plan.overlap.late_steps) * step;
        let waits = traffic.seconds + mix_s;
        let round_s = if plan.overlap.layers.leave_early() {
            Passes::of(plan, train_s).round(plan.overlap.layers, &traffic, mix_s, cluster)
        } else {
            train_s - ahead_s + ahead_s.max(waits)
        };
        let bytes = traffic.up + traffic.down;
        Self {
            inner_steps,
            train_s,
            exchange_s: traffic.seconds,
            mix_s,
            round_s,
            utilization: train_s / round_s,
            bytes_up: traffic.up,
            bytes_down: traffic.down,
            bytes_per_hour: bytes * 3600.0 / round_s,
            memory_bytes: runs(strategy) * 4.0 * cluster.parameters as f64 + traffic.held,
            groups: Groups::of(strategy, plan, cluster.peers),
        }
    }

    /// Inner steps per second, of all peers together whose contributions a round combines.
    pub fn throughput(&self, peers: usize) -> f64 {
        let counted = self.groups.map_or(peers, |groups| groups.counted());
        counted.min(peers) as f64 * self.inner_steps / self.round_s
    }

    /// Seconds of a round without training.
    pub fn idle_s(&self) -> f64 {
        self.exchange_s + self.mix_s
    }
}

/// The two passes of an inner step, and into how many fragments the gradient is cut.
struct Passes {
    forward: f64,
    backward: f64,
    fragments: f64,
}

impl Passes {
    fn of(plan: &Plan, train_s: f64) -> Self {
        Self {
            forward: train_s / 3.0,
            backward: train_s * 2.0 / 3.0,
            fragments: plan.fragments.len().max(1) as f64,
        }
    }

    /// Seconds of a round whose n fragments leave under the backward pass B. The first one leaves after
    /// `B / n`, and the last one takes its own exchange after B. Where the next forward pass F begins with the
    /// first layers, only the last layer waits for the last fragment.
    fn round(&self, layers: Layers, traffic: &Traffic, mix_s: f64, cluster: &Cluster) -> f64 {
        let Self {
            forward,
            backward,
            fragments,
        } = self;
        let whole = traffic.seconds + mix_s;
        let wire = (traffic.up / cluster.link.up).max(traffic.down / cluster.link.down);
        let wire = wire.min(traffic.seconds);
        let last = traffic.seconds - wire + (wire + mix_s) / fragments;
        if layers.reach_forward() {
            (forward + backward + last).max(whole + (forward + backward) / fragments)
        } else {
            forward + (backward + last).max(backward / fragments + whole)
        }
    }
}

/// Number of f32 for each parameter: parameter and gradient, the state of inner and outer
/// optimizer, the anchor and its companion, the state of a correction, and the residual of error
/// feedback.
fn runs(strategy: &Strategy) -> f64 {
    let anchor = usize::from(strategy.exchange().facts().exchanges);
    let outer = match strategy.contribution() {
        Contribution::Delta => strategy.outer_bytes() as f64 / 4.0,
        Contribution::Gradient | Contribution::Parameters => 0.0,
    };
    let residual = usize::from(strategy.error_feedback());
    let inner = strategy.inner_kind().state_multiple();
    let corrected = strategy.companion().len(1) + strategy.correction_kind().state_multiple();
    (2 + inner + anchor + residual + corrected) as f64 + outer
}

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

    fn cluster(peers: usize) -> Cluster {
        Cluster::new(1e6, 100.0, "8mbit/16mbit/10ms", peers, 0.8).unwrap()
    }

    fn cost(text: &str, preset: &str, peers: usize) -> Cost {
        let strategy = Strategy::parse(text, Some(preset)).unwrap();
        Cost::of(&strategy, &cluster(peers)).unwrap()
    }

    #[test]
    fn an_all_reduce_of_f32_moves_what_the_formula_says() {
        let cost = cost("[synchronization]\ninner_steps = 10\n", "local-sgd", 4);
        // 3/4 of 4 MB each way, twice; the uplink of 1 MB/s binds; five times 10 ms.
        assert!((cost.bytes_up / 6e6 - 1.0).abs() < 1e-3, "{cost:?}");
        assert!((cost.exchange_s - 6.05).abs() < 0.01, "{cost:?}");
        assert!((cost.train_s - 1.0).abs() < 1e-9);
        let share = cost.train_s / (cost.train_s + cost.exchange_s + cost.mix_s);
        assert!((cost.utilization - share).abs() < 1e-12);
        let hour = (cost.bytes_up + cost.bytes_down) * 3600.0 / cost.round_s;
        assert!((cost.bytes_per_hour - hour).abs() < 1.0);
        // Parameters, gradients and the anchor, and the slices.
        assert!(
            cost.memory_bytes > 12e6 && cost.memory_bytes < 12e6 + 12e6,
            "{cost:?}"
        );
    }

    #[test]
    fn staggered_fragments_cost_their_share_in_a_round() {
        let whole = cost("", "diloco", 4);
        let quarter = cost("[overlap]\nstagger = 4\n", "diloco", 4);
        assert!((4.0 * quarter.bytes_up / whole.bytes_up - 1.0).abs() < 1e-3);
        assert!((4.0 * quarter.mix_s / whole.mix_s - 1.0).abs() < 1e-9);
        assert!(quarter.exchange_s < whole.exchange_s / 3.0, "{quarter:?}");
    }

    #[test]
    fn late_results_hide_the_exchange_behind_their_inner_steps() {
        let text = "[synchronization]\ninner_steps = 40\n";
        let waits = cost(text, "diloco", 4);
        let late = |steps| {
            cost(
                &format!("{text}[overlap]\nlate_steps = {steps}\n"),
                "diloco",
                4,
            )
        };
        // Two of forty inner steps of 100 ms.
        assert!((waits.round_s - late(2).round_s - 0.2).abs() < 1e-9);
        // Four seconds do not hide six, and the rest is waited for.
        let all = late(40);
        assert!(
            (all.round_s - all.exchange_s - all.mix_s).abs() < 1e-9,
            "{all:?}"
        );
        let streaming = cost(
            "[synchronization]\ninner_steps = 40\n[overlap]\nlate_steps = 40\n",
            "streaming-diloco",
            4,
        );
        assert_eq!(streaming.utilization, 1.0, "{streaming:?}");
    }

    #[test]
    fn layers_hide_the_exchange_behind_the_passes() {
        let seconds = |layers: &str| {
            let text = format!("[overlap]\nfragments = 16\nlayers = \"{layers}\"\n");
            cost(&text, "bsp", 2)
        };
        // Steps of 100 ms; half of 4 MB each way, twice: 4 s at 1 MB/s, and five times 10 ms.
        let [together, priority, forward] =
            ["together", "by-priority", "into-forward"].map(seconds);
        let idle = together.idle_s();
        assert!((idle - 4.05).abs() < 0.05, "{together:?}");
        assert!((together.round_s - 0.1 - idle).abs() < 1e-9);
        // All but a sixteenth of the backward pass is hidden, and of the forward pass.
        let hidden = |cost: Cost, passes: f64| 0.1 + idle - cost.round_s - passes * 15.0 / 16.0;
        assert!(hidden(priority, 0.2 / 3.0).abs() < 1e-9, "{priority:?}");
        assert!(hidden(forward, 0.1).abs() < 1e-9, "{forward:?}");
        // On a fast link only the last fragment's exchange is left, and its latencies.
        let fast = Cluster::new(1e6, 100.0, "8000mbit/1ms", 2, 0.8).unwrap();
        let text = "[overlap]\nfragments = 16\nlayers = \"into-forward\"\n";
        let strategy = Strategy::parse(text, Some("bsp")).unwrap();
        let cost = Cost::of(&strategy, &fast).unwrap();
        let wire = cost.exchange_s - 0.005;
        let expected = 0.1 + 0.005 + (wire + cost.mix_s) / 16.0;
        assert!((cost.round_s - expected).abs() < 1e-4, "{cost:?}");
    }

    #[test]
    fn a_relay_pays_for_each_neighbour_in_its_two_trees() {
        // Of 7 ranks the root has two neighbours in one tree and is a leaf of the other; ranks 1 and 5 have three
        // and one; halves of 4 MB over the uplink of 1 MB/s.
        let double = cost("", "relaysgd", 7);
        assert!((double.bytes_up / 8e6 - 1.0).abs() < 1e-3, "{double:?}");
        assert!((double.exchange_s - 8.01).abs() < 0.02, "{double:?}");
        let single = cost("[overlap]\nfragments = 1\n", "relaysgd", 7);
        assert!((single.bytes_up / 12e6 - 1.0).abs() < 1e-3, "{single:?}");
        let ring = cost("[architecture]\ntopology = \"ring\"\n", "relaysgd", 7);
        assert!((ring.bytes_up / 8e6 - 1.0).abs() < 1e-3, "{ring:?}");
    }

    #[test]
    fn gossip_pays_for_each_partner() {
        let ring = cost("", "d-psgd", 8);
        assert!((ring.bytes_up / 8e6 - 1.0).abs() < 1e-3, "{ring:?}");
        let one = "[architecture]\ntopology = \"one-peer-exponential\"\n";
        let one = cost(one, "d-psgd", 8);
        assert!((one.bytes_up / 4e6 - 1.0).abs() < 1e-3, "{one:?}");
        assert!(one.memory_bytes < ring.memory_bytes);
    }

    #[test]
    fn a_swarm_above_one_group_pays_for_its_grid_or_takes_turns() {
        let (grid, group) = (cost("", "local-sgd", 128), cost("", "local-sgd", 64));
        assert!(
            grid.throughput(128) > 1.9 * group.throughput(64),
            "{grid:?}"
        );
        // Two rows' worth of models, as in one group; the aggregates of 64 rows go to 64 owners.
        assert!((grid.bytes_up / group.bytes_up - 1.0).abs() < 0.02);
        let turns = cost("[agreement]\ngrouping = \"flat\"\n", "local-sgd", 128);
        assert!((turns.throughput(128) / group.throughput(64) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn alone_there_is_nothing_to_send() {
        for preset in ["bsp", "diloco", "d-psgd", "none"] {
            let cost = cost("", preset, 1);
            assert_eq!(
                (cost.bytes_per_hour, cost.utilization),
                (0.0, 1.0),
                "{preset}"
            );
        }
    }

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
