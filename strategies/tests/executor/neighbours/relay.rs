//! RelaySum with real peers and Executors: the parameters of every peer are in every mean once, delayed by the
//! distance; costs are those of the doc; faults leave the mean of what is there, and the optimum.

use super::{DIM, MOMENTS, dies, mean, starts};
use crate::common::check::losses;
use crate::common::{Fate, Resting, Swarm, near, peer};
use murmurate_protocol::{FragmentId, Round, SpanningTree};
use murmurate_strategies::Trainer;
use murmurate_strategies::compress::{Codec, CodecKind, EncodeContext};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::topology::TopologyKind;
use murmurate_strategies::toy::ToyTask;
use std::collections::BTreeMap;

/// What the grid relays along.
const KINDS: [&str; 5] = ["binary-tree", "exponential", "hypercube", "ring", "torus"];

fn text(topology: &str) -> String {
    format!("preset = \"relaysgd\"\n[architecture]\ntopology = \"{topology}\"")
}

fn tree(strategy: &Strategy, count: usize) -> SpanningTree {
    SpanningTree::of(&*strategy.topology(7).unwrap(), count)
}

/// How far each rank is from one.
fn distances(tree: &SpanningTree, from: usize) -> BTreeMap<usize, u64> {
    let mut far = BTreeMap::new();
    let mut open = vec![(from, 0)];
    while let Some((rank, distance)) = open.pop() {
        far.insert(rank, distance);
        let on = tree.neighbours(rank).into_iter();
        let on: Vec<usize> = on.filter(|to| !far.contains_key(to)).collect();
        open.extend(on.into_iter().map(|to| (to, distance + 1)));
    }
    far
}

fn steady(text: &str, peers: usize, seed: u64) -> Swarm {
    let make = Box::new(|index| Box::new(Resting::home(index, DIM)) as Box<dyn Trainer>);
    Swarm::new(text, peers, seed, make)
}

/// Checks that all members have the mean of what these began with.
fn have_the_mean_of(swarm: &Swarm, of: impl IntoIterator<Item = usize>, what: &str) {
    let expected = mean(&starts(of));
    for (who, member) in &swarm.members {
        // Sums of at most 33 f32 of up to 10.
        let what = format!("{what} {who:?}");
        near(member.executor.anchor(), &expected, 1e-4, &what);
    }
}

#[test]
fn parameters_at_rest_are_the_exact_mean_after_the_diameter() {
    for topology in KINDS {
        for (peers, seed) in [(2, 0), (3, 1), (7, 2), (8, 0), (13, 3)] {
            let mut swarm = steady(&text(topology), peers, seed);
            let diameter = tree(&swarm.strategy, peers).diameter() as u64;
            swarm.run(diameter + 3);
            let expected = mean(&starts(0..peers));
            let mut late = 0;
            for (who, member) in &swarm.members {
                for (round, anchor) in &member.anchors {
                    let what = format!("{topology} {peers} {who:?} {round}");
                    if round.0 >= diameter {
                        near(anchor, &expected, 1e-4, &what);
                        late += 1;
                    }
                }
                // Before, the farthest are missing, unless all are neighbours.
                let early = &member.anchors[&Round(0)];
                let mut pairs = early.iter().zip(&expected);
                let off = pairs.any(|(x, m)| (f64::from(*x) - m).abs() > 1e-2);
                assert!(off || diameter < 3, "{topology} {peers}");
            }
            assert!(late >= 3 * peers);
        }
    }
}

/// In training, too: the mix of round r is the mean of what j had trained in round r - (d_ij - 1).
#[test]
fn parameters_of_one_round_are_in_every_mean_delayed_by_the_distance() {
    for topology in KINDS {
        let peers = 8;
        let task = ToyTask::Quadratic {
            dim: DIM,
            heterogeneity: 0.5,
            noise: 0.1,
            inner: *Strategy::preset("relaysgd").unwrap().inner_kind(),
        };
        let mut swarm = Swarm::training(&text(topology), task, peers, [0, 3]);
        swarm.run(24);
        let tree = tree(&swarm.strategy, peers);
        let trained = |index: usize, round: u64, at: usize| {
            let member = &swarm.members[&peer(index)];
            let before = f64::from(member.anchors[&Round(round - 1)][at]);
            before + member.deltas[&Round(round)][at]
        };
        let cut = DIM - swarm.plan.fragments[1].len as usize;
        for (fragment, range) in [0..cut, cut..DIM].into_iter().enumerate() {
            for index in 0..peers {
                // The second fragment's tree is over reversed ranks.
                let flip = |index: usize| {
                    if fragment == 0 {
                        index
                    } else {
                        peers - 1 - index
                    }
                };
                let far = distances(&tree, flip(index));
                for at in range.clone() {
                    let sum: f64 = far
                        .iter()
                        .map(|(rank, far)| trained(flip(*rank), 22 - far.saturating_sub(1), at))
                        .sum();
                    let expected = sum / peers as f64;
                    let found = f64::from(swarm.members[&peer(index)].anchors[&Round(22)][at]);
                    let off = (found - expected).abs();
                    assert!(off < 1e-4, "{topology} {fragment} {index} {at}: {off}");
                }
            }
        }
    }
}

