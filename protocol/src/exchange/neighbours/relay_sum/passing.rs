//! Own messages: made, pushed, and pushed again where they were lost.

use super::message::{Passing, Sent};
use super::state::{RelaySum, release};
use super::tree::Tree;
use crate::core::context::Context;
use crate::exchange::neighbours::rule::{Encoded, MixesOf};
use crate::exchange::neighbours::slices;
use crate::limits::{NEIGHBOURS_MAX, PUSHES_AT_ONCE_MAX, RELAY_SUM_UNDER_WAY_MAX};
use crate::{Done, FragmentId, Order, PeerId, PushOutcome, SliceId, SliceMeta, Tag, WorkError};

impl RelaySum {
    /// Begins a fragment's round: what no longer counts is released, and every neighbour gets a
    /// message.
    pub(super) fn begin_fragment(
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
    pub(super) fn serve_while_collecting(
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
        counting.retain(|(peer, ..)| *peer != to);
        let passing = Passing {
            to,
            count: 1 + counting.iter().map(|(.., weight)| weight).sum::<u32>(),
            up: self.parent(slice.fragment) == Some(to),
        };
        let inputs = counting.into_iter();
        let inputs = inputs.map(|(_, slice, weight)| (slice, f64::from(weight)));
        let inputs = inputs.collect();
        let order = Order::EncodeRelayed { slice, inputs };
        mixes.encode(cx, slice, order, passing);
    }

    /// A message is made, or cannot be.
    pub(super) fn made(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        encoded: &Encoded<'_, Passing>,
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
                let sent = Sent { meta, again: 0 };
                // Only its push needs the message, so it is released with the push.
                self.sent.push(cx, (passing.to, slice), meta, sent);
                self.sent.spare(slice);
                return;
            }
            Done::Failed(WorkError::BadSlice {
                slice: bad, reason, ..
            }) => {
                cx.accuse(bad.origin, format!("a slice that is bad: {reason}"));
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

    /// The push of a message ended.
    pub(super) fn push_ended(
        &mut self,
        cx: &mut Context,
        mixes: &mut MixesOf<Self>,
        (to, slice): (PeerId, SliceId),
        outcome: PushOutcome,
    ) {
        let Some(sent) = self.sent.ended(to, slice) else {
            return;
        };
        let linked = cx.view.greeted().any(|(id, _)| id == to);
        let lost = matches!(outcome, PushOutcome::Lost | PushOutcome::Unknown);
        // Only while it is the newest: the next message makes it useless.
        if lost && linked && slice.round == cx.round && sent.again < PUSHES_AT_ONCE_MAX {
            let again = Sent {
                again: sent.again + 1,
                ..sent
            };
            self.sent.push(cx, (to, slice), sent.meta, again);
            return;
        }
        self.sent.release(cx, |_| false);
        // There is room again for this round's message to a peer that had too many under way.
        let mix = mixes.get_mut(slice.fragment);
        if mix.is_some_and(|mix| mix.own.unserved.contains(&to)) {
            self.serve_while_collecting(cx, mixes, slice.fragment, to);
        }
    }
}
