//! A message on its way: made, pushed, pushed again where it was lost, arriving.

use super::Relay;
use super::edge::Message;
use super::mixing::{Mixing, Stage};
use super::tree::may_be_above;
use crate::core::context::Context;
use crate::limits::{
    NEIGHBOURS_MAX, PUSHES_AT_ONCE_MAX, RELAY_MISSES_MAX, RELAYED_UNDER_WAY_MAX, VIEW_PEERS_MAX,
};
use crate::{
    Done, FragmentId, Order, Part, PeerError, PeerId, PushOutcome, SliceId, SliceMeta, Wait,
    WorkError,
};

/// A message that is being made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passing {
    slice: SliceId,
    to: PeerId,
    /// How many peers' parameters it is the mean of.
    count: u32,
    /// Whether it goes to the parent.
    up: bool,
}

/// A message whose push is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    to: PeerId,
    meta: SliceMeta,
    /// How often it was pushed again.
    again: u8,
}

impl Relay {
    /// Begins a fragment's round: what no longer counts goes, and every neighbour gets a message.
    pub(super) fn begin_fragment(&mut self, cx: &mut Context, fragment: FragmentId) -> Mixing {
        let mut mixing = Mixing::new(cx.round, fragment);
        let Some(tree) = &self.tree else {
            return mixing;
        };
        let place = tree.place(fragment);
        let parent = place.parent.map(|near| near.peer);
        let children = place.children.iter().map(|near| near.peer);
        let near: Vec<PeerId> = parent.into_iter().chain(children).collect();
        for ((of, peer), edge) in &mut self.edges {
            if *of == fragment {
                for slice in edge.expire(parent == Some(*peer), cx.round) {
                    cx.order(Order::Release { slice });
                }
            }
        }
        for to in near {
            let edge = self.edges.entry((fragment, to)).or_default();
            let does = cx.view.get(to).is_some_and(|remote| !remote.suspected);
            if does && edge.awaited(cx.round) {
                mixing.expected.insert(to);
            }
            if parent == Some(to) || !edge.is_silent() {
                self.serve(cx, &mut mixing, to);
            }
        }
        // Nobody waits for these: they may have another parent by now.
        let strays: Vec<PeerId> = self.strays(fragment).map(|(peer, _)| peer).collect();
        for to in strays {
            self.serve(cx, &mut mixing, to);
        }
        mixing
    }

    /// Somebody came or went: those who are no neighbours any more have another parent, and everybody is worth
    /// waiting for.
    pub(super) fn part(&mut self, cx: &mut Context) {
        let Some(tree) = &self.tree else {
            return;
        };
        for ((fragment, peer), edge) in &mut self.edges {
            (edge.missed, edge.unanswered) = (0, 0);
            let place = tree.place(*fragment);
            let mut near = place.parent.iter().chain(&place.children);
            if near.all(|near| near.peer != *peer) {
                for slice in edge.part(cx.round) {
                    cx.order(Order::Release { slice });
                }
            }
        }
    }

    /// Orders the message of a round to a neighbour, unless it takes none.
    fn serve(&mut self, cx: &mut Context, mixing: &mut Mixing, to: PeerId) {
        let fragment = mixing.fragment;
        let sent = self.sent.iter();
        let open = sent.filter(|(slice, sent)| sent.to == to && slice.fragment == fragment);
        let slot = mixing.served.len();
        if slot >= NEIGHBOURS_MAX {
            return;
        }
        if open.count() >= RELAYED_UNDER_WAY_MAX {
            mixing.unserved.insert(to);
            return;
        }
        mixing.unserved.remove(&to);
        if mixing.served.insert(to) {
            let slice = SliceId {
                round: mixing.round,
                fragment,
                shard: 0,
                part: Part::Contribution,
                origin: cx.me(),
                attempt: (cx.life << 6) | (slot as u8 & 63),
            };
            mixing.making += 1;
            let edge = self.edges.entry((fragment, to)).or_default();
            edge.unanswered = edge.unanswered.saturating_add(1);
            self.make(cx, slice, to);
        }
    }

