//! The two halves of an exchange on their way: what is encoded, pushed, arrives, or never does.

use super::Pairwise;
use super::edge::{Edge, Half, Meaning, Sent, Waiting};
use crate::core::context::Context;
use crate::limits::{HISTORY_ROUNDS_MAX, PUSHES_AT_ONCE_MAX};
use crate::{
    Event, FragmentId, Order, OrderId, Part, PeerError, PeerId, PushOutcome, SliceId, SliceMeta,
    Wait,
};

impl Pairwise {
    /// Pushes again what surely or perhaps did not arrive; gives up on what never does.
    pub(super) fn push_again(&mut self, cx: &mut Context) {
        let linked: Vec<PeerId> = cx.view.greeted().map(|(id, _)| id).collect();
        let mut stuck = Vec::new();
        for ((fragment, peer), edge) in &mut self.edges {
            let due = edge.unheard.iter_mut().filter(|sent| !sent.under_way);
            for sent in due.filter(|_| linked.contains(peer)) {
                (sent.under_way, sent.again) = (true, 0);
                cx.push(*peer, sent.slice, sent.meta, 0);
            }
            let rounds = |sent: &Sent| cx.round.since(sent.slice.round);
            let old = |sent: &Sent| !sent.under_way && rounds(sent) > HISTORY_ROUNDS_MAX as u64;
            if !edge.mixing && edge.unheard.iter().any(old) {
                stuck.push((*fragment, *peer));
            }
        }
        for key in stuck {
            self.restart(cx, key);
        }
    }

    /// The two ends of an edge no longer know what the other knows: from this round on they begin anew.
    pub(super) fn restart(&mut self, cx: &mut Context, key: (FragmentId, PeerId)) {
        let Some(edge) = self.edges.get_mut(&key) else {
            return;
        };
        report(cx, key.1, edge);
        for slice in edge.end() {
            cx.order(Order::Release { slice });
        }
    }

    pub(super) fn arrived(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        slice: SliceId,
        meta: SliceMeta,
    ) -> Result<(), PeerError> {
        let key = (slice.fragment, from);
        let (session, number) = self.check(cx, from, slice, meta)?;
        let edge = self.edges.entry(key).or_insert_with(Edge::new);
        if session > edge.session && number == 0 && !edge.mixing && !edge.closing {
            report(cx, from, edge);
            for old in edge.begin(session) {
                cx.order(Order::Release { slice: old });
            }
        }
        let waiting = Waiting {
            slice,
            share: meta.weight,
            number,
        };
        match edge.take(session, waiting) {
            Meaning::Kept => {
                for free in edge.heard(|sent| sent.number < number) {
                    cx.order(Order::Release { slice: free });
                }
                if let Some(remote) = cx.view.get_mut(from) {
                    // It does its part, however late.
                    remote.suspected = false;
                }
                self.arrived_in_time(cx, from, slice.fragment);
                self.advance(cx);
            }
            // The same once more lies where the first does; another under its number is nobody's.
            Meaning::Repeated => {
                if edge.theirs.iter().all(|waiting| waiting.slice != slice) {
                    cx.order(Order::Release { slice });
                }
            }
            Meaning::Past => {
                cx.order(Order::Release { slice });
            }
            Meaning::Gap => {
                cx.order(Order::Release { slice });
                edge.above = edge.above.max(session);
                if !edge.mixing && !edge.closing {
                    self.restart(cx, key);
                }
            }
        }
        Ok(())
    }

    /// What a slice must be; gives its session and number.
    fn check(
        &self,
        cx: &Context,
        from: PeerId,
        slice: SliceId,
        meta: SliceMeta,
    ) -> Result<(u32, u32), PeerError> {
        let broke = |what: &str| {
            let what = what.to_owned();
            Err(PeerError::Unexpected { what })
        };
        let whole = slice.shard == 0 && meta.of == 1 && slice.part != Part::Partial;
        if slice.origin != from || !whole {
            return broke("a slice between neighbours must be its sender's own and whole");
        }
        if !(meta.weight.is_finite() && (0.0..=1.0).contains(&meta.weight)) {
            return broke("the share that a slice offers must be from 0 to 1");
        }
        if usize::from(slice.fragment.0) >= cx.plan.fragments.len() {
            return broke("a slice of a fragment that the plan does not have");
        }
        let numbers = (u32::try_from(meta.group), u32::try_from(meta.contributors));
        let (Ok(session), Ok(number)) = numbers else {
            return broke("a session or an exchange beyond all numbers");
        };
        let whole = slice.part == Part::Aggregate;
        if session == 0 || whole != (self.replicas && number == 0) {
            return broke("only what begins a session is whole, and sessions begin with one");
        }
        Ok((session, number))
    }

