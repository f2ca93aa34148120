//! Topology `base-k`: exact averaging in finitely many rounds for any number of peers, with at most
//! k partners a round.

use super::spec::{TopologySpec, degree};
use super::weights::symmetric;
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
    name: "base-k",
    summary: "exact in finitely many rounds for any n, k partners",
    equation: "n = sum_l a_l (k+1)^(p_l): blocks average within, then across, then within; prod_r W_r = 1 1^T / n",
    source: "Takezawa et al., NeurIPS 2023",
    parameters: &[degree(1.0, "partners in a round, at most")],
    ..TopologySpec::symmetric(|kind, _| Box::new(BaseK::new(kind.count("degree"))))
};

/// The Base-(k+1) graph.
///
/// Write n in base k + 1 as `sum_l a_l (k+1)^(p_l)`, `p_1 > p_2 > ...`, and cut the ranks into
/// blocks `V_l` of `a_l (k+1)^(p_l)`. (1) Every block averages within itself by mixed radix. (2) In
/// round l every rank of the later blocks mixes with one rank of each of the `a_l` parts of `V_l`,
/// with shares `|V_l| / (a_l sum_{m >= l} |V_m|)`: the later blocks then hold the mean, and each
/// part of `V_l` holds it in sum. (3) Each part averages within itself. Where n = p q with p a
/// product of factors up to k + 1, the same on groups of q followed by mixed radix over p, if that
/// is shorter.
///
/// Symmetric and doubly stochastic in every round, and the product over [`BaseK::rounds`] rounds is
/// exactly `(1/n) 1 1^T` for any n: `O(log_{k+1} n)` rounds. Rounds in which a rank holds its
/// result already pass it over. Source: Takezawa et al., "Beyond exponential graph:
/// communication-efficient topologies for decentralized learning via finite-time convergence"
/// (NeurIPS 2023), algorithms 2 (simple) and 3; step (2)'s averaging among equal idle ranks is left
/// out, it changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct BaseK {
    degree: usize,
}

/// One block: `parts` runs of `base^power` ranks each.
struct Block {
    start: usize,
    parts: usize,
    part: usize,
    power: usize,
}

impl Block {
    fn len(&self) -> usize {
        self.parts * self.part
    }

    fn factors(&self, base: usize) -> Vec<usize> {
        let mut factors = vec![base; self.power];
        if self.parts > 1 {
            factors.push(self.parts);
        }
        factors
    }
}

/// The schedule for one n.
struct Schedule {
    base: usize,
    blocks: Vec<Block>,
    /// Mixed radix of the blocks, or of all of it where there is one block.
    whole: Option<Vec<usize>>,
}

impl Schedule {
    fn new(count: usize, base: usize) -> Self {
        let mut blocks = Vec::new();
        let (mut part, mut power) = (1, 0);
        while part * base <= count {
            part *= base;
            power += 1;
        }
        let mut start = 0;
        loop {
            let parts = (count - start) / part;
            if parts > 0 {
                blocks.push(Block {
                    start,
                    parts,
                    part,
                    power,
                });
                start += parts * part;
            }
            if power == 0 {
                break;
            }
            part /= base;
            power -= 1;
        }
        Self {
            base,
            whole: factors(count, base),
            blocks,
        }
    }

    fn first_stage(&self) -> usize {
        let longest = self.blocks.first();
        longest.map_or(0, |block| block.factors(self.base).len())
    }

    fn rounds(&self) -> usize {
        match (&self.whole, self.blocks.first()) {
            (Some(factors), _) => factors.len(),
            (None, Some(first)) => self.first_stage() + 1 + first.power,
            (None, None) => 0,
        }
    }

    fn partners(&self, rank: usize, round: usize) -> Vec<(usize, f64)> {
        if let Some(factors) = &self.whole {
            return exchanges(rank, factors, round);
        }
        let Some(mine) = self.blocks.iter().rposition(|block| block.start <= rank) else {
            return Vec::new();
        };
        let block = &self.blocks[mine];
        let offset = rank - block.start;
        let within = |factors: &[usize], at, round| {
            let start = rank - at;
            exchanges(at, factors, round)
                .into_iter()
                .map(move |(to, share)| (start + to, share))
                .collect()
        };
        if round < self.first_stage() {
            return within(&block.factors(self.base), offset, round);
        }
        let (turn, last) = (round - self.first_stage(), self.blocks.len() - 1);
        if turn < last && mine >= turn {
            return self.bridge(rank, mine, turn);
        }
        if mine == last {
            return Vec::new();
        }
        within(
            &vec![self.base; block.power],
            offset % block.part,
            turn - mine - 1,
        )
    }

