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

use super::rule::{Encoded, FragmentMix, MixesOf, Mixture, Ranks, Rule};
use super::slices::{self, SliceLedger, is_linked, release};
use crate::core::context::Context;
use crate::exchange::{Arrived, PushEnd, broke, forbid, foreign_tag};
use crate::limits::{
    NEIGHBOURS_MAX, PATIENCE_ROUNDS, PUSHES_AT_ONCE_MAX, RELAY_SUM_MISSES_MAX,
    RELAY_SUM_UNDER_WAY_MAX, RELAY_SUM_WAITING_MAX, ROUNDS_AHEAD_MAX, VIEW_PEERS_MAX,
};
use crate::sorted::{SortedMap, SortedSet};
use crate::{
    Checked, Done, FragmentId, Part, PeerError, PeerId, PushOutcome, Round, SliceId, SliceMeta,
    Source, SpanningTree, Tag, Topology, WorkError,
};

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
    ) -> Checked {
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
    forbid(
        slice.part != Part::Contribution,
        "a relayed slice must be its sender's own",
    )?;
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

/// A message of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Relayed {
    pub(super) slice: SliceId,
    /// How many peers' parameters it is the mean of.
    pub(super) count: u32,
    /// Set where its sender takes this peer for its parent. A message that goes down counts only
    /// where this peer takes the sender for its parent.
    pub(super) up: bool,
}

/// The messages of one neighbour, with counts since the last one.
#[derive(Debug, Default)]
pub(super) struct Edge {
    /// The message that counts, and the round in which it was first mixed.
    held: Option<(Relayed, Round)>,
    /// Messages that came since, ascending by round.
    waiting: Vec<Relayed>,
    /// Rounds in which it missed the deadline since it last sent something.
    pub(super) missed: u8,
    /// Messages made for it since it last sent one.
    pub(super) unanswered: u64,
}

impl Edge {
    /// A message arrives: gives the slice that is no longer needed.
    pub(super) fn arrive(&mut self, message: Relayed) -> Option<SliceId> {
        // Any message shows that it relays, however old it is.
        (self.missed, self.unanswered) = (0, 0);
        let slice = message.slice;
        let held = self.held.as_ref().map(|(held, _)| held);
        let known = self.waiting.iter().chain(held).any(|m| m.slice == slice);
        if known {
            return None; // it lies where the first does
        }
        if held.is_some_and(|held| held.slice.round >= slice.round) {
            return Some(slice);
        }
        let later = |m: &Relayed| m.slice.round <= slice.round;
        let at = self.waiting.partition_point(later);
        self.waiting.insert(at, message);
        (self.waiting.len() > RELAY_SUM_WAITING_MAX).then(|| self.waiting.remove(0).slice)
    }

    /// Its message of this round is waited for: it has sent before, but nothing of this round
    /// or a later one. If it is rounds behind, its next message is awaited after every mix. A peer
    /// that has sent nothing yet is not awaited, because it may not be a neighbour in its own view.
    ///
    /// So every peer waits only for peers in earlier rounds, and never in a circle.
    pub(super) fn awaited(&self, round: Round) -> bool {
        let held = self.held.as_ref().map(|(held, _)| held);
        let Some(newest) = self.waiting.last().or(held) else {
            return false;
        };
        // Also where the message of this round was mixed early.
        let ahead = newest.slice.round >= round;
        let come = ahead || (apart(newest.slice.round, round) && !self.waiting.is_empty());
        !come && self.missed < RELAY_SUM_MISSES_MAX
    }

    /// It has not answered for long, so it has another parent, or does not relay.
    pub(super) fn is_silent(&self) -> bool {
        self.held.is_none() && self.unanswered > PATIENCE_ROUNDS
    }

    /// It takes this peer for its parent, as far as is known.
    pub(super) fn is_child(&self) -> bool {
        let held = self.held.as_ref().map(|(held, _)| held);
        self.waiting.last().or(held).is_some_and(|m| m.up)
    }