#[test]
fn a_round_is_one_push_along_every_edge_in_either_way() {
    for peers in 2..=33 {
        let mut swarm = steady("preset = \"relaysgd\"", peers, 0);
        let rounds = 4;
        swarm.run(rounds);
        let mut pushed: BTreeMap<(Round, FragmentId), (usize, u64)> = BTreeMap::new();
        for (slice, bytes) in &swarm.encoded {
            if slice.round.0 < rounds {
                let (count, all) = pushed.entry((slice.round, slice.fragment)).or_default();
                (*count, *all) = (*count + 1, *all + bytes.len() as u64);
            }
        }
        assert_eq!(pushed.len() as u64, 2 * rounds);
        for ((round, fragment), (count, bytes)) in pushed {
            let plan = swarm.plan.fragment(fragment).unwrap();
            let edges = 2 * (peers - 1);
            assert_eq!(count, edges, "{peers} peers, {round}");
            let expected = edges as u64 * plan.contribution.of(plan.len);
            assert_eq!(bytes, expected, "{peers} peers, {round}");
        }
    }
}

#[test]
fn what_is_lost_or_of_unknown_fate_costs_no_more_than_a_delay() {
    for seed in 1..6 {
        let mut swarm = steady("preset = \"relaysgd\"", 7, seed);
        swarm.fate = Box::new(losses(seed * 77, 1));
        swarm.run(100);
        swarm.fate = Box::new(|_| Fate::Delivered);
        let from = swarm.rounds().into_iter().max().unwrap();
        swarm.run(from + 12);
        have_the_mean_of(&swarm, 0..7, &format!("{seed}"));
    }
}

#[test]
fn a_death_at_any_message_leaves_the_others_with_the_mean_of_their_own() {
    // A root of one tree, one inside both, a leaf of one.
    for victim in [0, 2, 6] {
        for (name, moment) in MOMENTS {
            let mut swarm = steady("preset = \"relaysgd\"", 7, 9);
            let from = dies(&mut swarm, victim, 9, moment);
            swarm.run(from + 12);
            let left = (0..7).filter(|index| *index != victim);
            have_the_mean_of(&swarm, left, &format!("{victim} dies at its {name}:"));
        }
    }
}

#[test]
fn a_newcomer_is_in_the_mean_after_the_diameter() {
    let mut swarm = steady("preset = \"relaysgd\"", 5, 0);
    swarm.run(10);
    swarm.add(5, true);
    swarm.run_until(|swarm| {
        let new = &swarm.members[&peer(5)];
        new.peer.round().0 > 15 && new.anchors.len() > 10
    });
    have_the_mean_of(&swarm, 0..6, "with the newcomer");
}

/// Why the grid takes none but lossless codecs here: most of a mix is what others encoded, and what rounding takes off
/// small moves of the parameters is lost in every round.
#[test]
fn a_codec_that_rounds_parameters_takes_small_moves_off_them() {
    let (peers, rate) = (8.0_f32, 1e-3);
    let goal = |at: usize| 1.0 + (at % 61) as f32 / 61.0;
    let end = |codec: &mut dyn Codec| {
        let mut x = vec![1.0_f32; 256];
        for round in 0..8000 {
            let moved = |(at, x): (usize, &f32)| x - rate * (x - goal(at));
            let trained: Vec<f32> = x.iter().enumerate().map(moved).collect();
            let (mut out, mut memory) = (Vec::new(), Vec::new());
            codec.encode(
                &trained,
                &mut EncodeContext::seeded(round, &mut memory),
                &mut out,
            );
            // All peers are equal: a share of 1/n is the peer's own, the rest arrives encoded.
            x = trained.iter().map(|v| v / peers).collect();
            codec
                .decode_add(&out, (peers - 1.0) / peers, &mut x)
                .unwrap();
        }
        let off = x.iter().enumerate().map(|(at, x)| x - goal(at));
        (off.map(|off| off * off).sum::<f32>() / 256.0).sqrt()
    };
    let left = |name: &str| end(&mut *CodecKind::new(name, &[]).unwrap().build());
    assert!(left("f32") < 1e-3);
    // It began at 0.58.
    for name in ["bf16", "fp16", "int8", "fp8-e4m3"] {
        let left = left(name);
        assert!(left > 0.2, "{name}: {left}");
    }
}

#[test]
fn trees_span_and_have_few_neighbours() {
    for kind in KINDS {
        let topology = TopologyKind::new(kind, &[]).unwrap().build(0);
        for count in 1..=70usize {
            let tree = SpanningTree::of(&*topology, count);
            assert!((1..count).all(|rank| tree.parent(rank) < Some(rank)));
            assert!((1..count).all(|rank| tree.parent(rank).is_some()));
            assert_eq!(tree.size(0), count, "{kind} {count}");
            assert_eq!(distances(&tree, 0).len(), count);
            let most = 2 + 2 * (count as f64).log2().ceil() as usize;
            assert!(tree.degree() <= most, "{kind} {count}: {}", tree.degree());
        }
    }
}