    fn arrived_in_time(&mut self, cx: &mut Context, from: PeerId, fragment: FragmentId) {
        let began = self.began;
        let mixing = self.mixings.get_mut(usize::from(fragment.0));
        if mixing.is_some_and(|mixing| mixing.expected.remove(&from)) {
            cx.deadlines
                .record(Wait::Partners, from, cx.now.since(began));
        }
    }

    pub(super) fn pushed(
        &mut self,
        cx: &mut Context,
        to: PeerId,
        slice: SliceId,
        outcome: PushOutcome,
    ) {
        let Some(edge) = self.edges.get_mut(&(slice.fragment, to)) else {
            return;
        };
        if outcome == PushOutcome::Delivered {
            for free in edge.heard(|sent| sent.slice == slice) {
                cx.order(Order::Release { slice: free });
            }
        } else if let Some(sent) = edge.unheard.iter_mut().find(|s| s.slice == slice) {
            // At once a few times, then with the next round: a link that is dead is soon known to be.
            sent.under_way = sent.again < PUSHES_AT_ONCE_MAX;
            if sent.under_way {
                sent.again += 1;
                let meta = sent.meta;
                cx.push(to, slice, meta, 0);
            }
        }
    }

    pub(super) fn encoded(&mut self, cx: &mut Context, order: OrderId, bytes: Option<u64>) {
        let Some((slice, peer, session, share)) = self.encodings.remove(&order) else {
            return;
        };
        let mixing = self.mixings.get_mut(usize::from(slice.fragment.0));
        // One of a round that was left meanwhile is no part of this one's mix.
        if let Some(mixing) = mixing.filter(|mixing| mixing.round == slice.round) {
            mixing.encoding = mixing.encoding.saturating_sub(1);
            mixing.failed |= bytes.is_none();
        }
        let edge = self.edges.get_mut(&(slice.fragment, peer));
        let edge = edge.filter(|edge| edge.half == Half::Encoding(order));
        match (edge, bytes) {
            (Some(edge), Some(bytes)) if edge.session == session => {
                let meta = SliceMeta {
                    of: 1,
                    weight: share,
                    contributors: u64::from(edge.number),
                    group: u64::from(session),
                    bytes,
                };
                edge.half = Half::Pushed(slice, share);
                edge.unheard.push(Sent {
                    slice,
                    meta,
                    number: edge.number,
                    under_way: true,
                    again: 0,
                });
                cx.push(peer, slice, meta, 0);
            }
            (Some(edge), None) => edge.half = Half::Idle,
            (_, Some(_)) => {
                cx.order(Order::Release { slice });
            }
            (None, None) => {}
        }
    }

    /// A link is gone. What is complete is mixed all the same: the other end may have done so.
    pub(super) fn gone(&mut self, cx: &mut Context, peer: PeerId) {
        let mut freed = Vec::new();
        for ((_, id), edge) in &mut self.edges {
            if *id != peer {
                continue;
            }
            report(cx, peer, edge);
            if edge.complete() || edge.mixing {
                edge.closing = true;
                let number = edge.number;
                let (kept, dropped) = edge.theirs.drain(..).partition(|w| w.number == number);
                edge.theirs = kept;
                freed.extend(dropped.into_iter().map(|w: Waiting| w.slice));
                freed.extend(edge.heard(|_| true));
            } else {
                freed.extend(edge.end());
            }
        }
        for slice in freed {
            cx.order(Order::Release { slice });
        }
        self.forget(cx, peer);
        for mixing in &mut self.mixings {
            mixing.expected.remove(&peer);
        }
        self.advance(cx);
    }

    /// Drops the replicas of a peer once no session with it goes on.
    pub(super) fn forget(&mut self, cx: &mut Context, peer: PeerId) {
        let live = |edge: &Edge| edge.open;
        let any = self.edges.iter();
        let any = any
            .filter(|((_, id), _)| *id == peer)
            .any(|(_, edge)| live(edge));
        if self.replicas && !any {
            cx.order(Order::ForgetReplicas { peer });
        }
    }
}

/// A session ends with a half of unknown fate: the other end may have mixed it, or not.
fn report(cx: &mut Context, peer: PeerId, edge: &Edge) {
    if let Some(sent) = edge.unheard.first() {
        let weight = sent.meta.weight;
        cx.emit(Event::MassUncertain { peer, weight });
    }
}
