//! The local buffer: the result of this peer's training for the round, then the values that the
//! trainer takes over. It is lent to the train lane while training runs.
//!
//! Where the trainer's parameters are at hand there is no buffer, because a copy would be a second model: the
//! mix lane has the trainer between two stretches of training, and reads the result of training from it.

use super::frame::{Handed, Held, MixEnd};
use super::host::WorkResult;
use crate::trainer::Trainer;
use murmurate_protocol::{FragmentId, WorkError};
use std::ops::Range;

/// The mix lane's side of the buffer that travels between the lanes.
#[derive(Debug)]
pub(super) struct LocalBuffer {
    /// One for each fragment.
    pub(super) held: Vec<Held>,
    /// `None` while the train lane has it.
    buffer: Option<Vec<f32>>,
    len: usize,
    /// Fragments of this round's gradient that have arrived and are not encoded yet.
    pub(super) pieces: Vec<(FragmentId, Vec<f32>)>,
    /// Where the trainer's parameters take the place of the buffer.
    pub(super) at_hand: Option<AtHand>,
    pub(super) frames: MixEnd,
}

impl LocalBuffer {
    pub(super) fn new(
        len: usize,
        fragments: usize,
        at_hand: Option<AtHand>,
        frames: MixEnd,
    ) -> Self {
        Self {
            held: vec![Held::TakeAnchor; fragments],
            buffer: at_hand.is_none().then(|| vec![0.0; len]),
            len,
            pieces: Vec::new(),
            at_hand,
            frames,
        }
    }

    /// Number of f32 that it keeps.
    pub(super) fn kept(&self) -> usize {
        self.at_hand.as_ref().map_or(self.len, AtHand::len)
    }

    /// The result of training in a range of a fragment, for the codec. `anchor` is the whole anchor.
    ///
    /// # Errors
    /// When the train lane has ended with the trainer.
    pub(super) fn trained(
        &mut self,
        fragment: FragmentId,
        range: Range<usize>,
        anchor: &[f32],
    ) -> WorkResult<&[f32]> {
        let held = self.of(fragment);
        if self.at_hand.is_none() {
            return Ok(&self.values()[range]);
        }
        self.wait_for_trainer();
        let at_hand = self.at_hand.as_mut().expect("checked above");
        let anchor = &anchor[range.clone()];
        at_hand.delta(range, held, anchor)
    }

    /// Waits for a trainer that was borrowed, until the order that borrowed it has ended.
    pub(super) fn wait_for_trainer(&mut self) {
        let Some(at_hand) = &mut self.at_hand else {
            return;
        };
        while at_hand.is_awaited() {
            match self.frames.wait() {
                Some(Handed::Trainer { trainer, cut }) => at_hand.put(trainer, cut),
                Some(_) => unreachable!("no other buffer travels"),
                None => return,
            }
        }
    }

    /// The values; zeros in a fresh buffer while the other one is lent out.
    pub(super) fn values(&mut self) -> &mut [f32] {
        assert!(self.at_hand.is_none(), "the trainer has the values");
        let len = self.len;
        self.buffer.get_or_insert_with(|| vec![0.0; len])
    }

    /// The values, unless they are lent out.
    pub(super) fn here(&self) -> Option<&[f32]> {
        self.buffer.as_deref()
    }

    /// Takes the buffer out; zeros in a fresh one while the other one is lent out.
    pub(super) fn take_or_fresh(&mut self) -> Vec<f32> {
        let buffer = self.buffer.take();
        buffer.unwrap_or_else(|| vec![0.0; self.len])
    }

    /// Puts a buffer in.
    pub(super) fn put(&mut self, values: Vec<f32>) {
        self.buffer = Some(values);
    }

    pub(super) fn of(&self, fragment: FragmentId) -> Held {
        self.held[usize::from(fragment.0)]
    }

    pub(super) fn set(&mut self, fragment: FragmentId, held: Held) {
        self.held[usize::from(fragment.0)] = held;
    }

    /// A fragment's gradient that arrived as a piece, if it did.
    pub(super) fn take_piece(&mut self, fragment: FragmentId) -> Option<Vec<f32>> {
        let at = self.pieces.iter().position(|(f, _)| *f == fragment)?;
        Some(self.pieces.swap_remove(at).1)
    }

    /// Gives back the room of pieces that were never encoded: their round was given up.
    pub(super) fn drop_pieces(&mut self) {
        for (fragment, room) in std::mem::take(&mut self.pieces) {
            self.frames.recycle(fragment, room);
        }
    }
}

/// The trainer at home, and room for one fragment.
#[derive(Default)]
pub(super) struct AtHand {
    /// `None` while the train lane has it.
    trainer: Option<Box<dyn Trainer>>,
    /// Set while the train lane has it and gives it back without an order.
    comes_back: bool,
    /// Set once the trainer has brought a cut that no order has looked at yet.
    pub(super) cut_waits: bool,
    room: Vec<f32>,
}

