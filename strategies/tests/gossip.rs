//! Gossip between real peers and Executors: what they hold together stays what it was, and the
//! parameters come together at their mean.
#![allow(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

mod common;

use common::{Resting, Swarm, peer};
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
fn pushes_that_nobody_waits_for_conserve_the_sums() {
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
