//! RelaySum: sums of parameters travel along a spanning tree, and every peer's parameters enter
//! every peer's mean once, delayed by the distance.
//!
//! In every round peer i sends each neighbour j in the tree the sum of the parameters that it holds
//! of all peers on its own side of their edge, and the number of these peers. Then it mixes the
//! messages of its neighbours:
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

mod edge;
mod tree;

use super::mix::{FragmentMix, Mixture};
use super::rule::{Encoded, MixesOf, Rule};
use super::slices::{self, SliceLedger, is_linked, release};
use crate::core::context::Context;
use crate::exchange::{Arrived, PushEnd, broke, foreign_tag};
use crate::limits::{
    NEIGHBOURS_MAX, PUSHES_AT_ONCE_MAX, RELAY_SUM_MISSES_MAX, RELAY_SUM_UNDER_WAY_MAX,
    ROUNDS_AHEAD_MAX, VIEW_PEERS_MAX,
};
use crate::sorted::{SortedMap, SortedSet};
use crate::{
    Done, FragmentId, Part, PeerError, PeerId, PushOutcome, SliceId, SliceMeta, Source, Tag,
    Topology, WorkError,
};
use edge::{Edge, Relayed};
use tree::{Tree, may_be_above};

/// A message that is being made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passing {
    to: PeerId,
    /// How many peers' parameters it is the mean of.
    count: u32,
    /// Set where it goes to the parent.
    up: bool,
}

/// Who gets a message of a fragment in a round.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// Peers that a message was made for.
    served: SortedSet<PeerId>,
    /// Peers that get one as soon as they have acknowledged an earlier one.
    unserved: SortedSet<PeerId>,
}

pub(super) struct RelaySum {
    topology: Box<dyn Topology>,
    tree: Option<Tree>,
    edges: SortedMap<(FragmentId, PeerId), Edge>,
    /// Messages whose push is under way.
    sent: SliceLedger<()>,
}

impl RelaySum {
    pub(super) fn new(topology: Box<dyn Topology>) -> Self {
        Self {
            topology,
            tree: None,
            edges: SortedMap::new(),
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
            // While a message of it counts, another parent would add the same peers a second time.
            edges.clone().any(|(_, edge)| edge.held().is_some())
                || !(suspected || edges.any(|(_, edge)| edge.is_silent()))
        };
        let (tree, changed) = Tree::of(self.tree.take(), cx, &*self.topology, relays);
        self.tree = Some(tree);
        changed
    }

    /// The tree has other peers: parents may be others, and every neighbour is awaited again.
    fn part(&mut self, cx: &mut Context) {
        let Some(tree) = &self.tree else {
            return;
        };
        for ((fragment, peer), edge) in &mut self.edges {
            // Silence was counted for another tree, in which it may have had another parent.
            (edge.missed, edge.unanswered) = (0, 0);
            if !tree.place(*fragment).is_near(*peer) {
                release(cx, edge.part(cx.round));
            }
        }
    }

    /// From here on the messages of this round count, also in those relayed in the next.
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

    /// Begins a fragment's round: releases old slices, and serves every neighbour.
    fn begin_fragment(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        fragment: FragmentId,
    ) {
        let parent = self.parent(fragment);
        let edges = self.edges.iter_mut();
        for ((_, peer), edge) in edges.filter(|((of, _), _)| *of == fragment) {
            release(cx, edge.expire(parent == Some(*peer), cx.round));
        }
        let near = |tree: &Tree| tree.place(fragment).near().map(|near| near.peer).collect();
        let near: Vec<PeerId> = self.tree.as_ref().map(near).unwrap_or_default();
        for to in near {
            let edge = self.edges.entry((fragment, to)).or_default();
            let suspected = cx.view.get(to).is_none_or(|remote| remote.suspected);
            if !suspected
                && edge.awaited(cx.round)
                && let Some(mix) = mixes.get_mut(fragment)
            {
                mix.expected.insert(to);
            }
            // A child that never answers has another parent; the parent of this peer cannot.
            if parent == Some(to) || !edge.is_silent() {
                self.serve(cx, mixes, fragment, to);
            }
        }
        // Strays get a message but are not awaited: they may have another parent by now.
        let strays: Vec<PeerId> = self.strays(fragment).map(|(peer, _)| peer).collect();
        for to in strays {
            self.serve(cx, mixes, fragment, to);
        }
    }

