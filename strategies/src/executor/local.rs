//! The local buffer: the result of this peer's training for the round, then the values that the
//! trainer takes over. It is lent to the train lane while training runs.

use super::at_hand::AtHand;
use super::frame::{Handed, MixEnd};
use super::held::Held;
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
    pieces: Vec<(FragmentId, Vec<f32>)>,
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

    /// What was trained in a range of a fragment, as it is encoded. `anchor` is all of the anchor.
    ///
    /// # Errors
    /// When the train lane has ended with the trainer.
    pub(super) fn trained(
        &mut self,
        fragment: FragmentId,
        range: Range<usize>,
        anchor: &[f32],
    ) -> Result<&[f32], WorkError> {
        let held = self.of(fragment);
        if self.at_hand.is_none() {
            return Ok(&self.values()[range]);
        }
        self.wait_for_trainer();
        let at_hand = self.at_hand.as_mut().expect("checked above");
        let anchor = &anchor[range.clone()];
        at_hand.delta((range, held), anchor)
    }

    /// Waits for a trainer that was borrowed, until the order that borrowed it has ended.
    pub(super) fn wait_for_trainer(&mut self) {
        let Some(at_hand) = &mut self.at_hand else {
            return;
        };
        while at_hand.is_awaited() {
            match self.frames.wait() {
                Some(Handed::Back(trainer)) => at_hand.put(trainer, false),
                Some(Handed::Trained(trainer)) => at_hand.put(trainer, true),
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

    /// What the train lane has sent and was not received yet.
    pub(super) fn receive(&self) -> Option<Handed> {
        self.frames.receive()
    }

    /// A fragment's gradient has arrived.
    pub(super) fn push_piece(&mut self, fragment: FragmentId, values: Vec<f32>) {
        self.pieces.push((fragment, values));
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