    /// A round begins: gives the slices that no longer count, because their sender is not the
    /// parent (any more), or because nothing newer came for long.
    pub(super) fn expire(&mut self, is_parent: bool, round: Round) -> Vec<SliceId> {
        let counts = |m: &Relayed| m.up || is_parent;
        let old = |(held, since): &mut (Relayed, Round)| {
            !counts(held) || round.since(*since) > PATIENCE_ROUNDS
        };
        let expired = self.held.take_if(old);
        let mut free: Vec<SliceId> = expired.map(|(m, _)| m.slice).into_iter().collect();
        self.waiting.retain(|m| {
            let useless = !counts(m) && m.slice.round < round;
            if useless {
                free.push(m.slice);
            }
            !useless
        });
        free
    }

    /// The neighbour has another parent now, unless a message of this round says otherwise: gives
    /// all earlier slices.
    pub(super) fn part(&mut self, round: Round) -> Vec<SliceId> {
        let held = self.held.take().map(|(m, _)| m);
        let before = self.waiting.extract_if(.., |m| m.slice.round < round);
        before.chain(held).map(|m| m.slice).collect()
    }

    /// Takes the message of this round, else the newest, in place of the one that counted. Gives
    /// the slices that are no longer needed.
    pub(super) fn take(&mut self, is_parent: bool, round: Round) -> Vec<SliceId> {
        let counts = |m: &&Relayed| m.up || is_parent;
        let mut here = self.waiting.iter().filter(counts);
        // Where its sender skipped this round, the next one is the nearest to it.
        let this = |m: &&Relayed| m.slice.round >= round && !apart(m.slice.round, round);
        let current = here.clone().find(this);
        let Some(taken) = current.or_else(|| here.next_back()).copied() else {
            return Vec::new();
        };
        let mut free = Vec::new();
        self.waiting.retain(|m| {
            let past = m.slice.round <= taken.slice.round;
            if past && *m != taken {
                free.push(m.slice);
            }
            !past
        });
        let before = self.held.replace((taken, round));
        free.extend(before.map(|(m, _)| m.slice));
        free
    }

    /// The slice that counts, and how many peers' parameters it is the mean of.
    pub(super) fn held(&self) -> Option<(SliceId, u32)> {
        self.held.as_ref().map(|(m, _)| (m.slice, m.count))
    }

    /// A slice is bad: true where it counted, and no longer does.
    pub(super) fn forget(&mut self, slice: SliceId) -> bool {
        self.held.take_if(|(m, _)| m.slice == slice).is_some()
    }