    /// Orders the message of a round to a neighbour, once, unless too many to it are under way.
    fn serve(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        fragment: FragmentId,
        to: PeerId,
    ) {
        let Some(mix) = mixes.get_mut(fragment) else {
            return;
        };
        let slot = mix.own.served.len();
        if slot >= NEIGHBOURS_MAX {
            return;
        }
        let sent = self.sent.to(to);
        let open = sent.filter(|(slice, _)| slice.fragment == fragment).count();
        // A neighbour that does not take its messages must not make this peer keep more and more of
        // them. It gets this round's message once an earlier one has ended.
        if open >= RELAY_SUM_UNDER_WAY_MAX {
            mix.own.unserved.insert(to);
            return;
        }
        mix.own.unserved.remove(&to);
        if mix.own.served.insert(to) {
            let edge = self.edges.entry((fragment, to)).or_default();
            edge.unanswered = edge.unanswered.saturating_add(1);
            let slice = slices::own_of_slot(cx, fragment, slot);
            self.make(cx, mixes, slice, to);
        }
    }

    /// [`RelaySum::serve`] for a peer that turns out to need a message during the round.
    /// Once the fragment is combined the next round's message comes first.
    fn serve_while_collecting(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        fragment: FragmentId,
        to: PeerId,
    ) {
        let mix = mixes.get_mut(fragment);
        if mix.is_some_and(|mix| mix.is_collecting()) {
            self.serve(cx, mixes, fragment, to);
        }
    }

    /// Orders a message: this peer's parameters and the sums of the other neighbours that count.
    fn make(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>, slice: SliceId, to: PeerId) {
        let mut counting = self.counting(slice.fragment);
        // Its own parameters must not come back to it: they would count twice there.
        counting.retain(|(peer, ..)| *peer != to);
        let passing = Passing {
            to,
            count: 1 + counting.iter().map(|(.., weight)| weight).sum::<u32>(),
            up: self.parent(slice.fragment) == Some(to),
        };
        let inputs = counting.into_iter();
        let inputs = inputs.map(|(_, slice, weight)| (slice, f64::from(weight)));
        let inputs = inputs.collect();
        mixes.encode(cx, Source::Relayed(inputs), slice, passing);
    }

    /// What counts of a fragment, in `PeerId` order, each with its weight: the count that its
    /// sender gave, but no more than the number of peers behind it. Behind a child that is none in
    /// this peer's view may lie all others.
    fn counting(&self, fragment: FragmentId) -> Vec<(PeerId, SliceId, u32)> {
        let Some(tree) = &self.tree else {
            return Vec::new();
        };
        let near = tree.place(fragment).near().filter_map(|near| {
            let edge = self.edges.get(&(fragment, near.peer))?;
            Some((near.peer, edge, near.behind))
        });
        let others = (tree.count() - 1).max(1);
        let strays = self.strays(fragment);
        let all = near.chain(strays.map(|(peer, edge)| (peer, edge, others)));
        let mut counting: Vec<(PeerId, SliceId, u32)> = all
            .filter_map(|(peer, edge, most)| {
                let (slice, count) = edge.held()?;
                // A message weighs no more than the peers behind its sender, even where an old one
                // counts beside a new one.
                Some((peer, slice, count.min(most)))
            })
            .collect();
        counting.sort_unstable_by_key(|(peer, ..)| *peer);
        counting
    }

    /// Peers that take this one for their parent, though in this peer's view it is not.
    fn strays(&self, fragment: FragmentId) -> impl Iterator<Item = (PeerId, &Edge)> {
        let place = self.tree.as_ref().map(|tree| tree.place(fragment));
        let near = move |peer: PeerId| place.is_some_and(|place| place.is_near(peer));
        let edges = self.edges.iter();
        edges
            .filter(move |((of, peer), edge)| *of == fragment && edge.is_child() && !near(*peer))
            .map(|((_, peer), edge)| (*peer, edge))
    }

    /// The mean of what counts. This peer's parameters replace missing parts of the tree. Void if a
    /// message could not be made, because the parameters are not finite.
    fn mean_of_all(&self, mix: &FragmentMix<Served>) -> Option<Mixture> {
        if mix.failed {
            return None;
        }
        let counting = self.counting(mix.fragment);
        let others: u32 = counting.iter().map(|(.., weight)| weight).sum();
        let neighbours = counting.len() as u32;
        let inputs = counting.into_iter();
        let inputs = inputs.map(|(_, slice, weight)| (slice, f64::from(weight)));
        // With children that this peer did not know of, more peers may count than it knows.
        let missing = self.tree.as_ref()?.count().saturating_sub(others).max(1);
        Some(Mixture {
            order: mix.mean(f64::from(missing), inputs.collect()),
            neighbours,
            weight: f64::from(1 + others),
        })
    }
}