impl std::fmt::Debug for AtHand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let here = self.trainer.is_some();
        f.debug_struct("AtHand").field("here", &here).finish()
    }
}

impl AtHand {
    /// The trainer comes home; `cut` where it brings the round's cut.
    pub(super) fn put(&mut self, trainer: Box<dyn Trainer>, cut: bool) {
        self.trainer = Some(trainer);
        self.comes_back = false;
        self.cut_waits |= cut;
    }

    /// A cut has come since this was asked last.
    pub(super) const fn take_cut(&mut self) -> bool {
        std::mem::replace(&mut self.cut_waits, false)
    }

    /// It is away and comes back without an order.
    const fn is_awaited(&self) -> bool {
        self.comes_back
    }

    /// Takes the trainer out, if it is here.
    pub(super) const fn take(&mut self) -> Option<Box<dyn Trainer>> {
        self.trainer.take()
    }

    /// Takes the trainer out, if it is here, for something after which it comes back by itself.
    pub(super) const fn borrow(&mut self) -> Option<Box<dyn Trainer>> {
        self.comes_back = self.trainer.is_some();
        self.trainer.take()
    }

    /// Number of f32 that are kept here.
    pub(super) const fn len(&self) -> usize {
        self.room.capacity()
    }

    /// Room for this many values, which [`AtHand::give_back`] takes back.
    pub(super) fn room(&mut self, len: usize) -> Vec<f32> {
        let mut room = std::mem::take(&mut self.room);
        room.resize(len, 0.0);
        room
    }

    /// Takes room back.
    pub(super) fn give_back(&mut self, room: Vec<f32>) {
        self.room = room;
    }

    /// The delta of a range: the difference between the parameters and `anchor`, the anchor's
    /// values of the range.
    ///
    /// # Errors
    /// When the train lane has ended with the trainer.
    pub(super) fn delta(
        &mut self,
        range: Range<usize>,
        held: Held,
        anchor: &[f32],
    ) -> WorkResult<&[f32]> {
        let trainer = self.trainer.as_mut().ok_or_else(ended)?;
        self.room.resize(range.len(), 0.0);
        let (start, room) = (range.start, &mut self.room);
        trainer.view(range, &mut |offset, piece| {
            let at = offset - start..offset - start + piece.len();
            let (into, anchor) = (&mut room[at.clone()], &anchor[at]);
            if held == Held::KeepDelta {
                // A delta that is kept lies where the parameters were.
                return into.copy_from_slice(piece);
            }
            // In one pass: a shard is larger than the caches.
            let values = piece.iter().zip(anchor);
            into.iter_mut()
                .zip(values)
                .for_each(|(d, (p, a))| *d = p - a);
        });
        Ok(&self.room)
    }

    /// The anchor moves below the delta: keeps the delta where the parameters were, until [`stand_on`].
    ///
    /// # Errors
    /// As [`AtHand::delta`].
    pub(super) fn lift(&mut self, range: Range<usize>, anchor: &[f32]) -> WorkResult {
        let trainer = self.trainer.as_mut().ok_or_else(ended)?;
        let start = range.start;
        trainer.visit(range, &mut |offset, piece| {
            let anchor = &anchor[offset - start..];
            piece.iter_mut().zip(anchor).for_each(|(p, a)| *p -= a);
        });
        Ok(())
    }
}

/// Makes the trainer take over what the fragments hold.
///
/// # Panics
/// Where a fragment holds `Shift` or `Blend`, which only trainers that train ahead have.
pub(super) fn stand_on(
    trainer: &mut dyn Trainer,
    anchor: &[f32],
    fragments: &[Range<usize>],
    held: &[Held],
) {
    let mut replaced: Option<Range<usize>> = None;
    for (range, held) in fragments.iter().zip(held) {
        match held {
            Held::TakeAnchor => match &mut replaced {
                // Neighbours go in one piece: a trainer may look for its tensors at each call.
                Some(whole) if whole.end == range.start => whole.end = range.end,
                _ => {
                    write(trainer, anchor, replaced.replace(range.clone()));
                }
            },
            Held::KeepDelta => trainer.visit(range.clone(), &mut |offset, piece| {
                let anchor = &anchor[offset..];
                piece.iter_mut().zip(anchor).for_each(|(d, a)| *d += a);
            }),
            Held::Nothing | Held::Contribution => {}
            Held::Shift | Held::Blend => unreachable!("only held of trainers that train ahead"),
        }
    }
    write(trainer, anchor, replaced);
}

fn write(trainer: &mut dyn Trainer, anchor: &[f32], range: Option<Range<usize>>) {
    if let Some(range) = range {
        trainer.write(range.start, &anchor[range]);
    }
}

fn ended() -> WorkError {
    WorkError::Training {
        reason: "the trainer has ended".to_owned(),
    }
}
