//! The buffer that travels between the two lanes: with parameters to the train lane, with the
//! round's cut back to the mix lane. A gradient that leaves during the backward pass comes in
//! pieces beside it. Where the trainer's parameters are at hand, the trainer itself travels in place
//! of the buffer. The lanes share no lock.

use crate::trainer::Trainer;
use murmurate_protocol::FragmentId;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The most frames on their way in one direction: one lent, a fresh one after a catch-up, and one
/// more in each case where the receiver has not looked yet.
const FRAMES_MAX: usize = 4;

/// A buffer of the flat parameters' length.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) values: Vec<f32>,
    /// On the way to the trainer: the ranges that it takes over, and how.
    pub(super) install: Vec<(Range<usize>, Held)>,
    /// The share of the trainer's values where they are mixed with those of the frame.
    pub(super) own_share: f32,
    /// On the way back: the buffer of a second frame of the round.
    pub(super) room: Option<Vec<f32>>,
}

impl Frame {
    /// Values of which the trainer takes over these ranges.
    pub(super) const fn new(values: Vec<f32>, install: Vec<(Range<usize>, Held)>) -> Self {
        Self {
            values,
            install,
            own_share: 0.0,
            room: None,
        }
    }
}

/// What the local buffer holds of one fragment, and what the trainer does about it next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Nothing that is still needed; the trainer continues with its parameters.
    Nothing,
    /// This round's contribution.
    Contribution,
    /// Nothing that is still needed; the trainer takes the anchor over.
    TakeAnchor,
    /// A delta that the trainer takes over on top of the anchor.
    KeepDelta,
    /// The difference by which the trainer moves its parameters, trained since the cut.
    Shift,
    /// Nothing that is still needed; the trainer mixes the anchor into the parameters trained since.
    Blend,
}

impl Held {
    /// Its code in a checkpoint. A contribution is written as nothing, because the next one contains it.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Nothing | Self::Contribution => 0,
            Self::TakeAnchor => 1,
            Self::KeepDelta => 2,
            Self::Shift => 3,
            Self::Blend => 4,
        }
    }

    pub(super) const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Nothing),
            1 => Some(Self::TakeAnchor),
            2 => Some(Self::KeepDelta),
            3 => Some(Self::Shift),
            4 => Some(Self::Blend),
            _ => None,
        }
    }

    /// Returns `true` if the trainer's next values do not depend on its present ones.
    pub(super) const fn replaces(self) -> bool {
        matches!(self, Self::TakeAnchor | Self::KeepDelta)
    }

    /// The trainer's next value, from its present one and the one that it takes over. Where both are mixed,
    /// `share` is that of the trainer's.
    pub(super) fn next(self, own: f32, value: f32, share: f32) -> f32 {
        match self {
            Self::Nothing | Self::Contribution => own,
            Self::TakeAnchor | Self::KeepDelta => value,
            Self::Shift => own + value,
            Self::Blend => share * own + (1.0 - share) * value,
        }
    }

    /// Set where it needs values of the local buffer after a restart.
    pub(super) const fn needs_values(self) -> bool {
        matches!(self, Self::KeepDelta | Self::Shift)
    }
}

/// What the mix lane lends to the train lane for an order.
pub(super) enum Lent {
    /// Values that the trainer takes over.
    Values(Frame),
    /// The trainer, which has taken over everything. It comes back with the next cut, or where it is borrowed
    /// once the order is performed.
    Trainer {
        trainer: Box<dyn Trainer>,
        borrowed: bool,
    },
}

/// What the train lane sends to the mix lane.
pub(super) enum Handed {
    /// The round's cut.
    Cut(Frame),
    /// The buffer alone: the cut follows in pieces.
    Empty(Frame),
    /// One fragment's gradient.
    Piece(FragmentId, Vec<f32>),
    /// The trainer. Its parameters are the round's cut, or what they were when it was borrowed.
    Trainer {
        trainer: Box<dyn Trainer>,
        cut: bool,
    },
}

#[derive(Debug)]
pub(super) struct TrainEnd {
    from_mix: Receiver<Option<Lent>>,
    to_mix: SyncSender<Handed>,
    spares: Receiver<(FragmentId, Vec<f32>)>,
}

#[derive(Debug)]
pub(super) struct MixEnd {
    from_train: Receiver<Handed>,
    to_train: SyncSender<Option<Lent>>,
    spares: SyncSender<(FragmentId, Vec<f32>)>,
}

/// Both ends. The channels have room for a round's pieces, one for each fragment, so that no send waits.
pub(super) fn pair(fragments: usize) -> (TrainEnd, MixEnd) {
    let (to_train, from_mix) = sync_channel(FRAMES_MAX);
    let (to_mix, from_train) = sync_channel(FRAMES_MAX + fragments);
    let (give_back, spares) = sync_channel(fragments);
    (
        TrainEnd {
            from_mix,
            to_mix,
            spares,
        },
        MixEnd {
            from_train,
            to_train,
            spares: give_back,
        },
    )
}

impl TrainEnd {
    /// Waits for what the mix lane sends for this order: `Some(None)` where the train lane has
    /// everything already, `None` where the mix lane has ended.
    pub(super) fn receive(&self) -> Option<Option<Lent>> {
        self.from_mix.recv().ok()
    }

    pub(super) fn send(&self, handed: Handed) {
        // A mix lane that has ended needs nothing any more.
        let _ = self.to_mix.send(handed);
    }

    /// The buffer of a piece that the mix lane has copied.
    pub(super) fn spare(&self) -> Option<(FragmentId, Vec<f32>)> {
        self.spares.try_recv().ok()
    }
}

impl MixEnd {
    /// The next thing that has arrived.
    pub(super) fn receive(&self) -> Option<Handed> {
        self.from_train.try_recv().ok()
    }

    /// Waits for the next thing; `None` where the train lane has ended.
    pub(super) fn wait(&self) -> Option<Handed> {
        self.from_train.recv().ok()
    }

    /// Gives the buffer of a piece back.
    pub(super) fn recycle(&self, fragment: FragmentId, room: Vec<f32>) {
        // If the channel is full the buffer is dropped, and the next piece allocates its own.
        let _ = self.spares.try_send((fragment, room));
    }

    /// Sends what one order of the train lane needs; `None` where it has everything already.
    pub(super) fn send(&self, lent: Option<Lent>) {
        // A train lane that has ended needs nothing any more.
        let _ = self.to_train.send(lent);
    }
}
