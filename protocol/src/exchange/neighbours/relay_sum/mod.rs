//! RelaySum: sums of parameters travel along a spanning tree, and every peer's parameters enter
//! every peer's mean once, delayed by the distance.
//!
//! In every round peer i sends each neighbour j in the tree the sum of what it holds of all peers
//! on its own side of their edge, and how many these are. Then it mixes what the neighbours sent it:
//!
//! ```text
//! m(i -> j) = x_i + sum_{l != j} m(l -> i)        c(i -> j) = 1 + sum_{l != j} c(l -> i)
//! x_i'      = (x_i + sum_j m(j -> i) + (n - 1 - sum_j c(j -> i)) x_i) / n
//! ```
//!
//! with the messages of the round before on the right of the first line and those of this round in
//! the second. What travels is the mean `m / c`, which is as large as parameters are, with its count
//! c. The last message of a neighbour counts until the next one comes, for
//! [`PATIENCE_ROUNDS`](crate::limits::PATIENCE_ROUNDS) rounds at most; one that was lost is pushed
//! again within its round.
//!
//! **The tree** needs no agreement. Every peer finds its parent in the topology's
//! [`SpanningTree`](crate::SpanningTree) over all peers that are linked and take part, in `PeerId`
//! order. A message to the parent says that it goes up, so a peer learns of all children, expected
//! or not. A peer takes in what comes from its parent and from its children, nothing else. Parents
//! have lower ids, in odd fragments higher ones (a peer inside the tree of one half of the model is
//! a leaf of the other's, the paper's double binary tree), so that no two views ever make a circle.
//! A peer whose parent is suspected or silent, and of whom nothing counts any more, takes the
//! parent's parent, and so on: the tree re-forms around a stalled peer. A peer without a link to
//! any lower id is a root of its own.
//!
//! **Promise.** Whatever is missing (of a peer that is late, dead, behind a lost message, or further
//! away than there were rounds) counts as the own parameters, and x' is a convex combination of
//! parameters. While no parent changes, no peer enters a sum twice, and no peer but i itself weighs
//! more than 1/n in x_i'. For `PATIENCE_ROUNDS` rounds after a change the old message may count
//! beside the new one, though no message weighs more than the number of peers behind its sender. A
//! peer never waits past a deadline, never for one that has not sent anything yet, and at most
//! [`RELAY_MISSES_MAX`](crate::limits::RELAY_MISSES_MAX) times for one that sends no more. With the
//! same view everywhere and nothing lost, parameters that rest are the exact mean at every peer one
//! round after the tree's diameter: in the first round no peer waits.
//!
//! Cost per fragment of C encoded bytes: 2 (n - 1) pushes a round over all peers, 2 (n - 1) C bytes,
//! no control message; one latency. A peer of degree d keeps its d neighbours' last messages,
//! encoded.
//!
//! **Source:** Vogels et al. 2021, "RelaySum for Decentralized Deep Learning on Heterogeneous Data"
//! (NeurIPS), algorithm 1.

mod counting;
mod edge;
mod passing;
mod tree;

use super::slices::{self, unexpected};
use super::{Encoded, FragmentMix, Mixes, Mixture, Ranks, Rule, SliceLedger};
use crate::core::context::Context;
use crate::exchange::{Arrived, foreign_tag};
use crate::limits::{RELAY_MISSES_MAX, ROUNDS_AHEAD_MAX, VIEW_PEERS_MAX};
use crate::{FragmentId, Order, Part, PeerError, PeerId, PushOutcome, SliceId, Tag, Topology};
use edge::{Edge, Relayed};
use passing::{Passing, Sent, Served};
use std::collections::BTreeMap;
use tree::{Tree, may_be_above};

/// The rule of relayed sums.
pub(super) struct RelaySum {
    topology: Box<dyn Topology>,
    /// The tree of this round.
    tree: Option<Tree>,
    edges: BTreeMap<(FragmentId, PeerId), Edge>,
    /// Messages whose push is under way.
    sent: SliceLedger<Sent>,
}

impl RelaySum {
    pub(super) fn new(topology: Box<dyn Topology>) -> Self {
        Self {
            topology,
            tree: None,
            edges: BTreeMap::new(),
            sent: SliceLedger::default(),
        }
    }

    /// The tree of the round by this peer's view; true where it is over other peers than before.
    fn grow_tree(&mut self, cx: &Context) -> bool {
        let relays = |parity: usize, peer: PeerId| {
            let edges = self.edges.iter();
            let of = |fragment: FragmentId| usize::from(fragment.0 % 2) == parity;
            let mut edges = edges.filter(|((f, id), _)| *id == peer && of(*f));
            let suspected = cx.view.get(peer).is_none_or(|remote| remote.suspected);
            // As long as a message of it counts, changing the parent would count it twice.
            edges.clone().any(|(_, edge)| edge.held().is_some())
                || !(suspected || edges.any(|(_, edge)| edge.is_silent()))
        };
        let (tree, changed) = Tree::of(self.tree.take(), cx, &*self.topology, relays);
        self.tree = Some(tree);
        changed
    }

    /// The tree is over other peers: those that are no neighbours any more have another parent, and
    /// every peer is worth waiting for again.
    fn part(&mut self, cx: &mut Context) {
        let Some(tree) = &self.tree else {
            return;
        };
        for ((fragment, peer), edge) in &mut self.edges {
            (edge.missed, edge.unanswered) = (0, 0);
            if !tree.place(*fragment).is_near(*peer) {
                release(cx, edge.part(cx.round));
            }
        }
    }

