//! Topology `matcha`: the matchings of a torus, each active only in some rounds.

use super::TopologySpec;
use super::draw;
use super::torus::sides;
use super::weights::symmetric;
use crate::parameter::{Parameter, Range};
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
    name: "matcha",
    summary: "a torus's matchings, each in some rounds",
    equation: "W = I - sum_j B_j L_j / (1 + d), B_j ~ Bernoulli(budget), L_j the Laplacian of matching j",
    source: "Wang et al., arXiv 1905.09435",
    parameters: &[Parameter {
        name: "budget",
        range: Range::OpenClosed(0.0, 1.0),
        default: Some(0.5),
        about: "the share of the edges in force in a round",
    }],
    ..TopologySpec::symmetric(|kind, seed| Box::new(Matcha::new(seed, kind.number("budget"))))
};

/// MATCHA on the torus: its edges fall into at most six matchings (by parity along each axis, and a
/// third for an odd axis); in each round matching j is active with probability `budget`,
/// independently, and
///
/// ```text
/// W = I - alpha sum_j B_j L_j,   alpha = 1 / (1 + d),   B_j ~ Bernoulli(budget)
/// ```
///
/// with `L_j` the matching's Laplacian and d the torus's degree. Symmetric and doubly stochastic in
/// every round. On average `budget * d` pushes a round, and with `L = sum_j L_j` `E[W^2] = I - 2
/// alpha budget L + alpha^2 (budget^2 L^2 + 2 budget (1 - budget) L)`. Source: Wang et al.,
/// "MATCHA: speeding up decentralized SGD via matching decomposition sampling" (2019), section
/// 3. It differs from the paper in two choices. All matchings have the same probability, because the
/// torus looks the same from every edge. And alpha keeps every draw nonnegative, as push-sum needs,
/// while the paper's is the optimum over the mean. Special case: budget 1 is [`Torus`](super::Torus).
#[derive(Clone, Copy, Debug)]
pub struct Matcha {
    seed: u64,
    budget: f64,
}

/// Matchings of one axis.
const COLOURS: usize = 3;

impl Matcha {
    /// All peers of a run need the same seed; `budget` is the share of active edges, in (0, 1].
    pub const fn new(seed: u64, budget: f64) -> Self {
        Self { seed, budget }
    }

    /// The partners of a rank when the matchings in `active` are used: the vertical ones first,
    /// then the level ones.
    pub fn with_active(active: [bool; 2 * COLOURS], rank: usize, count: usize) -> Partners {
        if count < 2 {
            return Partners::default();
        }
        let (rows, columns) = sides(count);
        let (row, column) = (rank / columns, rank % columns);
        let (vertical, level) = (edges(row, rows), edges(column, columns));
        let share = 1.0 / (1 + vertical.len() + level.len()) as f64;
        let vertical = vertical
            .into_iter()
            .map(|(at, colour)| (at * columns + column, active[colour]));
        let level = level
            .into_iter()
            .map(|(at, colour)| (row * columns + at, active[COLOURS + colour]));
        let chosen = vertical.chain(level).filter(|(_, active)| *active);
        symmetric(chosen.map(|(other, _)| (other, share)).collect())
    }
}

/// The neighbours of `at` on a circle of `len`, each with the colour of its edge.
fn edges(at: usize, len: usize) -> Vec<(usize, usize)> {
    let colour = |from: usize| match from {
        _ if from + 1 < len => from % 2,
        _ if len.is_multiple_of(2) => 1,
        _ => 2,
    };
    match len {
        0 | 1 => Vec::new(),
        2 => vec![(1 - at, 0)],
        _ => {
            let before = (at + len - 1) % len;
            vec![((at + 1) % len, colour(at)), (before, colour(before))]
        }
    }
}

impl Topology for Matcha {
    fn partners(&self, round: Round, rank: usize, count: usize) -> Partners {
        let mut rng = draw::stream(self.seed, round.0);
        let active = [(); 2 * COLOURS].map(|()| draw::uniform(&mut rng) < self.budget);
        Self::with_active(active, rank, count)
    }
}