    /// The neighbour is gone: gives all of its slices.
    pub(super) fn end(&mut self) -> Vec<SliceId> {
        let held = self.held.take().map(|(m, _)| m);
        let all = self.waiting.drain(..).chain(held);
        all.map(|m| m.slice).collect()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// Rounds are too far apart to say who waits for whom: one peer began earlier, or alone.
fn apart(one: Round, other: Round) -> bool {
    one.0.abs_diff(other.0) > ROUNDS_AHEAD_MAX
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Near {
    pub(super) peer: PeerId,
    /// How many peers lie behind the edge to it: its message weighs no more.
    pub(super) behind: u32,
}

/// One peer's place in one of the two trees.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// The neighbour on the way to the root; none at a root.
    pub(super) parent: Option<Near>,
    /// The peers whose parent this one is, where they have the same view.
    children: Vec<Near>,
}

impl Place {
    pub(super) fn near(&self) -> impl Iterator<Item = &Near> {
        self.parent.iter().chain(&self.children)
    }

    pub(super) fn is_near(&self, peer: PeerId) -> bool {
        self.near().any(|near| near.peer == peer)
    }
}

/// Where one peer stands in the tree that sums travel along, by its own view.
///
/// The tree over all peers that take part.
#[derive(Debug)]
pub(super) struct Tree {
    shape: SpanningTree,
    members: Ranks,
    /// Of even fragments, whose parents have lower ids, and of odd ones, whose parents have higher.
    places: [Place; 2],
}

impl Tree {
    /// The tree by this peer's view, after `old`; and whether it is over other peers. `relays` says
    /// which peers do their part in which of the two trees.
    pub(super) fn of(
        old: Option<Self>,
        cx: &Context,
        topology: &dyn Topology,
        relays: impl Fn(usize, PeerId) -> bool,
    ) -> (Self, bool) {
        // Suspected peers included: they are passed over one by one, and the tree keeps its shape.
        let others = cx.view.greeted().filter(|(_, remote)| remote.ready);
        let members = Ranks::among(cx.me(), others.map(|(id, _)| id));
        let same = old.as_ref().is_some_and(|old| old.members == members);
        // A shape depends on the number of peers alone, and making one takes time.
        let kept = old.filter(|old| old.members.count() == members.count());
        let shape = kept.map_or_else(
            || SpanningTree::of(topology, members.count()),
            |old| old.shape,
        );
        let last = members.count() - 1;
        let even = place(
            &shape,
            members.me(),
            |rank| members.peer(rank),
            |id| relays(0, id),
        );
        let reversed = |rank: usize| members.peer(last.checked_sub(rank)?);
        let odd = place(&shape, last - members.me(), reversed, |id| relays(1, id));
        let tree = Self {
            shape,
            places: [even, odd],
            members,
        };
        (tree, !same)
    }

    pub(super) fn place(&self, fragment: FragmentId) -> &Place {
        &self.places[usize::from(fragment.0 % 2)]
    }

    /// How many peers there are, this one included.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.members.count()).unwrap_or(u32::MAX)
    }
}

/// The place of a rank. A parent that does not relay is passed over: for its own parent and so on,
/// then for the lowest rank below that relays. Ids on the way to the root only fall (rise, in odd
/// fragments), so that no two views make a circle.
fn place(
    shape: &SpanningTree,
    rank: usize,
    id: impl Fn(usize) -> Option<PeerId>,
    relays: impl Fn(PeerId) -> bool,
) -> Place {
    let relays = |of: &usize| id(*of).is_some_and(&relays);
    let near = |of: usize, behind: usize| {
        Some(Near {
            peer: id(of)?,
            behind: u32::try_from(behind).ok()?,
        })
    };
    let above = std::iter::successors(shape.parent(rank), |of| shape.parent(*of));
    let is_root = shape.parent(rank).is_none();
    let instead = (0..rank).filter(|_| !is_root);
    let parent = above.chain(instead).find(relays);
    let children = shape.children(rank).iter();
    Place {
        parent: parent.and_then(|of| near(of, shape.len() - shape.size(rank))),
        children: children
            .filter_map(|of| near(*of, shape.size(*of)))
            .collect(),
    }
}

/// The order of ids in a fragment's tree allows this parent.
pub(super) fn may_be_above(fragment: FragmentId, parent: PeerId, child: PeerId) -> bool {
    match fragment.0 % 2 {
        0 => parent < child,
        _ => parent > child,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FragmentId, Part, PeerId};

    fn slice(round: u64) -> SliceId {
        SliceId {
            round: Round(round),
            fragment: FragmentId(0),
            shard: 0,
            part: Part::Contribution,
            origin: PeerId::from_bytes([2; 32]),
            attempt: crate::Attempt(0),
        }
    }

    fn message(round: u64, up: bool) -> Relayed {
        Relayed {
            slice: slice(round),
            count: 3,
            up,
        }
    }

    #[test]
    fn the_message_of_the_round_comes_first_and_makes_older_ones_useless() {
        let mut edge = Edge {
            missed: RELAY_SUM_MISSES_MAX,
            ..Edge::default()
        };
        for round in [4, 6, 3] {
            assert_eq!(edge.arrive(message(round, true)), None);
        }
        assert!(edge.missed == 0 && edge.is_child());
        assert_eq!(edge.arrive(message(4, true)), None, "it is here already");
        assert!(!edge.awaited(Round(5)) && edge.awaited(Round(7)));
        assert!(!Edge::default().awaited(Round(0)), "it never sent anything");
        assert_eq!(edge.take(false, Round(4)), [slice(3)]);
        assert_eq!(edge.held(), Some((slice(4), 3)));
        assert_eq!(edge.arrive(message(4, true)), None);
        assert_eq!(edge.arrive(message(2, true)), Some(slice(2)), "it is past");
        // Of round 5 nothing came: the next one counts, and 4 no longer does.
        assert_eq!(edge.take(false, Round(5)), [slice(4)]);
        assert_eq!(edge.held(), Some((slice(6), 3)));
        // Its sender is a round ahead and waits: for the rounds between nothing of it is awaited.
        assert!(!edge.awaited(Round(6)) && edge.awaited(Round(7)));
        assert_eq!(edge.take(false, Round(6)), []);
        assert!(edge.forget(slice(6)) && !edge.forget(slice(6)));
    }

    #[test]
    fn what_is_late_counts_and_what_is_of_no_parent_or_of_long_ago_does_not() {
        let mut edge = Edge::default();
        edge.arrive(message(4, false));
        assert_eq!(edge.take(false, Round(4)), [], "it is not the parent");
        assert_eq!(edge.take(true, Round(5)), []);
        assert_eq!(edge.held(), Some((slice(4), 3)));
        assert!(!edge.is_child());
        assert_eq!(edge.expire(true, Round(9)), []);
        assert_eq!(edge.expire(true, Round(10)), [slice(4)]);
        edge.arrive(message(11, false));
        edge.take(true, Round(11));
        edge.arrive(message(12, false));
        assert_eq!(edge.expire(false, Round(12)), [slice(11)]);
        assert_eq!(edge.expire(false, Round(13)), [slice(12)]);
        assert_eq!(edge.held(), None);
    }

    #[test]
    fn of_one_that_is_rounds_behind_the_next_message_is_awaited() {
        let mut edge = Edge::default();
        edge.arrive(message(3, true));
        assert!(!edge.awaited(Round(50)));
        assert_eq!(edge.take(false, Round(50)), []);
        assert!(edge.awaited(Round(51)));
        edge.arrive(message(4, true));
        edge.arrive(message(5, true));
        assert!(!edge.awaited(Round(51)));
        assert_eq!(edge.take(false, Round(51)), [slice(4), slice(3)]);
        for _ in 0..RELAY_SUM_MISSES_MAX {
            assert!(edge.awaited(Round(52)));
            edge.missed += 1;
        }
        assert!(!edge.awaited(Round(52)), "it sends no more");
    }

    /// It may wait for this peer, or for one that does.
    #[test]
    fn one_that_is_ahead_is_never_waited_for_however_far() {
        for ahead in [1, 2, 3, 40] {
            let mut edge = Edge::default();
            edge.arrive(message(50 + ahead, true));
            assert_eq!(edge.take(false, Round(50)), []);
            for round in 51..=50 + ahead {
                assert!(!edge.awaited(Round(round)), "{ahead}");
            }
            assert!(edge.awaited(Round(51 + ahead)));
        }
    }

    #[test]
    fn what_waits_is_bounded_and_the_oldest_goes() {
        let mut edge = Edge::default();
        for round in 1..=RELAY_SUM_WAITING_MAX as u64 {
            assert_eq!(edge.arrive(message(round, round % 2 == 0)), None);
        }
        assert_eq!(edge.arrive(message(9, true)), Some(slice(1)));
        assert_eq!(edge.waiting(), RELAY_SUM_WAITING_MAX);
        assert_eq!(edge.end().len(), RELAY_SUM_WAITING_MAX);
        assert_eq!(edge.waiting(), 0);
    }
}
