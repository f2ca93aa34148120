//! Topology `bandwidth-matching`: new pairs in every round, over fast links where all peers know which these are.

use super::TopologySpec;
use super::draw;
use super::matchings::RandomMatching;
use super::weights::symmetric;
use crate::parameter::{Parameter, Range};
use murmurate_protocol::{LinkRates, Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
    name: "bandwidth-matching",
    summary: "new pairs in every round, over fast links",
    equation: "W_ii = W_ij = 1/2 for the pairs of a random matching of fast links; every `connect_every` \
               rounds are connected",
    source: "Tang et al., ICDCS 2020",
    parameters: &[
        Parameter {
            name: "fast_share",
            range: Range::OpenClosed(0.0, 1.0),
            default: Some(0.5),
            about: "the share of the links that count as fast",
        },
        Parameter {
            name: "connect_every",
            range: Range::Whole(2, 1024),
            default: Some(8.0),
            about: "rounds whose pairs together connect all peers, and after which peers tell each other \
                    the rates of their links",
        },
    ],
    random_pairs: true,
    ..TopologySpec::symmetric(|kind, seed| {
        let every = kind.number("connect_every") as u64;
        Box::new(BandwidthMatching::new(
            seed,
            kind.number("fast_share"),
            every,
        ))
    })
};

/// SAPS-PSGD's peer selection: `W[i][i] = W[i][j] = 1/2` for the pairs (i, j) of a matching.
///
/// Rounds form windows of T = `max(connect_every, ceil(log2 n))` rounds. A link is fast if its rate is
/// among the fastest `fast_share` of all links of the round (the paper's `B_thres`), by classes; so is
/// a link that no peer has measured, so that all are tried. In most rounds the pairs are a random
/// maximal matching of the fast links, and a peer that is left over rests (`W[i][i] = 1`). The pairs
/// of one window connect all peers (the paper's `T_thres`): let c be the number of components that
/// the window's earlier pairs have left. When only `ceil(log2 c)` rounds remain, each of these first
/// matches peers of different components, the fastest links first. Each component with a free peer
/// finds another one, so a round leaves at most `ceil(c / 2)` of them, and the last leaves one. With
/// a T of `ceil(log2 n)` every round of a window may.
///
/// Symmetric and doubly stochastic. With c rounds that connect in each window the product of a window's
/// matrices mixes all peers, so the contraction over a window is below one. Where all links are
/// equally fast, a window without rounds that connect has the spectral gap of
/// [`RandomMatching`]. Where peers do not agree on the rates (`partners`), it is that topology.
///
/// Source: Tang, Shi, Chu, "Communication-efficient decentralized learning with sparsification and
/// adaptive peer selection" (ICDCS 2020), algorithm 3. It differs in three choices. There is no
/// coordinator: every peer computes the matching from the rates that all have heard. The threshold is a
/// share of the links and not a rate. And the matching is maximal but not a largest one. Cost: one push
/// a peer and round; O(T n^2 log n) operations on each peer.
#[derive(Clone, Copy, Debug)]
pub struct BandwidthMatching {
    seed: u64,
    fast_share: f64,
    connect_every: u64,
}

impl BandwidthMatching {
    /// All peers of a run need the same seed; `fast_share` is in (0, 1], `connect_every` at least 1.
    pub const fn new(seed: u64, fast_share: f64, connect_every: u64) -> Self {
        Self {
            seed,
            fast_share,
            connect_every,
        }
    }

    /// The pairs of a round, by rank: each peer's partner, or `None` if it rests.
    pub fn pairs(&self, round: Round, rates: &LinkRates) -> Vec<Option<usize>> {
        let count = rates.count();
        let window = self.connect_every.max(u64::from(rounds_to_join(count)));
        let place = round.0 % window;
        let fast = self.fast(rates);
        let mut components = Components::new(count);
        let mut pairs = Vec::new();
        for at in 0..=place {
            let mut rng = draw::stream(self.seed, round.0 - place + at);
            let order = draw::shuffled(&mut rng, count);
            pairs = vec![None; count];
            if u64::from(rounds_to_join(components.count)) >= window - at {
                join(&mut pairs, &order, rates, &mut components);
            }
            fill(&mut pairs, &order, |a, b| is_fast(rates.class(a, b), fast));
            for (a, partner) in pairs.iter().enumerate() {
                partner.iter().for_each(|b| components.join(a, *b));
            }
        }
        pairs
    }

