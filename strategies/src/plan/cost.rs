//! What one round of a strategy takes: time, bytes and memory of each peer.

use super::Cluster;
use crate::Layout;
use crate::grid::{Strategy, StrategyError};
use core::time::Duration;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use murmurate_protocol::{
    Contribution, ExchangeKind, Plan, Round, RunId, SpanningTree, StepBudget,
};
use serde::Serialize;

/// Nanoseconds for one value that the mix lane encodes, sums up or applies: 12 bytes moved at some
/// 6 GB/s of one core.
const MIX_NS_PER_VALUE: f64 = 2.0;

/// One-way latencies of an all-reduce beside those of its schedule: ready, propose, vote.
const HOPS_AGREEMENT: u32 = 3;

/// Ranks and rounds over which a topology's pushes are averaged.
const SAMPLED: usize = 8;

/// What one round takes, for each peer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Inner steps of a round.
    pub inner_steps: f64,
    /// Seconds of training.
    pub train_s: f64,
    /// Seconds of exchanging: links and latencies.
    pub exchange_s: f64,
    /// Seconds of encoding, combining and applying.
    pub mix_s: f64,
    /// Seconds of the whole round: training waits for the exchange of the round before, but for what late
    /// results let it take meanwhile.
    pub round_s: f64,
    /// The share of a round in which it trains.
    pub utilization: f64,
    /// Bytes sent in a round.
    pub bytes_up: f64,
    /// Bytes received in a round.
    pub bytes_down: f64,
    /// Bytes sent and received in an hour.
    pub bytes_per_hour: f64,
    /// Bytes of memory: parameters, gradients, optimizers, anchor, residual and slices.
    pub memory_bytes: f64,
}

/// Bytes of a round and what they wait for.
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    up: f64,
    down: f64,
    seconds: f64,
    /// Values that the mix lane goes over.
    values: f64,
    /// Encoded bytes that lie at the peer at a time.
    held: f64,
}

impl Cost {
    /// The cost of a strategy on a cluster.
    ///
    /// # Errors
    /// When the model is beyond what the strategy can plan for.
    pub fn of(strategy: &Strategy, cluster: &Cluster) -> Result<Self, StrategyError> {
        let layout = Layout::new([("parameters", vec![cluster.parameters])]);
        let plan = strategy.plan(RunId::from_bytes([0; 32]), &layout, 0)?;
        Ok(Self::planned(strategy, &plan, cluster))
    }

    /// The cost of a strategy whose plan is made already: that of a model in its own fragments.
    pub fn planned(strategy: &Strategy, plan: &Plan, cluster: &Cluster) -> Self {
        let traffic = match (strategy.exchange(), cluster.peers) {
            (ExchangeKind::None, _) | (_, 1) => Traffic::default(),
            (ExchangeKind::AllReduce, _) => all_reduce(plan, cluster),
            (ExchangeKind::Gathered, _) => gathered(plan, cluster),
            (ExchangeKind::Center(center), _) => one_by_one(plan, cluster, center.owners),
            (ExchangeKind::Server(server), _) => in_step(plan, cluster, server.owners),
            (ExchangeKind::Gossip | ExchangeKind::Replicas, _) => gossip(strategy, plan, cluster),
            (ExchangeKind::Pairs, _) => pairs(plan, cluster),
            (ExchangeKind::Relay, _) => relayed(strategy, plan, cluster),
            (ExchangeKind::Pull, _) => {
                let pushed = gossip(strategy, plan, cluster);
                // A question goes before every answer.
                let seconds = pushed.seconds + cluster.link.latency.as_secs_f64();
                Traffic { seconds, ..pushed }
            }
            // Nobody waits.
            (ExchangeKind::Push, _) => Traffic {
                seconds: 0.0,
                ..gossip(strategy, plan, cluster)
            },
        };
        let step = cluster.step.as_secs_f64();
        let inner_steps = match strategy.synchronization().pace.usual(strategy.budget()) {
            StepBudget::Steps(steps) => f64::from(steps),
            StepBudget::Time(time) => (time.as_secs_f64() / step).floor().max(1.0),
        };
        let train_s = inner_steps * step;
        let mix_s = traffic.values * MIX_NS_PER_VALUE * 1e-9;
        // The first of a round's inner steps are taken under the exchange of the round before.
        let ahead_s = f64::from(plan.overlap.late_steps) * step;
        let round_s = train_s - ahead_s + ahead_s.max(traffic.seconds + mix_s);
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
        }
    }

    /// Inner steps a second of all peers together.
    pub fn throughput(&self, peers: usize) -> f64 {
        peers as f64 * self.inner_steps / self.round_s
    }

    /// Seconds of a round in which nothing is trained.
    pub fn idle_s(&self) -> f64 {
        self.exchange_s + self.mix_s
    }
}

