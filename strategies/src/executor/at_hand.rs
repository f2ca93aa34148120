//! A trainer whose parameters are at hand: the mix lane has it between two stretches of training and
//! reads what was trained where it lies. A copy of it would be a second model.

use super::held::Held;
use crate::trainer::Trainer;
use murmurate_protocol::WorkError;
use std::ops::Range;

/// The trainer at home, and room for one fragment.
#[derive(Default)]
pub(super) struct AtHand {
    /// `None` while the train lane has it.
    trainer: Option<Box<dyn Trainer>>,
    /// Whether the train lane gives it back without an order.
    comes_back: bool,
    /// Whether the trainer has brought a cut that no order has looked at yet.
    cut_waits: bool,
    room: Vec<f32>,
}

impl std::fmt::Debug for AtHand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let here = self.trainer.is_some();
        f.debug_struct("AtHand").field("here", &here).finish()
    }
}

impl AtHand {
    /// The trainer comes home; `cut` where it brings what it trained in the round.
    pub(super) fn put(&mut self, trainer: Box<dyn Trainer>, cut: bool) {
        self.trainer = Some(trainer);
        self.comes_back = false;
        self.cut_waits |= cut;
    }

    /// Whether a cut has come since this was asked last.
    pub(super) const fn take_cut(&mut self) -> bool {
        std::mem::replace(&mut self.cut_waits, false)
    }

    /// Whether a cut has come that [`AtHand::take_cut`] has not told of.
    pub(super) const fn brought_a_cut(&self) -> bool {
        self.cut_waits
    }

    /// Whether it is away and comes back without an order.
    pub(super) const fn is_awaited(&self) -> bool {
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

    /// What was trained in a range: the difference between the parameters and `anchor`, the anchor's
    /// values of the range.
    ///
    /// # Errors
    /// When the train lane has ended with the trainer.
    pub(super) fn delta(
        &mut self,
        (range, held): (Range<usize>, Held),
        anchor: &[f32],
    ) -> Result<&[f32], WorkError> {
        let trainer = self.trainer.as_mut().ok_or_else(ended)?;
        self.room.resize(range.len(), 0.0);
        trainer.read(range.start, &mut self.room);
        // A delta that is kept lies where the parameters were.
        if held != Held::KeepDelta {
            self.room.iter_mut().zip(anchor).for_each(|(d, a)| *d -= a);
        }
        Ok(&self.room)
    }

    /// The anchor moves below what was trained: keeps the delta where the parameters were, until [`stand_on`].
    ///
    /// # Errors
    /// As [`AtHand::delta`].
    pub(super) fn lift(&mut self, range: Range<usize>, anchor: &[f32]) -> Result<(), WorkError> {
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
/// Where a fragment holds what is only held of trainers that train ahead.
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
