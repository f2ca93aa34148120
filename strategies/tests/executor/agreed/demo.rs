//! Preset `demo` against its paper's algorithm in f64: momentum, cosines, what is kept of them, the mean, its sign.

use crate::common::{Swarm, peer, quadratic};
use murmurate_protocol::Round;
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::toy::Quadratic;

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
    let mut order: Vec<usize> = (0..4096).collect();
    order.sort_by(|a, b| of[*b].abs().total_cmp(&of[*a].abs()));
    let mut kept = vec![0.0; 4096];
    for at in &order[..KEPT] {
        kept[*at] = of[*at];
    }
    let mut back = cosines(&kept, true);
    back.truncate(values.len());
    back
}

#[test]
fn demo_is_the_papers_algorithm() {
    let task = quadratic(DIM, 1.0, InnerKind::sgd(0.1));
    let make = Box::new(move |index| task.build(index, PEERS, 11));
    let mut swarm = Swarm::new("preset = \"demo\"", PEERS, 0, make);
    swarm.run(12);
    let tasks: Vec<Quadratic> = (0..PEERS)
        .map(|index| Quadratic::new(DIM, 1.0, 0.0, [index, PEERS], 11))
        .collect();
    let mut x: Vec<f64> = swarm.initial.iter().map(|x| f64::from(*x)).collect();
    let mut momenta = vec![vec![0.0; DIM]; PEERS];
    for round in 0..12 {
        let mut mean = vec![0.0; DIM];
        for (task, momentum) in tasks.iter().zip(&mut momenta) {
            let (curvature, center) = task.own();
            for (at, m) in momentum.iter_mut().enumerate() {
                *m = 0.999 * *m + f64::from(curvature[at]) * (x[at] - f64::from(center[at]));
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
        let found = &swarm.members[&peer(0)].anchors[&Round(round)];
        for ((x, mean), found) in x.iter_mut().zip(&mean).zip(found) {
            assert!(mean.abs() > 1e-5, "round {round}: no sign of {mean}");
            *x -= RATE * mean.signum();
            assert!(
                (f64::from(*found) - *x).abs() < 1e-5,
                "round {round}: {found} is not {x}"
            );
        }
    }
}