impl Rule for RelaySum {
    type Fragment = Served;
    type Encoding = Passing;

    fn begin(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>) {
        // The tree comes first: it decides which held messages still count in this round.
        if self.grow_tree(cx) {
            self.part(cx);
        }
        for fragment in cx.plan.fragment_ids() {
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
        let (slice, passing) = (encoded.slice, encoded.note);
        if mixes.of(slice).is_none() {
            // Its round is over, and with it what the message was for.
            if encoded.bytes().is_some() {
                release(cx, [slice]);
            }
            return;
        }
        match encoded.done {
            Done::Encoded { bytes, .. } => {
                let meta = SliceMeta {
                    of: 1,
                    bytes: *bytes,
                    tag: Tag::Relayed {
                        up: passing.up,
                        peers: passing.count,
                    },
                };
                // Only its push needs the message, so it is released with the push.
                self.sent.push(cx, passing.to, slice, meta, ());
                self.sent.spare(slice);
                return;
            }
            Done::Failed(WorkError::BadSlice {
                slice: bad, reason, ..
            }) => {
                cx.accuse(bad.origin, format!("a slice that is bad: {reason}"));
                // Made again without the bad one; each such try has fewer inputs, so this ends.
                if self.forget(cx, slice.fragment, *bad) {
                    self.make(cx, mixes, slice, passing.to);
                    return;
                }
            }
            _ => {}
        }
        if let Some(mix) = mixes.of(slice) {
            mix.failed = true;
        }
    }

    fn arrived(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        arrived: &Arrived,
    ) -> Result<(), PeerError> {
        let relayed = check(cx, arrived)?;
        let (from, slice) = (arrived.from, arrived.slice);
        if !is_linked(cx, from) {
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
        // An old message that comes late must not end the wait for the one of this round.
        if !edge.awaited(mix.round) {
            mixes.came(cx, slice.fragment, from);
        }
        if relayed.up {
            // Perhaps a child that this peer did not know of. It waits for a message too.
            self.serve_while_collecting(cx, mixes, slice.fragment, from);
        }
        Ok(())
    }

    fn pushed(&mut self, cx: &mut Context, mixes: &mut MixesOf<Self>, end: PushEnd) {
        let PushEnd { to, slice, outcome } = end;
        let Some(push) = self.sent.ended(&end) else {
            return;
        };
        let lost = matches!(outcome, PushOutcome::Lost | PushOutcome::Unknown);
        // Only while it is the newest: the next message makes it useless.
        let newest = slice.round == cx.round && is_linked(cx, to);
        if lost && newest && push.again < PUSHES_AT_ONCE_MAX {
            self.sent.push_again(cx, &end, push);
            return;
        }
        self.sent.release(cx, |_| false);
        // There is room again for this round's message to a peer that had too many under way.
        let mix = mixes.get_mut(slice.fragment);
        if mix.is_some_and(|mix| mix.own.unserved.contains(&to)) {
            self.serve_while_collecting(cx, mixes, slice.fragment, to);
        }
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
        // One miss costs a round with an older message; a wrong suspicion re-forms the tree.
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

fn check(cx: &Context, arrived: &Arrived) -> Result<Relayed, PeerError> {
    slices::check(cx, arrived)?;
    let (slice, meta) = (arrived.slice, arrived.meta);
    if slice.part != Part::Contribution {
        return broke("a relayed slice must be its sender's own");
    }
    let Tag::Relayed { up, peers } = meta.tag else {
        return Err(foreign_tag(meta.tag, "relayed sums"));
    };
    if !(1..=VIEW_PEERS_MAX as u32).contains(&peers) {
        return broke("a relayed slice is the mean of one or more peers' parameters");
    }
    let fits = if up {
        may_be_above(slice.fragment, cx.me(), arrived.from)
    } else {
        may_be_above(slice.fragment, arrived.from, cx.me())
    };
    if !fits {
        return broke(
            "a relayed slice goes up to a lower id and down from one; in odd fragments to a higher",
        );
    }
    Ok(Relayed {
        slice,
        count: peers,
        up,
    })
}
