//! RelaySum: sums of parameters travel along a spanning tree, and everybody's parameters enter everybody's
//! mean once, delayed by the distance.
//!
//! In every round peer i sends each neighbour j in the tree what it holds of everybody on its own side of
//! their edge, and how many these are, then mixes what the neighbours sent it:
//!
//! ```text
//! m(i -> j) = x_i + sum_{l != j} m(l -> i)        c(i -> j) = 1 + sum_{l != j} c(l -> i)
//! x_i'      = (x_i + sum_j m(j -> i) + (n - 1 - sum_j c(j -> i)) x_i) / n
//! ```
//!
//! with the messages of the round before on the right of the first line and those of this round in the
//! second. What travels is the mean `m / c`, which is as large as parameters are, with its count c. The
//! last message of a neighbour counts until the next one comes, for
//! [`PATIENCE_ROUNDS`](crate::limits::PATIENCE_ROUNDS) rounds at most; one that was lost is pushed again
//! within its round.
//!
//! **The tree** needs no agreement. Every peer finds its parent in the topology's
//! [`SpanningTree`](crate::SpanningTree) over all peers that are linked and take part, in `PeerId` order; what it
//! sends there says so, and whoever is taken for a parent has a child, expected or not. A peer takes in what
//! comes from its parent and from its children, nothing else. Parents have lower ids, in odd fragments higher
//! ones (whoever is inside the tree of one half of the model is a leaf of the other's, the paper's double
//! binary tree), so that no two views ever make a circle. One whose parent is suspected or does not answer, and of
//! whom nothing counts any more, takes the parent's parent, and so on: a tree grows together again around who
//! stalls. Who has no link to anybody lower is a root of its own.
//!
//! **Promise.** Whatever is missing (of a peer that is late, dead, behind a lost message or too far for the rounds
//! that there were) counts as the own parameters, and x' is a convex combination of parameters. While no
//! parent changes nobody enters a sum twice, and nobody but i itself weighs more than 1/n in x_i'; for
//! PATIENCE_ROUNDS rounds after a change the message of before may count beside the new one, though no message weighs
//! more than lie behind its sender. Nobody waits past a deadline, at all for one that has not sent anything yet, or more
//! than [`RELAY_MISSES_MAX`](crate::limits::RELAY_MISSES_MAX) times for one that sends no more. With the same view
//! everywhere and nothing lost, parameters that rest are everybody's exact mean after one round more than the
//! tree's diameter: in the first nobody waits.
//!
//! Cost per fragment of C encoded bytes: 2 (n - 1) pushes a round over all peers, 2 (n - 1) C bytes, no control
//! message; one latency. A peer of degree d keeps its d neighbours' last messages, encoded.
//!
//! **Source:** Vogels et al. 2021, "RelaySum for Decentralized Deep Learning on Heterogeneous Data" (NeurIPS),
//! algorithm 1.

mod edge;
mod mixing;
mod passing;
mod tree;

use crate::core::context::Context;
use crate::core::timers::Timer;
use crate::exchange::{Ending, Exchange, Outcome, Signal, all_ended};
use crate::limits::ROUNDS_AHEAD_MAX;
use crate::{
    FragmentId, Order, OrderId, PeerError, PeerId, SliceId, Time, Topology, TrainSummary, Wait,
};
use edge::Edge;
use mixing::Mixing;
use passing::{Passing, Sent};
use std::collections::BTreeMap;
use tree::Tree;

/// The relay of one peer.
pub(crate) struct Relay {
    topology: Box<dyn Topology>,
    /// The tree of this round.
    tree: Option<Tree>,
    edges: BTreeMap<(FragmentId, PeerId), Edge>,
    making: BTreeMap<OrderId, Passing>,
    sent: BTreeMap<SliceId, Sent>,
    mixings: Vec<Mixing>,
    /// When the round's exchange began.
    began: Time,
}

impl Relay {
    pub(crate) fn new(topology: Box<dyn Topology>) -> Self {
        Self {
            topology,
            tree: None,
            edges: BTreeMap::new(),
            making: BTreeMap::new(),
            sent: BTreeMap::new(),
            mixings: Vec::new(),
            began: Time::ZERO,
        }
    }
}

impl Exchange for Relay {
    fn begin(&mut self, cx: &mut Context, _summary: &TrainSummary) {
        self.began = cx.now;
        let does = |parity: usize, peer: PeerId| {
            let edges = self.edges.iter();
            let of = |fragment: FragmentId| usize::from(fragment.0 % 2) == parity;
            let mut edges = edges.filter(|((f, id), _)| *id == peer && of(*f));
            let suspected = cx.view.get(peer).is_none_or(|remote| remote.suspected);
            // What is here of it counts as long as it does.
            edges.clone().any(|(_, edge)| edge.held().is_some())
                || !(suspected || edges.any(|(_, edge)| edge.is_silent()))
        };
        let (tree, changed) = Tree::of(self.tree.take(), cx, &*self.topology, does);
        self.tree = Some(tree);
        if changed {
            self.part(cx);
        }
        let fragments: Vec<_> = cx.plan.fragment_ids().collect();
        self.mixings = fragments
            .into_iter()
            .map(|fragment| self.begin_fragment(cx, fragment))
            .collect();
        cx.await_partners(self.mixings.iter().flat_map(|m| m.expected.iter().copied()));
        self.advance(cx);
    }

    fn signal(&mut self, cx: &mut Context, signal: Signal<'_>) -> Result<(), PeerError> {
        match signal {
            Signal::Arrived {
                from, slice, meta, ..
            } => {
                let result = self.arrived(cx, from, slice, meta);
                if result.is_err() {
                    cx.order(Order::Release { slice });
                }
                return result;
            }
            Signal::Pushed { to, slice, outcome } => self.pushed(cx, to, slice, outcome),
            Signal::Done { order, done } => self.done(cx, order, done),
            Signal::Gone(peer) => self.gone(cx, peer),
            Signal::Timeout => {
                cx.waited(Wait::Partners, true);
                self.miss(cx);
            }
            Signal::Message { .. } => {
                return Err(PeerError::Unexpected {
                    what: "an all-reduce message in a run that relays sums".to_owned(),
                });
            }
            Signal::Fetched { .. } | Signal::FetchFailed { .. } | Signal::Heard(_) => {}
        }
        Ok(())
    }

    fn ended(&mut self, _cx: &Context) -> Vec<(FragmentId, Ending)> {
        all_ended(self.mixings.iter().map(|m| (m.fragment, m.ending())))
    }

    fn outcome(&mut self) -> Option<Outcome> {
        let all = self.mixings.iter().all(|m| m.ending().is_some());
        (all && !self.mixings.is_empty()).then_some(Outcome::Ended)
    }

    fn finish(&mut self, cx: &mut Context) {
        self.mixings.clear();
        cx.timers.stop(Timer::Exchange);
        cx.follow_the_others(ROUNDS_AHEAD_MAX);
    }

    fn waiting(&self) -> usize {
        self.edges.values().map(Edge::waiting).sum()
    }
}
