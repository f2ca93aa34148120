//! Preset `demo` against its paper's algorithm in f64: momentum, cosines, what is kept of them, the mean, its sign.

use crate::common::{Swarm, gradient, near, peer, quadratic, quadratics, wide};
use crate::numbers;
use murmurate_protocol::Round;
use murmurate_strategies::inner::InnerKind;

const DIM: usize = 203;
const PEERS: usize = 3;
const RATE: f64 = 0.001;
const KEPT: usize = 32;

/// Orthonormal cosines of a tile of 64 x 64, or with `back` the tile of its cosines.
fn cosines(tile: &[f64], back: bool) -> Vec<f64> {
    let basis = |i: usize, k: usize| {
        let angle = core::f64::consts::PI * ((2 * i + 1) * k) as f64 / 128.0;
        angle.cos() * if k == 0 { 0.125 } else { 2f64.sqrt() / 8.0 }
    };
    let factor = |from: usize, to: usize| {
        if back {
            basis(to, from)
        } else {
            basis(from, to)
        }
    };
    let rows_then_turned = |x: &[f64]| -> Vec<f64> {
        let of = |at: usize| {
            let (row, to) = (at % 64, at / 64);
            (0..64).map(|i| factor(i, to) * x[64 * row + i]).sum()
        };
        (0..4096).map(of).collect()
    };
    rows_then_turned(&rows_then_turned(tile))
}

/// The largest cosines of values that lie at the beginning of a tile, as values again.
fn largest(values: &[f64]) -> Vec<f64> {
    let mut tile = values.to_vec();
    tile.resize(4096, 0.0);
    let of = cosines(&tile, false);
    let kept = numbers::only(&of, &numbers::largest(&of, KEPT));
    let mut back = cosines(&kept, true);
    back.truncate(values.len());
    back
}

#[test]
fn demo_is_the_papers_algorithm() {
    let task = quadratic(DIM, 1.0, InnerKind::sgd(0.1));
    let mut swarm = Swarm::training("preset = \"demo\"", task, PEERS, [0, 11]);
    swarm.run(12);
    let tasks = quadratics(DIM, 1.0, PEERS, 11);
    let mut x = wide(&swarm.initial);
    let mut momenta = vec![vec![0.0; DIM]; PEERS];
    for round in 0..12 {
        let mut mean = vec![0.0; DIM];
        for (task, momentum) in tasks.iter().zip(&mut momenta) {
            for (m, g) in momentum.iter_mut().zip(gradient(task, &x)) {
                *m = 0.999 * *m + g;
            }
            // Every member owns a third, whose tiles begin with it.
            for shard in 0..PEERS {
                let range = DIM * shard / PEERS..DIM * (shard + 1) / PEERS;
                let sent = largest(&momentum[range.clone()]);
                for (at, sent) in range.zip(sent) {
                    momentum[at] -= sent;
                    mean[at] += sent / PEERS as f64;
                }
            }
        }
        for (x, mean) in x.iter_mut().zip(&mean) {
            assert!(mean.abs() > 1e-5, "round {round}: no sign of {mean}");
            *x -= RATE * mean.signum();
        }
        let found = &swarm.members[&peer(0)].anchors[&Round(round)];
        near(found, &x, 1e-5, &format!("round {round}"));
    }
}