    /// From here on what came for this round counts, and with it what is relayed in the next.
    fn collect(&mut self, cx: &mut Context, mix: &FragmentMix<Served>) {
        let parent = self.parent(mix.fragment);
        let edges = self.edges.iter_mut();
        for ((_, peer), edge) in edges.filter(|((of, _), _)| *of == mix.fragment) {
            release(cx, edge.take(parent == Some(*peer), mix.round));
        }
    }

    fn parent(&self, fragment: FragmentId) -> Option<PeerId> {
        let place = self.tree.as_ref()?.place(fragment);
        place.parent.map(|near| near.peer)
    }

    /// A slice is bad: true where it counted, and no longer does.
    fn forget(&mut self, cx: &mut Context, fragment: FragmentId, bad: SliceId) -> bool {
        let edge = self.edges.get_mut(&(fragment, bad.origin));
        let counted = edge.is_some_and(|edge| edge.forget(bad));
        if counted {
            release(cx, [bad]);
        }
        counted
    }
}

impl Rule for RelaySum {
    type Fragment = Served;
    type Encoding = Passing;

    fn begin(&mut self, cx: &mut Context, mixes: &mut Mixes<Self>) {
        if self.grow_tree(cx) {
            self.part(cx);
        }
        let fragments: Vec<FragmentId> = cx.plan.fragment_ids().collect();
        for fragment in fragments {
            self.begin_fragment(cx, mixes, fragment);
        }
        cx.await_partners(mixes.expected());
    }

    fn encoded(
        &mut self,
        cx: &mut Context,
        mixes: &mut Mixes<Self>,
        encoded: Encoded<'_, Passing>,
    ) {
        self.made(cx, mixes, &encoded);
    }

    fn arrived(
        &mut self,
        cx: &mut Context,
        mixes: &mut Mixes<Self>,
        arrived: &Arrived,
    ) -> Result<(), PeerError> {
        let relayed = check(cx, arrived)?;
        let (from, slice) = (arrived.from, arrived.slice);
        if !cx.view.greeted().any(|(id, _)| id == from) {
            // Its link went down after the push: nothing of it counts any more.
            release(cx, [slice]);
            return Ok(());
        }
        let edge = self.edges.entry((slice.fragment, from)).or_default();
        release(cx, edge.arrive(relayed));
        // It does its part, however late.
        cx.view.forgive(from);
        let Some(mix) = mixes.get_mut(slice.fragment) else {
            return Ok(());
        };
        if !edge.awaited(mix.round) {
            mixes.came(cx, slice.fragment, from);
        }
        if relayed.up {
            // Perhaps a child that was not known of: it waits for a message, too.
            self.serve_while_collecting(cx, mixes, slice.fragment, from);
        }
        Ok(())
    }

    fn pushed(
        &mut self,
        cx: &mut Context,
        mixes: &mut Mixes<Self>,
        to: PeerId,
        slice: SliceId,
        outcome: PushOutcome,
    ) {
        self.push_ended(cx, mixes, (to, slice), outcome);
    }

    fn mixture(&mut self, cx: &mut Context, mix: &mut FragmentMix<Served>) -> Option<Mixture> {
        self.collect(cx, mix);
        self.mean_of_all(mix)
    }

    fn without(
        &mut self,
        cx: &mut Context,
        mix: &mut FragmentMix<Served>,
        bad: SliceId,
    ) -> Option<Mixture> {
        let counted = self.forget(cx, mix.fragment, bad);
        counted.then(|| self.mean_of_all(mix))?
    }

    fn gone(&mut self, cx: &mut Context, mixes: &mut Mixes<Self>, peer: PeerId) {
        let edges = self.edges.extract_if(.., |(_, id), _| *id == peer);
        for (_, mut edge) in edges {
            release(cx, edge.end());
        }
        for mix in mixes.iter_mut() {
            mix.own.unserved.remove(&peer);
        }
    }

    /// A neighbour that lost a message or two goes on in step, so only repeated misses count.
    fn missed(&mut self, cx: &mut Context, fragment: FragmentId, peer: PeerId) {
        let edge = self.edges.entry((fragment, peer)).or_default();
        edge.missed = edge.missed.saturating_add(1);
        if edge.missed >= RELAY_MISSES_MAX {
            cx.suspect(peer);
        }
    }

    fn finish(&mut self, cx: &mut Context, _mixes: &mut Mixes<Self>) {
        cx.follow_the_others(ROUNDS_AHEAD_MAX);
    }

    fn waiting(&self, _mixes: &Mixes<Self>) -> usize {
        self.edges.values().map(Edge::waiting).sum()
    }
}

/// What a relayed slice must be.
fn check(cx: &Context, arrived: &Arrived) -> Result<Relayed, PeerError> {
    slices::check(cx, arrived)?;
    let (slice, meta) = (arrived.slice, arrived.meta);
    if slice.part != Part::Contribution {
        return unexpected("a relayed slice must be its sender's own");
    }
    let Tag::Relayed { up, peers } = meta.tag else {
        return Err(foreign_tag(meta.tag, "relayed sums"));
    };
    if !(1..=VIEW_PEERS_MAX as u32).contains(&peers) {
        return unexpected("a relayed slice is the mean of one or more peers' parameters");
    }
    let fits = match up {
        true => may_be_above(slice.fragment, cx.me(), arrived.from),
        false => may_be_above(slice.fragment, arrived.from, cx.me()),
    };
    if !fits {
        return unexpected(
            "a relayed slice goes up to a lower id and down from one, or in odd fragments the other way",
        );
    }
    Ok(Relayed {
        slice,
        count: peers,
        up,
    })
}

fn release(cx: &mut Context, slices: impl IntoIterator<Item = SliceId>) {
    for slice in slices {
        cx.order(Order::Release { slice });
    }
}
