//! What comes before its round, group or fragment begins at a peer.

use super::message::Scoped;
use crate::core::context::Context;
use crate::exchange::{Arrived, broke};
use crate::limits::{EARLY_MESSAGES_MAX, EARLY_MESSAGES_PER_PEER_MAX};
use crate::{FragmentId, Order, PeerError, PeerId, Round, SliceId};

/// Slices and messages that came early.
#[derive(Debug, Default)]
pub(crate) struct Early {
    slices: Vec<Arrived>,
    messages: Vec<(PeerId, Scoped)>,
}

impl Early {
    /// Number of them.
    pub(crate) fn len(&self) -> usize {
        self.slices.len() + self.messages.len()
    }

    pub(crate) fn keep_message(&mut self, from: PeerId, message: &Scoped) {
        let of_sender = self.messages.iter().filter(|(f, _)| *f == from);
        // A bound for each sender, so that one of them cannot take the room of the others.
        let room = of_sender.count() < EARLY_MESSAGES_PER_PEER_MAX;
        if room && self.messages.len() < EARLY_MESSAGES_MAX {
            self.messages.push((from, message.clone()));
        }
    }

    /// Keeps a slice: in place of the same of an earlier attempt, whose bytes it has replaced, or as a
    /// further one of at most `most` of its sender. Says whether it is a further one.
    ///
    /// # Errors
    /// When its sender has sent as many; then its bytes are released.
    pub(crate) fn keep_slice(
        &mut self,
        cx: &mut Context,
        early: Arrived,
        most: usize,
    ) -> Result<bool, PeerError> {
        let Arrived { from, slice, .. } = early;
        if let Some(again) = self.slices.iter_mut().find(|early| early.slice == slice) {
            *again = early;
            return Ok(false);
        }
        if self
            .slices
            .iter()
            .filter(|early| early.from == from)
            .count()
            < most
        {
            self.slices.push(early);
            return Ok(true);
        }
        cx.order(Order::Release { slice });
        broke("too many early slices").map(|()| false)
    }

    pub(crate) fn take_slices(&mut self, due: impl Fn(Round, FragmentId) -> bool) -> Vec<Arrived> {
        let due = |early: &mut Arrived| due(early.slice.round, early.slice.fragment);
        self.slices.extract_if(.., due).collect()
    }

    pub(crate) fn take_messages(
        &mut self,
        due: impl Fn(Round, FragmentId) -> bool,
    ) -> Vec<(PeerId, Scoped)> {
        let due = |(_, m): &mut (PeerId, Scoped)| due(m.round, m.fragment);
        self.messages.extract_if(.., due).collect()
    }

    /// A peer is gone, and its slices are for a group in which it would be.
    pub(crate) fn drop_of(&mut self, cx: &mut Context, peer: PeerId) {
        self.retain_slices(cx, |early| early.from != peer, |_| false);
    }

    /// The round is over. Bytes that are `held` under the same name for something else stay.
    pub(crate) fn forget_the_round(&mut self, cx: &mut Context, held: impl Fn(&SliceId) -> bool) {
        let round = cx.round;
        self.retain_slices(cx, |early| early.slice.round > round, held);
        self.messages.retain(|(_, message)| message.round > round);
    }

    pub(crate) fn retain_messages(&mut self, wanted: impl Fn(&Scoped) -> bool) {
        self.messages.retain(|(_, message)| wanted(message));
    }

    /// Keeps the wanted slices, and releases the others unless their names are `held` otherwise.
    pub(crate) fn retain_slices(
        &mut self,
        cx: &mut Context,
        wanted: impl Fn(&Arrived) -> bool,
        held: impl Fn(&SliceId) -> bool,
    ) {
        self.slices.retain(|early| {
            let keep = wanted(early);
            if !keep && !held(&early.slice) {
                cx.order(Order::Release { slice: early.slice });
            }
            keep
        });
    }
}