    /// Stage (2): the later blocks and block `turn`.
    fn bridge(&self, rank: usize, mine: usize, turn: usize) -> Vec<(usize, f64)> {
        let block = &self.blocks[turn];
        let behind = block.start + block.len();
        let rest: usize = self.blocks[turn..].iter().map(Block::len).sum();
        let share = block.len() as f64 / (block.parts * rest) as f64;
        if mine > turn {
            let place = rank - behind;
            return (0..block.parts)
                .map(|part| (block.start + part * block.part + place, share))
                .collect();
        }
        let place = (rank - block.start) % block.part;
        let later = rest - block.len();
        (place < later)
            .then_some((behind + place, share))
            .into_iter()
            .collect()
    }
}

impl BaseK {
    /// At most `degree` partners a round, at least one.
    pub const fn new(degree: usize) -> Self {
        Self {
            degree: if degree == 0 { 1 } else { degree },
        }
    }

    /// How `count` is split into groups of q (simple schedule) and p groups (mixed radix).
    fn split(&self, count: usize) -> (usize, Schedule, Vec<usize>) {
        let base = self.degree + 1;
        let smooth = (2..=base).fold((1, count), |(mut p, mut q), factor| {
            while q > 1 && q.is_multiple_of(factor) {
                (p, q) = (p * factor, q / factor);
            }
            (p, q)
        });
        let simple = Schedule::new(count, base);
        let (inner, outer) = (
            Schedule::new(smooth.1, base),
            factors(smooth.0, base).unwrap_or_default(),
        );
        if inner.rounds() + outer.len() < simple.rounds() {
            (smooth.1, inner, outer)
        } else {
            (count, simple, Vec::new())
        }
    }

    /// Rounds after which every peer holds the mean of `count` peers.
    pub fn rounds(&self, count: usize) -> u64 {
        let (_, inner, outer) = self.split(count);
        (inner.rounds() + outer.len()) as u64
    }
}

impl Topology for BaseK {
    fn partners(&self, round: Round, rank: usize, count: usize) -> Partners {
        if count < 2 {
            return Partners::default();
        }
        let (size, inner, outer) = self.split(count);
        let all = (inner.rounds() + outer.len()) as u64;
        let at = (round.0 % all) as usize;
        let (group, place) = (rank / size, rank % size);
        symmetric(match at.checked_sub(inner.rounds()) {
            None => {
                let partners = inner.partners(place, at).into_iter();
                partners.map(|(to, w)| (group * size + to, w)).collect()
            }
            Some(at) => {
                let partners = exchanges(group, &outer, at).into_iter();
                partners.map(|(to, w)| (to * size + place, w)).collect()
            }
        })
    }
}

/// The fewest factors of `count`, each at most `most`, in ascending order; `None` where a prime factor is larger.
fn factors(count: usize, most: usize) -> Option<Vec<usize>> {
    if count < 2 {
        return Some(Vec::new());
    }
    let mut best: Option<Vec<usize>> = None;
    for factor in (2..=most.min(count))
        .rev()
        .filter(|f| count.is_multiple_of(*f))
    {
        if let Some(mut rest) = factors(count / factor, factor)
            && best.as_ref().is_none_or(|best| rest.len() + 1 < best.len())
        {
            rest.push(factor);
            best = Some(rest);
        }
    }
    best
}

/// The places with which place `at` of `0..product(factors)` averages in round `round`, with equal
/// shares: those that differ from it only in that digit of the mixed radix. None after the last
/// digit.
///
/// After all digits every peer has the mean. Source: Takezawa et al., "Beyond exponential graph"
/// (NeurIPS 2023), algorithm 1 (k-peer hyper-hypercube).
fn exchanges(at: usize, factors: &[usize], round: usize) -> Vec<(usize, f64)> {
    let Some(factor) = factors.get(round) else {
        return Vec::new();
    };
    let stride: usize = factors[..round].iter().product();
    let digit = at / stride % factor;
    let share = 1.0 / *factor as f64;
    (0..*factor)
        .filter(|other| *other != digit)
        .map(|other| (at + other * stride - digit * stride, share))
        .collect()
}