/// Runs of f32 over all parameters: parameters and gradients, the inner and outer optimizer's
/// state, the anchor with its companion, what a correction keeps, and what error feedback does.
fn runs(strategy: &Strategy) -> f64 {
    let anchor = usize::from(strategy.exchange() != ExchangeKind::None);
    let outer = match strategy.contribution() {
        Contribution::Delta => strategy.outer_kind().state_multiple(),
        Contribution::Gradient | Contribution::Parameters => 0,
    };
    let residual = usize::from(strategy.error_feedback());
    let inner = strategy.inner_kind().state_multiple();
    let corrected = strategy.companion().len(1) + strategy.correction_kind().state_multiple();
    (2 + inner + anchor + outer + residual + corrected) as f64
}

/// Encoded contribution and encoded aggregate of what one round exchanges: of the whole model, or of
/// one in so many of its fragments where they are staggered.
fn encoded(plan: &Plan) -> (f64, f64) {
    let whole = plan.fragments.iter().fold((0.0, 0.0), |(c, a), fragment| {
        (
            c + fragment.contribution.of(fragment.len) as f64,
            a + fragment.aggregate.of(fragment.len) as f64,
        )
    });
    let turns = f64::from(plan.overlap.stagger);
    (whole.0 / turns, whole.1 / turns)
}

/// Values that one round exchanges.
fn exchanged(plan: &Plan, cluster: &Cluster) -> f64 {
    cluster.parameters as f64 / f64::from(plan.overlap.stagger)
}

/// All-reduce among g members, by its schedule's cost: S shards, h hops, b pushes of the busiest
/// member. Up go partial sums (C bytes; in the butterfly the contributions themselves), down
/// aggregates (A bytes), half of the busiest member's pushes each:
/// T = max(b, h / F) / S (C + A) / 2 / min(up, down) + (h + 3) latencies, F the fragments, which
/// follow one another. The 3 are ready, propose, vote.
///
/// Special cases: more peers than a group takes train in several groups of that size. Of the butterfly
/// b / S (C + A) / 2 = (g-1)/g (C + A).
fn all_reduce(plan: &Plan, cluster: &Cluster) -> Traffic {
    let members = cluster.peers.min(GROUP_MEMBERS_MAX);
    let cost = plan.schedule.cost(members);
    let shards = cost.shards as f64;
    let share = (members - 1) as f64 / members as f64;
    let (contribution, aggregate) = encoded(plan);
    let whole = (contribution + aggregate) / 2.0;
    let bytes = cost.busiest as f64 / shards * whole;
    let fragments = plan.fragments.len() as f64 / f64::from(plan.overlap.stagger);
    let chain = cost.hops as f64 / shards / fragments * whole;
    let slower = cluster.link.up.min(cluster.link.down);
    let hops = u32::try_from(cost.hops).unwrap_or(u32::MAX);
    let latency: Duration = cluster.link.latency * hops.saturating_add(HOPS_AGREEMENT);
    let values = exchanged(plan, cluster);
    Traffic {
        up: bytes,
        down: bytes,
        seconds: bytes.max(chain) / slower + latency.as_secs_f64(),
        // Encode all, sum up one shard of every member, apply all.
        values: 3.0 * values,
        held: contribution + aggregate + share * contribution,
    }
}

/// Gathered contributions among g members: each sends its whole contribution to the g - 1 others and
/// gets theirs: T = (g-1) C / min(up, down) + 4 latencies.
fn gathered(plan: &Plan, cluster: &Cluster) -> Traffic {
    let members = cluster.peers.min(GROUP_MEMBERS_MAX) as f64;
    let (contribution, _) = encoded(plan);
    let bytes = (members - 1.0) * contribution;
    let latency: Duration = cluster.link.latency * (HOPS_AGREEMENT + 1);
    let values = exchanged(plan, cluster);
    Traffic {
        up: bytes,
        down: bytes,
        seconds: bytes / cluster.link.up.min(cluster.link.down) + latency.as_secs_f64(),
        // Encode all, sum up all of every member, apply all.
        values: (2.0 + members) * values,
        held: members * contribution,
    }
}

