//! Topology `islands`: hierarchical local SGD as mixing. Peers average within their island in most
//! rounds, and across islands in some.

use super::spec::{ISLAND, TopologySpec};
use super::weights::mean;
use crate::parameter::{Parameter, Range};
use murmurate_protocol::{Partners, Round, Topology};

pub(super) const SPEC: TopologySpec = TopologySpec {
    name: "islands",
    summary: "hierarchical local SGD: means of islands, and every few rounds means across them",
    equation: "W_ij = 1/g within an island, every `every`-th round 1/L with the same places of the L islands; one after the other is 1 1^T / n for n = g L",
    source: "Lin et al., ICLR 2020",
    parameters: &[
        ISLAND,
        Parameter {
            name: "every",
            range: Range::Whole(2, 1_000_000),
            default: Some(4.0),
            about: "one in this many rounds mixes across islands: H2, with H1 = `synchronization.inner_steps`",
        },
    ],
    ..TopologySpec::symmetric(|kind, _| {
        Box::new(Islands::new(
            kind.count("group"),
            kind.count("every") as u64,
        ))
    })
};

/// Islands are runs of g ranks. Every peer takes the mean of its island, except in every H2-th
/// round, `r mod H2 = H2 - 1`, in which it takes the mean of the peers with the same place in all
/// islands.
///
/// With H1 inner steps in a round this is hierarchical local SGD: H1 inner steps between two means
/// within an island, H1 H2 between two across. W is symmetric and doubly stochastic. Of n = g L
/// peers the mean across, followed by the next mean within, is exactly the mean over all, `W_within
/// W_across = 1 1^T / n`: after every mean within the peers of an island hold the same parameters,
/// up to rounding, and after the one that follows a mean across those of all islands, up to what
/// was trained between the two. The links between islands carry n (L - 1) pushes in H2 rounds,
/// where a mean over all at once would take n (n - g).
///
/// Parameters are mixed without agreement: islands have no common anchor for H2 rounds, so peers
/// cannot catch up by decisions. Source: Lin et al., "Don't use large mini-batches, use local SGD"
/// (ICLR 2020), section 5 and algorithm 5, where the mean across is over all at once. Special
/// cases: where g does not divide n, the places that the last island lacks have means of one island
/// fewer, and the mean over all is approached at a constant rate; one island averages in all rounds
/// except every H2-th, in which it rests.
#[derive(Clone, Copy, Debug)]
pub struct Islands {
    group: usize,
    every: u64,
}

impl Islands {
    /// Islands of `group` ranks, at least one; a mean across in one of `every` rounds, at least two.
    pub const fn new(group: usize, every: u64) -> Self {
        Self {
            group: if group == 0 { 1 } else { group },
            every: if every < 2 { 2 } else { every },
        }
    }

    /// Set in rounds whose means are across islands.
    pub const fn across(&self, round: Round) -> bool {
        round.0 % self.every == self.every - 1
    }
}

impl Topology for Islands {
    fn partners(&self, round: Round, rank: usize, count: usize) -> Partners {
        let place = rank % self.group;
        if self.across(round) {
            mean(rank, (place..count).step_by(self.group))
        } else {
            let first = rank - place;
            mean(rank, first..(first + self.group).min(count))
        }
    }
}
