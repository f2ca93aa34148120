//! RelaySum: sums of parameters travel along a spanning tree, and every peer's parameters enter
//! every peer's mean once, delayed by the distance.
//!
//! In every round peer i sends each neighbour j in the tree the sum of what it holds of all peers
//! on its own side of their edge, and how many these are. Then it mixes what the neighbours sent
//! it:
//!
//! ```text
//! m(i -> j) = x_i + sum_{l != j} m(l -> i)        c(i -> j) = 1 + sum_{l != j} c(l -> i)
//! x_i'      = (x_i + sum_j m(j -> i) + (n - 1 - sum_j c(j -> i)) x_i) / n
//! ```
//!
//! with the messages of the round before on the right of the first line and those of this round in
//! the second. What travels is the mean `m / c`, which is as large as parameters are, with its
//! count c. The last message of a neighbour counts until the next one comes, for
//! [`PATIENCE_ROUNDS`](crate::limits::PATIENCE_ROUNDS) rounds at most; one that was lost is pushed
//! again within its round.
//!
//! **The tree** needs no agreement. Every peer finds its parent in the topology's
//! [`SpanningTree`](crate::SpanningTree) over all peers that are linked and take part, in `PeerId`
//! order. A message to the parent says that it goes up, so a peer learns of all children, expected
//! or not. A peer takes in what comes from its parent and from its children, nothing else. Parents
//! have lower ids, in odd fragments higher ones (a peer inside the tree of one half of the model is
//! a leaf of the other's, the paper's double binary tree), so that no two views ever make a circle.
//! If a parent is suspected or silent, and none of its messages counts any more, its child takes
//! the parent's parent, and so on: the tree re-forms around a stalled peer. A peer without a link
//! to any lower id is a root of its own.
//!
//! **Guarantee.** The share of a missing peer (late, dead, behind a lost message, or further away
//! than there were rounds) is replaced by this peer's parameters, so x' is a convex combination of
//! parameters. While no parent changes, no peer enters a sum twice, and no
//! peer but i itself weighs more than 1/n in x_i'. For `PATIENCE_ROUNDS` rounds after a change the
//! old message may count beside the new one, though no message weighs more than the number of peers
//! behind its sender. A peer never waits past a deadline, never for one that has not sent anything
//! yet, and at most [`RELAY_SUM_MISSES_MAX`] times for one that sends
//! no more. With the same view everywhere and nothing lost, parameters that rest are the exact mean
//! at every peer one round after the tree's diameter: in the first round no peer waits.
//!
//! Cost per fragment of C encoded bytes: 2 (n - 1) pushes a round over all peers, 2 (n - 1) C
//! bytes, no control message; one latency. A peer of degree d keeps its d neighbours' last
//! messages, encoded.
//!
//! **Source:** Vogels et al. 2021, "RelaySum for Decentralized Deep Learning on Heterogeneous Data"
//! (NeurIPS), algorithm 1.

mod counting;
mod edge;
mod message;
mod passing;
mod state;
mod tree;

use super::mix::FragmentMix;
use super::mixture::Mixture;
use super::rule::{Encoded, MixesOf, Rule};
use super::slices::{self, unexpected};
use crate::core::context::Context;
use crate::exchange::{Arrived, foreign_tag};
use crate::limits::{RELAY_SUM_MISSES_MAX, ROUNDS_AHEAD_MAX, VIEW_PEERS_MAX};
use crate::{FragmentId, Part, PeerError, PeerId, PushOutcome, SliceId, Tag};
use edge::{Edge, Relayed};
use message::{Passing, Served};
pub(super) use state::RelaySum;
use state::release;
use tree::may_be_above;

impl Rule for RelaySum {
    type Fragment = Served;
    type Encoding = Passing;

    fn begin(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>) {
        // The tree comes first: it decides which held messages still count in this round.
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
        mixes: &mut MixesOf<Self>,
        encoded: Encoded<'_, Passing>,
    ) {
        self.made(cx, mixes, &encoded);
    }

    fn arrived(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        arrived: &Arrived,
    ) -> Result<(), PeerError> {
        let relayed = check(cx, arrived)?;
        let (from, slice) = (arrived.from, arrived.slice);
        if !cx.view.greeted().any(|(id, _)| id == from) {
            // Its link went down after the push, and with it all of its messages.
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
            // Perhaps a child that this peer did not know of. It waits for a message too.
            self.serve_while_collecting(cx, mixes, slice.fragment, from);
        }
        Ok(())
    }

    fn pushed(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
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

    fn gone(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>, peer: PeerId) {
        let edges = self.edges.extract_if(.., |(_, id), _| *id == peer);
        for (_, mut edge) in edges {
            release(cx, edge.end());
        }
        for mix in mixes.iter_mut() {
            mix.own.unserved.remove(&peer);
        }
    }

    /// A neighbour that lost a message or two stays in step, so only repeated misses count.
    fn missed(&mut self, cx: &mut Context, fragment: FragmentId, peer: PeerId) {
        let edge = self.edges.entry((fragment, peer)).or_default();
        edge.missed = edge.missed.saturating_add(1);
        if edge.missed >= RELAY_SUM_MISSES_MAX {
            cx.suspect(peer);
        }
    }

    fn finish(&mut self, cx: &mut Context, _mixes: &mut MixesOf<Self>) {
        cx.follow_the_others(ROUNDS_AHEAD_MAX);
    }

    fn waiting(&self, _mixes: &MixesOf<Self>) -> usize {
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
            "a relayed slice goes up to a lower id and down from one; in odd fragments to a higher",
        );
    }
    Ok(Relayed {
        slice,
        count: peers,
        up,
    })
}
