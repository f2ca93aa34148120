//! Gossip between real peers and Executors: what they hold together stays what it was, and the
//! parameters come together at their mean.

use super::{DIM, mean, near_their_mean, resting, starts, sum};
use crate::common::{Swarm, near, peer, wide};
use murmurate_protocol::Round;
const ROUNDS: u64 = 24;

/// Checks that the weights of all members sum to their number.
fn weights_sum(swarm: &Swarm, what: &str) {
    let weights: f64 = swarm.members.values().map(|m| m.peer.weight_held()).sum();
    let off = (weights - swarm.members.len() as f64).abs();
    assert!(off < 1e-9, "{what}: {weights}");
}

#[test]
fn the_sums_of_x_and_of_the_weight_are_conserved() {
    for topology in [
        "ring",
        "complete",
        "random-matching",
        "one-peer-exponential",
    ] {
        for peers in [2, 3, 5, 8] {
            let text = format!("preset = \"d-psgd\"\n[architecture]\ntopology = \"{topology}\"");
            let mut swarm = resting(&text, peers, 0);
            swarm.run(ROUNDS);
            let what = format!("{topology} {peers}");
            // All are within the same round's training: nothing is under way.
            assert_eq!(swarm.rounds(), vec![ROUNDS; peers], "{what}");
            weights_sum(&swarm, &what);
            let weighted = swarm.members.values().map(|member| {
                let weight = member.peer.weight_held();
                let anchor = wide(member.executor.anchor()).into_iter();
                anchor.map(|x| weight * x).collect()
            });
            let now = sum(&weighted.collect::<Vec<_>>());
            for (now, sum) in now.iter().zip(sum(&starts(0..peers))) {
                assert!((now - sum).abs() < 1e-3, "{what}: {now} is not {sum}");
            }
            near_their_mean(&swarm, 0.5, &what);
        }
    }
}

#[test]
fn pulls_stay_within_what_was_there_and_come_together() {
    for topology in [
        "ring",
        "complete",
        "random-matching",
        "one-peer-exponential",
        "equi-dyn",
        "star",
    ] {
        for peers in [2, 3, 5, 8] {
            let text = format!(
                "preset = \"d-psgd\"\n[architecture]\nexchange = \"pull\"\ntopology = \"{topology}\""
            );
            let mut swarm = resting(&text, peers, 3);
            let starts = starts(0..peers);
            // Rounds are each peer's own: rows stay convex whichever of them an answer is of.
            let mut apart = f64::INFINITY;
            for rounds in [1, 4, ROUNDS, 3 * ROUNDS] {
                swarm.run(rounds);
                let members = swarm.members.values();
                let now: Vec<_> = members.map(|m| wide(m.executor.anchor())).collect();
                let bounds = |of: &[Vec<f64>], at: usize| {
                    of.iter().fold((f64::MAX, f64::MIN), |(low, high), x| {
                        (low.min(x[at]), high.max(x[at]))
                    })
                };
                apart = 0.0;
                for at in 0..DIM {
                    let ((low, high), (least, most)) = (bounds(&starts, at), bounds(&now, at));
                    // A few roundings of f32 a mix.
                    let rounding = 1e-5 * low.abs().max(high.abs());
                    assert!(
                        least >= low - rounding && most <= high + rounding,
                        "{topology} {peers}: {least} to {most} is not within {low} to {high}"
                    );
                    apart = apart.max(most - least);
                }
            }
            assert!(apart < 0.02, "{topology} {peers}: {apart} apart");
        }
    }
}

/// SAPS: the two of a pair take the mean of the same random places, and all other values stay.
#[test]
fn pairs_mix_the_same_part_at_both_ends() {
    for (peers, seed) in [(2, 0), (4, 1), (6, 2), (8, 3)] {
        let mut swarm = resting("preset = \"saps\"", peers, seed);
        let rounds = 20 * ROUNDS;
        swarm.run(rounds);
        let mut before = starts(0..peers);
        // A tenth of 37 places, rounded up.
        let part = 4;
        for round in (0..rounds).map(Round) {
            let all = (0..peers).map(|i| wide(&swarm.members[&peer(i)].anchors[&round]));
            let after: Vec<Vec<f64>> = all.collect();
            for (before, after) in before.iter().zip(&after) {
                let moved = before.iter().zip(after).filter(|(b, a)| b != a);
                assert!(moved.count() <= part, "{peers} peers, {round}");
            }
            for (d, (after, before)) in sum(&after).iter().zip(sum(&before)).enumerate() {
                let off = (after - before).abs();
                // A rounding of f32 a peer.
                assert!(off < 1e-5, "{peers} peers, {round}, value {d}: {off}");
            }
            before = after;
        }
        let mean = mean(&starts(0..peers));
        for index in 0..peers {
            let last = &swarm.members[&peer(index)].anchors[&Round(rounds - 1)];
            near(last, &mean, 0.05, &format!("{peers} peers"));
        }
    }
}

#[test]
fn pushes_without_waiting_conserve_the_sums() {
    for topology in ["one-peer-exponential", "equi-dyn", "random-matching"] {
        for (peers, seed) in [(2, 0), (3, 1), (8, 2)] {
            let text = format!("preset = \"osgp\"\n[architecture]\ntopology = \"{topology}\"");
            let mut swarm = resting(&text, peers, seed);
            swarm.run(10 * ROUNDS);
            let what = format!("{text} {peers}");
            weights_sum(&swarm, &what);
            near_their_mean(&swarm, 0.05, &what);
        }
    }
}
