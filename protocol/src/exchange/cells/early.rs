//! What comes before its round, cell or fragment begins at a peer of cells.

use crate::core::context::Context;
use crate::exchange::agreed::{History, Scoped};
use crate::limits::{EARLY_MESSAGES_MAX, EARLY_MESSAGES_PER_PEER_MAX, EARLY_SLICES_MAX};
use crate::{Digest, Order, PeerError, PeerId, Round, SliceId, SliceMeta};
use std::collections::BTreeSet;

/// A slice, its header and its digest.
pub(super) type Bytes = (SliceId, SliceMeta, Option<Digest>);

/// What came before its round, cell or fragment began here.
#[derive(Debug, Default)]
pub(super) struct Early {
    ready: BTreeSet<(Round, PeerId)>,
    pub(super) slices: Vec<(PeerId, Bytes)>,
    pub(super) messages: Vec<(PeerId, Scoped)>,
}

impl Early {
    pub(super) fn len(&self) -> usize {
        self.slices.len() + self.messages.len()
    }

    /// The peers that were ready for a round before this one.
    pub(super) fn ready_in(&self, round: Round) -> BTreeSet<PeerId> {
        let ready = self.ready.iter().filter(|(of, _)| *of == round);
        ready.map(|(_, peer)| *peer).collect()
    }

    pub(super) fn keep_ready(&mut self, round: Round, peer: PeerId) {
        if self.ready.len() < EARLY_MESSAGES_MAX {
            self.ready.insert((round, peer));
        }
    }

    pub(super) fn keep_message(&mut self, from: PeerId, message: &Scoped) {
        let of_sender = self.messages.iter().filter(|(f, _)| *f == from);
        let room = of_sender.count() < EARLY_MESSAGES_PER_PEER_MAX;
        if room && self.messages.len() < EARLY_MESSAGES_MAX {
            self.messages.push((from, message.clone()));
        }
    }

    /// Keeps a slice, in place of the same of an earlier attempt.
    pub(super) fn keep_slice(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        bytes: Bytes,
    ) -> Result<(), PeerError> {
        let slice = bytes.0;
        if let Some(again) = self.slices.iter_mut().find(|(_, kept)| kept.0 == slice) {
            *again = (from, bytes);
            return Ok(());
        }
        let of_sender = self.slices.iter().filter(|(f, _)| *f == from);
        if of_sender.count() < EARLY_SLICES_MAX {
            self.slices.push((from, bytes));
            return Ok(());
        }
        cx.order(Order::Release { slice });
        Err(PeerError::Unexpected {
            what: "too many early slices".to_owned(),
        })
    }

    /// A peer is gone: its slices were for a cell in which it would be.
    pub(super) fn drop_of(&mut self, cx: &mut Context, peer: PeerId) {
        self.ready.retain(|(_, of)| *of != peer);
        self.slices.retain(|(from, (slice, ..))| {
            let keep = *from != peer;
            if !keep {
                cx.order(Order::Release { slice: *slice });
            }
            keep
        });
    }

    /// The round is over.
    pub(super) fn forget_until(&mut self, cx: &mut Context, history: &History) {
        let round = cx.round;
        self.ready.retain(|(of, _)| *of > round);
        self.messages.retain(|(_, message)| message.round > round);
        self.slices.retain(|(_, (slice, ..))| {
            let keep = slice.round > round;
            if !keep && !history.keeps(slice) {
                cx.order(Order::Release { slice: *slice });
            }
            keep
        });
    }
}
