//! A schedule that is found again while a run is under way: trees, and the order in which members send their
//! shards, for the rates that the members of a group have agreed on.
//!
//! Candidates are the butterfly's stars, and trees packed onto the links with one shard, two, four and so on.
//! Few shards are few sends, each with its latency; many share the lines better, and the result of the first
//! descends while others climb. Each is played in the model of [`timeline`](super::timeline) along the best of
//! some lists. The fastest is taken, if it saves a tenth of the butterfly's time, and its order is searched for
//! ([`ordering`](super::ordering)). All of it is whole numbers in a fixed order, so members that agree on rates
//! have the same trees and orders.
//!
//! No schedule of m bytes among n members is faster than the certificate says:
//!
//! T >= max(2 (n - 1) m / sum of lines out, m / (rate out of S) for any set S of members), and two latencies.
//!
//! **Sources:** Blink (Wang et al., MLSys 2020) packs trees; PLink (Luo et al., MLSys 2020) measures the network
//! again and adapts; SCCL (Cai et al., PPoPP 2021) weighs steps against chunks; TACCL (Shah et al., NSDI 2023)
//! and TE-CCL (Liu et al., SIGCOMM 2024) choose who sends what when. Theirs are found by solvers before a run,
//! for any collective. Here trees are found by local search, and their order by a search that is exact for a
//! handful of members.

use super::ordering::{self, Ordered};
use super::packing::depth;
use super::rates::{LinkCodes, LinkTable};
use super::shape::{MEASURED_BYTES_MIN, RESYNTHESIS_KICKS, ScheduleCost, TREES_PERCENT, Trees};
use super::synthesis::{Ways, pack};
use super::timeline::Send;
use crate::limits::SYNTHESIZED_TREES_MAX;
use serde::{Deserialize, Serialize};

/// What all peers of a run know of a schedule that is found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LinkPlan {
    /// Rounds after which peers tell each other what they measured. The first of them goes along the
    /// butterfly, so that every link is used.
    pub every: u16,
    /// One way, in microseconds: what a send costs beside its bytes.
    pub latency_micros: u32,
    /// The links with which the run begins.
    pub start: LinkCodes,
}

impl LinkPlan {
    /// Returns `true` if a round goes along the butterfly, so that its members measure all links.
    pub(crate) const fn measures_in(&self, round: crate::Round) -> bool {
        self.every > 0 && round.0.is_multiple_of(self.every as u64)
    }

    /// The best solution that is found for `bytes` of a fragment over these links.
    pub(crate) fn solve(&self, codes: &LinkCodes, bytes: u64) -> Solution {
        Solution::new(codes, bytes, u64::from(self.latency_micros))
    }

    /// The time of a fragment of `bytes` among peers with the links that the run begins with, and that of the
    /// butterfly, in microseconds; none among another number of peers.
    pub fn micros(&self, members: usize, bytes: u64) -> Option<(u64, u64)> {
        let known = members == self.start.members() && !self.start.is_unknown();
        known.then(|| {
            let solution = self.solve(&self.start, bytes);
            (solution.certificate.micros, solution.certificate.butterfly)
        })
    }
}

/// What a solution costs by the model, in microseconds for the largest fragment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The trees in their order of sends.
    pub micros: u64,
    /// The butterfly in its best order.
    pub butterfly: u64,
    /// What no schedule is below.
    pub least: u64,
    /// Set if no order of the same trees' sends is faster.
    pub proven: bool,
}

/// Trees for the links of a group, with the order of their sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Solution {
    /// The parent of each rank, tree by tree; a root is its own.
    pub(super) trees: Vec<Vec<usize>>,
    pub(super) sends: Vec<Send>,
    pub(crate) certificate: Certificate,
    /// By rank: how many bytes a member may have under way before it waits for an answer.
    pub(super) windows: Vec<u64>,
}

fn stars(n: usize) -> Vec<Vec<usize>> {
    (0..n).map(|root| vec![root; n]).collect()
}

impl Solution {
    /// The butterfly: each begins with its next member, so that all receive at the same time.
    pub(crate) fn butterfly(n: usize) -> Self {
        let rank = |at: usize| (at % n) as u8;
        let sends = (1..n).flat_map(|step| {
            (0..n).map(move |from| Send {
                shard: ((from + step) % n) as u16,
                down: false,
                from: rank(from),
                to: rank(from + step),
            })
        });
        let back = (1..n).flat_map(|step| {
            (0..n).map(move |from| Send {
                shard: from as u16,
                down: true,
                from: rank(from),
                to: rank(from + step),
            })
        });
        Self {
            trees: stars(n),
            sends: sends.chain(back).collect(),
            certificate: Certificate::default(),
            windows: vec![MEASURED_BYTES_MIN; n],
        }
    }

    fn new(codes: &LinkCodes, bytes: u64, latency: u64) -> Self {
        let n = codes.members();
        if n < 2 || codes.is_unknown() {
            return Self::butterfly(n);
        }
        let (codes, cost) = (codes.filled(), (bytes, latency));
        let table = LinkTable::of_codes(&codes);
        let butterfly = ordering::estimate(&codes, &stars(n), cost);
        let mut counts: Vec<usize> = (0..5).map(|power| 1 << power).collect();
        counts.extend([n, n * (SYNTHESIZED_TREES_MAX / n)]);
        counts.sort_unstable();
        counts.dedup();
        let packed = counts.into_iter().map(|count| {
            let trees = pack(&table, count, RESYNTHESIS_KICKS, Ways::Together);
            (ordering::estimate(&codes, &trees, cost), trees)
        });
        let best = packed.min_by_key(|(micros, _)| *micros);
        let gains = |micros: &u64| micros * 100 <= butterfly * TREES_PERCENT;
        let trees = best.filter(|(micros, _)| gains(micros));
        let trees = trees.map_or_else(|| stars(n), |(_, trees)| trees);
        let Ordered {
            sends,
            micros,
            proven,
        } = ordering::order(&codes, &trees, cost);
        let least = table.least_of(bytes).max(2 * latency);
        let shard_bytes = bytes.div_ceil(trees.len() as u64);
        let window = |rank: usize| {
            let room = codes.line_out(rank).saturating_mul(2 * latency) / 1_000_000;
            // One that is under way as long as its answer is waited for.
            if shard_bytes >= room { 0 } else { room }
        };
        Self {
            windows: (0..n).map(window).collect(),
            certificate: Certificate {
                micros,
                butterfly: butterfly.max(micros),
                least: least.min(micros),
                proven,
            },
            trees,
            sends,
        }
    }

    /// The time of the same trees in the same order over other links.
    pub(crate) fn over(&self, codes: &LinkCodes, bytes: u64, latency: u64) -> u64 {
        ordering::kept(&codes.filled(), &self.trees, &self.sends, (bytes, latency))
    }
}

impl Trees for Solution {
    fn up(&self, _: usize, shard: usize, rank: usize) -> Option<usize> {
        let parent = self.trees[shard][rank];
        (parent != rank).then_some(parent)
    }

    fn cost(&self, n: usize) -> ScheduleCost {
        let sent = |rank: usize| {
            self.sends
                .iter()
                .filter(|send| usize::from(send.from) == rank)
                .count()
        };
        let depths = self.trees.iter().filter_map(|parents| depth(parents));
        ScheduleCost {
            shards: self.trees.len() as u64,
            hops: 2 * depths.max().unwrap_or(0) as u64,
            pushes: self.sends.len() as u64,
            busiest: (0..n).map(sent).max().unwrap_or(0) as u64,
        }
    }
}

#[cfg(test)]
mod tests;
