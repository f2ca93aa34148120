//! Gossip between real peers and Executors: what they hold together stays what it was, and the
//! parameters come together at their mean.

use crate::common::{Resting, Swarm, peer};
use murmurate_protocol::Round;
use murmurate_strategies::Trainer;

const DIM: usize = 37;
const ROUNDS: u64 = 24;

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
            let make = Box::new(|index| Box::new(Resting::new(index, DIM)) as Box<dyn Trainer>);
            let mut swarm = Swarm::new(&text, peers, 0, make);
            swarm.run(ROUNDS);
            // All are within the same round's training: nothing is under way.
            assert_eq!(swarm.rounds(), vec![ROUNDS; peers], "{topology} {peers}");
            let weights: f64 = swarm.members.values().map(|m| m.peer.weight_held()).sum();
            assert!(
                (weights - peers as f64).abs() < 1e-9,
                "{topology} {peers}: {weights}"
            );
            let starts: Vec<Resting> = (0..peers).map(|index| Resting::new(index, DIM)).collect();
            for at in 0..DIM {
                let sum: f64 = starts.iter().map(|t| f64::from(t.x[at])).sum();
                let held = (0..peers).map(|index| {
                    let member = &swarm.members[&peer(index)];
                    member.peer.weight_held() * f64::from(member.executor.anchor()[at])
                });
                let now: f64 = held.sum();
                assert!(
                    (now - sum).abs() < 1e-3,
                    "{topology} {peers}: {now} is not {sum}"
                );
                let mean = sum / peers as f64;
                for member in swarm.members.values() {
                    let off = (f64::from(member.executor.anchor()[at]) - mean).abs();
                    assert!(off < 0.5, "{topology} {peers}: {off} from the mean");
                }
            }
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
            let make = Box::new(|index| Box::new(Resting::new(index, DIM)) as Box<dyn Trainer>);
            let mut swarm = Swarm::new(&text, peers, 3, make);
            let starts: Vec<Resting> = (0..peers).map(|i| Resting::new(i, DIM)).collect();
            // Rounds are each peer's own: rows stay convex whichever of them an answer is of.
            let mut apart = f64::INFINITY;
            for rounds in [1, 4, ROUNDS, 3 * ROUNDS] {
                swarm.run(rounds);
                let mut spread = 0.0f64;
                for at in 0..DIM {
                    let bounds = |values: &mut dyn Iterator<Item = f32>| {
                        values.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), v| {
                            (low.min(v), high.max(v))
                        })
                    };
                    let (low, high) = bounds(&mut starts.iter().map(|t| t.x[at]));
                    let members = swarm.members.values();
                    let (least, most) = bounds(&mut members.map(|m| m.executor.anchor()[at]));
                    // A few roundings of f32 a mix.
                    let rounding = 1e-5 * low.abs().max(high.abs());
                    assert!(
                        least >= low - rounding && most <= high + rounding,
                        "{topology} {peers}: {least} to {most} is not within {low} to {high}"
                    );
                    spread = spread.max(f64::from(most - least));
                }
                apart = spread;
            }
            assert!(apart < 0.02, "{topology} {peers}: {apart} apart");
        }
    }
}

/// SAPS: the two of a pair take the mean of the same random places, and all other values stay.
#[test]
fn pairs_mix_the_same_part_at_both_ends() {
    for (peers, seed) in [(2, 0), (4, 1), (6, 2), (8, 3)] {
        let make = Box::new(|index| Box::new(Resting::new(index, DIM)) as Box<dyn Trainer>);
        let mut swarm = Swarm::new("preset = \"saps\"", peers, seed, make);
        let rounds = 20 * ROUNDS;
        swarm.run(rounds);
        let starts: Vec<Vec<f32>> = (0..peers).map(|i| Resting::new(i, DIM).x).collect();
        let mut before = starts.clone();
        // A tenth of 37 places, rounded up.
        let part = 4;
        for round in (0..rounds).map(Round) {
            let all = (0..peers).map(|i| swarm.members[&peer(i)].anchors[&round].clone());
            let after: Vec<Vec<f32>> = all.collect();
            let moved = |i: usize, d: usize| after[i][d] != before[i][d];
            for i in 0..peers {
                let places = (0..DIM).filter(|d| moved(i, *d));
                assert!(places.count() <= part, "{peers} peers, {round}");
            }
            for d in 0..DIM {
                let sum = |of: &[Vec<f32>]| of.iter().map(|x| f64::from(x[d])).sum::<f64>();
                let off = (sum(&after) - sum(&before)).abs();
                // A rounding of f32 a peer.
                assert!(off < 1e-5, "{peers} peers, {round}, value {d}: {off}");
            }
            before = after;
        }
        for d in 0..DIM {
            let mean = starts.iter().map(|x| f64::from(x[d])).sum::<f64>() / peers as f64;
            for x in &before {
                let off = (f64::from(x[d]) - mean).abs();
                assert!(off < 0.05, "{peers} peers: {off} from the mean");
            }
        }
    }
}

#[test]
fn pushes_without_waiting_conserve_the_sums() {
    for topology in ["one-peer-exponential", "equi-dyn", "random-matching"] {
        for (peers, seed) in [(2, 0), (3, 1), (8, 2)] {
            let text = format!("preset = \"osgp\"\n[architecture]\ntopology = \"{topology}\"");
            let make = Box::new(|index| Box::new(Resting::new(index, DIM)) as Box<dyn Trainer>);
            let mut swarm = Swarm::new(&text, peers, seed, make);
            swarm.run(10 * ROUNDS);
            let weights: f64 = swarm.members.values().map(|m| m.peer.weight_held()).sum();
            assert!(
                (weights - peers as f64).abs() < 1e-9,
                "{text} {peers}: {weights}"
            );
            let starts: Vec<Resting> = (0..peers).map(|i| Resting::new(i, DIM)).collect();
            for at in 0..DIM {
                let mean = starts.iter().map(|t| f64::from(t.x[at])).sum::<f64>() / peers as f64;
                for member in swarm.members.values() {
                    let off = (f64::from(member.executor.anchor()[at]) - mean).abs();
                    assert!(off < 0.05, "{text} {peers}: {off} from the mean");
                }
            }
        }
    }
}
