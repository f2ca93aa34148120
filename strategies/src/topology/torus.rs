//! Topology `torus`: a grid whose edges wrap around.

use super::TopologySpec;
use super::weights::symmetric;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
    name: "torus",
    summary: "four neighbours on a grid that wraps around",
    equation: "W_ii = W_ij = 1 / (1 + d) for the d neighbours j on a grid of a x b = n",
    source: "Koloskova et al., ICML 2019",
    spans: true,
    ..TopologySpec::symmetric(|_, _| Box::new(Torus))
};

/// Ranks lie row by row on a grid of `a x b` with a the largest divisor of n up to its root; each
/// peer mixes with the distinct neighbours along both axes, `W[i][i] = W[i][j] = 1 / (1 + d)`.
///
/// Symmetric and doubly stochastic; the same in every round. An axis of length m gives two
/// neighbours for m > 2, one for m = 2, none for m = 1. Eigenvalues
/// `(1 + t_a(k) + t_b(l)) / (1 + d)` with `t_m(k) = 2 cos(2 pi k / m)`, `cos(pi k)`, `0`
/// respectively, so the gap is `O(1 / n)` for square n. Source: the torus in Koloskova et al.,
/// "Decentralized stochastic optimization and gossip algorithms with compressed communication"
/// (ICML 2019), table 1. Special case: prime n is [`Ring`](super::Ring).
#[derive(Clone, Copy, Debug, Default)]
pub struct Torus;

/// Rows and columns for `count` peers.
pub(super) fn sides(count: usize) -> (usize, usize) {
    let rows = (1..=count.isqrt().max(1))
        .rev()
        .find(|rows| count.is_multiple_of(*rows))
        .unwrap_or(1);
    (rows, count / rows)
}

/// The distinct neighbours of `at` on a circle of `len`.
fn beside(at: usize, len: usize) -> Vec<usize> {
    match len {
        0 | 1 => Vec::new(),
        2 => vec![1 - at],
        _ => vec![(at + 1) % len, (at + len - 1) % len],
    }
}

impl Topology for Torus {
    fn partners(&self, _round: Round, rank: usize, count: usize) -> Partners {
        let (rows, columns) = sides(count);
        if count < 2 {
            return Partners::default();
        }
        let (row, column) = (rank / columns, rank % columns);
        let vertical = beside(row, rows).into_iter().map(|r| r * columns + column);
        let level = beside(column, columns)
            .into_iter()
            .map(|c| row * columns + c);
        let all: Vec<usize> = vertical.chain(level).collect();
        let share = 1.0 / (1 + all.len()) as f64;
        symmetric(all.into_iter().map(|other| (other, share)).collect())
    }
}