    /// Orders a message: the own parameters and all that counts of the other neighbours.
    fn make(&mut self, cx: &mut Context, slice: SliceId, to: PeerId) {
        let mut counting = self.counting(slice.fragment);
        counting.retain(|(peer, ..)| *peer != to);
        let parent = self
            .tree
            .as_ref()
            .and_then(|tree| tree.place(slice.fragment).parent);
        let passing = Passing {
            slice,
            to,
            count: 1 + counting.iter().map(|(.., weight)| weight).sum::<u32>(),
            up: parent.is_some_and(|near| near.peer == to),
        };
        let inputs = counting.into_iter();
        let inputs = inputs.map(|(_, slice, weight)| (slice, f64::from(weight)));
        let inputs = inputs.collect();
        let order = cx.order(Order::EncodeRelayed { slice, inputs });
        self.making.insert(order, passing);
    }

    /// A message is made, or cannot be.
    pub(super) fn made(&mut self, cx: &mut Context, passing: Passing, done: &Done) {
        let Passing { slice, to, .. } = passing;
        let index = usize::from(slice.fragment.0);
        let mixing = self.mixings.get(index);
        // One of a round that was left meanwhile is nobody's.
        let current = mixing.is_some_and(|mixing| mixing.round == slice.round);
        match done {
            Done::Encoded { bytes, .. } if current => {
                let meta = SliceMeta {
                    of: 1,
                    weight: f64::from(passing.count),
                    contributors: u64::from(passing.up),
                    group: 0,
                    bytes: *bytes,
                };
                self.sent.insert(slice, Sent { to, meta, again: 0 });
                cx.push(to, slice, meta, 0);
                self.made_one(index, false);
            }
            Done::Encoded { .. } => {
                cx.order(Order::Release { slice });
            }
            Done::Failed(WorkError::BadSlice {
                slice: bad, reason, ..
            }) if current && self.forget_bad(cx, slice.fragment, *bad, reason) => {
                self.make(cx, slice, to);
            }
            _ if current => self.made_one(index, true),
            _ => {}
        }
    }

    fn made_one(&mut self, index: usize, failed: bool) {
        if let Some(mixing) = self.mixings.get_mut(index) {
            mixing.making = mixing.making.saturating_sub(1);
            mixing.failed |= failed;
        }
    }

    /// A slice that counted is bad: its sender is accused, and the slice forgotten. False where it was
    /// none that counted.
    pub(super) fn forget_bad(
        &mut self,
        cx: &mut Context,
        fragment: FragmentId,
        bad: SliceId,
        reason: &str,
    ) -> bool {
        cx.accuse(bad.origin, format!("a slice that is bad: {reason}"));
        let edge = self.edges.get_mut(&(fragment, bad.origin));
        let counted = edge.is_some_and(|edge| edge.forget(bad));
        if counted {
            cx.order(Order::Release { slice: bad });
        }
        counted
    }

    pub(super) fn pushed(
        &mut self,
        cx: &mut Context,
        to: PeerId,
        slice: SliceId,
        outcome: PushOutcome,
    ) {
        let Some(sent) = self.sent.get_mut(&slice) else {
            return;
        };
        let linked = cx.view.greeted().any(|(id, _)| id == to);
        let lost = matches!(outcome, PushOutcome::Lost | PushOutcome::Unknown);
        // Only while it is the newest: the next one makes it useless.
        let again = lost && linked && slice.round == cx.round && sent.again < PUSHES_AT_ONCE_MAX;
        if again {
            sent.again += 1;
            cx.push(to, slice, sent.meta, 0);
        } else {
            self.sent.remove(&slice);
            cx.order(Order::Release { slice });
            self.serve_now(cx, slice.fragment, to);
        }
    }

    /// One that had too many messages under way can take this round's now: it may wait for it.
    fn serve_now(&mut self, cx: &mut Context, fragment: FragmentId, to: PeerId) {
        let index = usize::from(fragment.0);
        let waits = |m: &&mut Mixing| m.stage == Stage::Collecting && m.unserved.contains(&to);
        if let Some(mixing) = self.mixings.get_mut(index).filter(waits) {
            let mut mixing = mixing.take();
            self.serve(cx, &mut mixing, to);
            self.mixings[index] = mixing;
        }
    }