    /// The lowest class of a fast link.
    fn fast(&self, rates: &LinkRates) -> u8 {
        let count = rates.count();
        let all = (0..count).flat_map(|a| (0..a).map(move |b| (a, b)));
        let mut classes: Vec<u8> = all.map(|(a, b)| rates.class(a, b)).collect();
        classes.sort_unstable_by_key(|class| core::cmp::Reverse(rank_of(*class)));
        let last = (classes.len() as f64 * self.fast_share).ceil() as usize;
        classes.get(last.saturating_sub(1)).copied().unwrap_or(0)
    }
}

/// Orders classes from slow to fast. A link that no peer has measured comes first: it may be the
/// fastest, and is measured by being used.
const fn rank_of(class: u8) -> u8 {
    class.wrapping_sub(1)
}

const fn is_fast(class: u8, fast: u8) -> bool {
    rank_of(class) >= rank_of(fast)
}

/// Rounds after which this many components can be one: the logarithm, rounded up.
const fn rounds_to_join(components: usize) -> u32 {
    components.next_power_of_two().trailing_zeros()
}

/// Matches peers of different components, over fast links first, until no two are left that could be.
fn join(
    pairs: &mut [Option<usize>],
    order: &[usize],
    rates: &LinkRates,
    components: &mut Components,
) {
    let all = order.iter().enumerate();
    let links = all.flat_map(|(at, a)| order[..at].iter().map(move |b| (*a, *b)));
    let mut links: Vec<(usize, usize)> = links.collect();
    // A stable sort: links of a class keep their random order.
    links.sort_by_key(|(a, b)| core::cmp::Reverse(rank_of(rates.class(*a, *b))));
    for (a, b) in links {
        if pairs[a].is_none() && pairs[b].is_none() && components.of(a) != components.of(b) {
            components.join(a, b);
            (pairs[a], pairs[b]) = (Some(b), Some(a));
        }
    }
}

/// Matches peers that are free over these links, in a random order, until no two are left.
fn fill(pairs: &mut [Option<usize>], order: &[usize], may: impl Fn(usize, usize) -> bool) {
    for (at, a) in order.iter().enumerate() {
        let free = |b: &&usize| pairs[*a].is_none() && pairs[**b].is_none() && may(*a, **b);
        if let Some(b) = order[at + 1..].iter().find(free) {
            (pairs[*a], pairs[*b]) = (Some(*b), Some(*a));
        }
    }
}

/// Which peers the pairs so far connect.
struct Components {
    of: Vec<usize>,
    count: usize,
}

impl Components {
    fn new(count: usize) -> Self {
        Self {
            of: (0..count).collect(),
            count,
        }
    }

    fn of(&self, rank: usize) -> usize {
        self.of[rank]
    }

    fn join(&mut self, a: usize, b: usize) {
        let (from, to) = (self.of[a], self.of[b]);
        if from != to {
            self.count -= 1;
            let members = self.of.iter_mut().filter(|of| **of == from);
            members.for_each(|of| *of = to);
        }
    }
}

impl Topology for BandwidthMatching {
    fn partners(&self, round: Round, rank: usize, count: usize) -> Partners {
        RandomMatching::new(self.seed).partners(round, rank, count)
    }

    fn partners_by_rate(&self, round: Round, rank: usize, rates: &LinkRates) -> Partners {
        let partner = self.pairs(round, rates).get(rank).copied().flatten();
        symmetric(partner.map(|other| (other, 0.5)).into_iter().collect())
    }

    fn rates_every(&self) -> u64 {
        self.connect_every
    }
}