/// A parameter server of k owners among g members in step: the owners' links bind, over which the
/// contributions of g - 1 others to their k-th part come in and as many reductions go out:
/// T = (g-1)/k (C + A) / min(up, down) + 5 latencies. Bytes are those of an owner; who owns nothing
/// moves C up and A down.
fn in_step(plan: &Plan, cluster: &Cluster, owners: u16) -> Traffic {
    let members = cluster.peers.min(GROUP_MEMBERS_MAX) as f64;
    let owners = f64::from(owners).min(members);
    let (contribution, aggregate) = encoded(plan);
    let (inward, outward) = (
        (members - 1.0) / owners * contribution,
        (members - 1.0) / owners * aggregate,
    );
    // Its own part it neither sends nor gets.
    let rest = 1.0 - 1.0 / owners;
    let slower = cluster.link.up.min(cluster.link.down);
    let latency: Duration = cluster.link.latency * (HOPS_AGREEMENT + 2);
    let values = exchanged(plan, cluster);
    Traffic {
        up: outward + rest * contribution,
        down: inward + rest * aggregate,
        seconds: (inward + outward) / slower + latency.as_secs_f64(),
        // Encode all, sum up a part of every member, apply all.
        values: (2.0 + members / owners) * values,
        held: contribution + aggregate + inward,
    }
}

/// A parameter server of k owners among n peers that go on by themselves: a worker's round takes its own
/// contribution up and the center down, and shares the owners' links with n - 1 others:
/// T = max(C + M, (n-1)/k (C + M)) / min(up, down) + 2 latencies. Bytes are those of an owner.
fn one_by_one(plan: &Plan, cluster: &Cluster, owners: u16) -> Traffic {
    let peers = cluster.peers as f64;
    let owners = f64::from(owners).min(peers);
    let (contribution, center) = encoded(plan);
    let share = (peers - 1.0) / owners;
    let rest = 1.0 - 1.0 / owners;
    let slower = cluster.link.up.min(cluster.link.down);
    let latency: Duration = cluster.link.latency * 2;
    let values = cluster.parameters as f64;
    Traffic {
        up: share * center + rest * contribution,
        down: share * contribution + rest * center,
        seconds: share.max(1.0) * (contribution + center) / slower + latency.as_secs_f64(),
        // Encode all, move a part by every arrival and encode it for each, apply all.
        values: (2.0 + 2.0 * peers / owners) * values,
        held: 2.0 * contribution + center,
    }
}

/// Pairs: in every round one exchange begun and one answered at most, one of each on average; nobody
/// waits for them: T = 0.
fn pairs(plan: &Plan, cluster: &Cluster) -> Traffic {
    let (contribution, _) = encoded(plan);
    Traffic {
        up: contribution,
        down: contribution,
        seconds: 0.0,
        // Encode, and mix the own and the other's.
        values: 3.0 * cluster.parameters as f64,
        held: 2.0 * contribution,
    }
}

/// Sums relayed along a tree, over reversed ranks in every second fragment: one message to each of d neighbours
/// and one from each. The busiest peer binds: T = max_i sum_f d_if C_f / min(up, down) + latency; bytes are its.
fn relayed(strategy: &Strategy, plan: &Plan, cluster: &Cluster) -> Traffic {
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
            // A message to each neighbour of all others', the mix, and to apply it.
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

/// Gossip, of parameters or of differences to replicas: the whole contribution to each partner, as much from each; d pushes share the uplink:
/// T = d C / min(up, down) + latency.
fn gossip(strategy: &Strategy, plan: &Plan, cluster: &Cluster) -> Traffic {
    let (contribution, _) = encoded(plan);
    let degree = strategy.topology(0).map_or(0.0, |topology| {
        let ranks = cluster.peers.min(SAMPLED);
        let pushes = (0..ranks * SAMPLED).map(|draw| {
            let round = Round((draw / ranks) as u64);
            topology
                .partners(round, draw % ranks, cluster.peers)
                .send
                .len()
        });
        pushes.sum::<usize>() as f64 / (ranks * SAMPLED) as f64
    });
    let bytes = degree * contribution;
    let slower = cluster.link.up.min(cluster.link.down);
    Traffic {
        up: bytes,
        down: bytes,
        seconds: bytes / slower + cluster.link.latency.as_secs_f64(),
        // Encode once, mix one's own and each partner's.
        values: (2.0 + degree) * cluster.parameters as f64,
        held: (1.0 + degree) * contribution,
    }
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
}