    pub(super) fn arrived(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        slice: SliceId,
        meta: SliceMeta,
    ) -> Result<(), PeerError> {
        let message = check(cx, from, slice, meta)?;
        if !cx.view.greeted().any(|(id, _)| id == from) {
            // Of one that is gone nothing counts.
            cx.order(Order::Release { slice });
            return Ok(());
        }
        let edge = self.edges.entry((slice.fragment, from)).or_default();
        if let Some(useless) = edge.arrive(message) {
            cx.order(Order::Release { slice: useless });
        }
        if let Some(remote) = cx.view.get_mut(from) {
            // It does its part, however late.
            remote.suspected = false;
        }
        let (began, index) = (self.began, usize::from(slice.fragment.0));
        let edge = self.edges.get(&(slice.fragment, from));
        let come = |round| edge.is_some_and(|edge| !edge.awaited(round));
        let taken = self
            .mixings
            .get_mut(index)
            .map(|mixing| (come(mixing.round), mixing.take()));
        if let Some((come, mut mixing)) = taken {
            if come && mixing.expected.remove(&from) {
                cx.deadlines
                    .record(Wait::Partners, from, cx.now.since(began));
            }
            if message.up && mixing.stage == Stage::Collecting {
                // Of a child that was not known of.
                self.serve(cx, &mut mixing, from);
            }
            self.mixings[index] = mixing;
        }
        self.advance(cx);
        Ok(())
    }

    /// The deadline has passed: nobody is waited for any more.
    pub(super) fn miss(&mut self, cx: &mut Context) {
        for mixing in &mut self.mixings {
            for peer in std::mem::take(&mut mixing.expected) {
                let edge = self.edges.entry((mixing.fragment, peer)).or_default();
                edge.missed = edge.missed.saturating_add(1);
                if edge.missed >= RELAY_MISSES_MAX {
                    cx.suspect(peer);
                }
            }
        }
        self.advance(cx);
    }

    /// A neighbour is gone: nothing is awaited of it, and nothing of it counts any more.
    pub(super) fn gone(&mut self, cx: &mut Context, peer: PeerId) {
        let edges = self.edges.iter_mut().filter(|((_, id), _)| *id == peer);
        for slice in edges.flat_map(|(_, edge)| edge.end()) {
            cx.order(Order::Release { slice });
        }
        self.edges.retain(|(_, id), _| *id != peer);
        for mixing in &mut self.mixings {
            mixing.expected.remove(&peer);
            mixing.unserved.remove(&peer);
        }
        self.advance(cx);
    }
}

/// What an arrived slice must be.
fn check(
    cx: &Context,
    from: PeerId,
    slice: SliceId,
    meta: SliceMeta,
) -> Result<Message, PeerError> {
    let broke = |what: &str| {
        let what = what.to_owned();
        Err(PeerError::Unexpected { what })
    };
    let whole = slice.shard == 0 && meta.of == 1 && slice.part == Part::Contribution;
    if slice.origin != from || !whole {
        return broke("a relayed slice must be its sender's own, and whole");
    }
    if usize::from(slice.fragment.0) >= cx.plan.fragments.len() {
        return broke("a slice of a fragment that the plan does not have");
    }
    let counts = 1.0..=VIEW_PEERS_MAX as f64;
    if !counts.contains(&meta.weight) || meta.weight.fract() != 0.0 {
        return broke("a relayed slice is the mean of one or more peers' parameters");
    }
    let up = meta.contributors == 1;
    let fits = match up {
        true => may_be_above(slice.fragment, cx.me(), from),
        false => meta.contributors == 0 && may_be_above(slice.fragment, from, cx.me()),
    };
    if !fits {
        return broke("a relayed slice goes up to a lower id and down from one, or the other way");
    }
    Ok(Message {
        slice,
        count: meta.weight as u32,
        up,
    })
}
