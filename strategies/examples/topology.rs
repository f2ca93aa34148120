//! A topology from its matrix to its speed: every peer mixes with the peers opposite and beside it.
//!
//! ```text
//! cargo run -p murmurate-strategies --example topology
//! ```
//!
//! To make it a topology of the grid, see "How to add a topology" in CONTRIBUTING.md.

#[path = "../tests/numbers/spectrum.rs"]
mod spectrum;

use murmurate_protocol::{Partners, Round, Topology};
use murmurate_strategies::topology::Ring;
use spectrum::{contraction, mixing_matrix};

/// Peers that mix.
const PEERS: usize = 16;

/// A ring with chords: rank i mixes with i - 1, i + 1 and i + n/2, a quarter each.
///
/// W is symmetric, so its rows and columns sum to one and the mean of all peers is kept. An odd n,
/// or one below four, has no chord: those peers keep the quarter themselves.
#[derive(Clone, Copy, Debug)]
struct Chords;

impl Topology for Chords {
    fn partners(&self, _round: Round, rank: usize, count: usize) -> Partners {
        let mut receive = match count {
            0 | 1 => Vec::new(),
            2 => vec![1 - rank],
            _ => vec![(rank + 1) % count, (rank + count - 1) % count],
        };
        if count >= 4 && count.is_multiple_of(2) {
            receive.push((rank + count / 2) % count);
        }
        // The order is part of the contract: ascending, so that all peers add in the same order.
        receive.sort_unstable();
        Partners {
            send: receive.iter().map(|to| (*to, 0.25)).collect(),
            receive,
        }
    }
}

/// The standard deviation over the peers after each of some rounds of mixing.
fn spread(topology: &dyn Topology, rounds: u64) -> Vec<f64> {
    let mut values: Vec<f64> = (0..PEERS).map(|rank| rank as f64).collect();
    let mean = values.iter().sum::<f64>() / PEERS as f64;
    (0..rounds)
        .map(|round| {
            let matrix = mixing_matrix(topology, Round(round), PEERS);
            let mix = |row: &Vec<f64>| row.iter().zip(&values).map(|(w, x)| w * x).sum();
            values = matrix.iter().map(mix).collect();
            let squares = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
            (squares / PEERS as f64).sqrt()
        })
        .collect()
}

fn main() {
    let topologies: [(&str, &dyn Topology); 2] = [("ring", &Ring), ("chords", &Chords)];
    for (name, topology) in topologies {
        let factor = contraction(&mixing_matrix(topology, Round(0), PEERS));
        println!("{name}: a round leaves at most {factor:.3} of the distance from the mean");
        let mut last = f64::INFINITY;
        for (round, spread) in spread(topology, 8).into_iter().enumerate() {
            println!("  round {}: spread {spread:.4}", round + 1);
            assert!(spread <= last * factor + 1e-12);
            last = spread;
        }
    }
    let rows = mixing_matrix(&Chords, Round(0), PEERS);
    assert!(
        rows.iter()
            .all(|row| (row.iter().sum::<f64>() - 1.0).abs() < 1e-12)
    );
}
