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
    /// On the way to the trainer: the ranges that it takes over.
    pub(super) install: Vec<Install>,
    /// On the way back: the buffer of a second frame of the round.
    pub(super) room: Option<Vec<f32>>,
}

impl Frame {
    /// A frame that brings back no second buffer.
    pub(super) const fn new(values: Vec<f32>, install: Vec<Install>) -> Self {
        Self {
            values,
            install,
            room: None,
        }
    }
}

/// A range of values that the trainer takes over.
#[derive(Clone, Debug)]
pub(super) struct Install {
    pub(super) range: Range<usize>,
    pub(super) taken: Taken,
}

/// What the trainer does with its values of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Taken {
    /// Replaces them by the anchor's.
    Anchor,
    /// Replaces them by the anchor plus a delta that is kept, or plus an eager update.
    WithDelta,
    /// Adds the frame's values: what was trained since the cut stays on top of the new anchor.
    Shifted,
    /// Mixes them with the anchor's; the number is the share of the trainer's values.
    Blended(f32),
}

impl Taken {
    /// Whether the trainer's present values do not matter.
    pub(super) const fn replaces(self) -> bool {
        matches!(self, Self::Anchor | Self::WithDelta)
    }

    /// The trainer's next value, from its present one and the frame's.
    pub(super) fn of(self, own: f32, value: f32) -> f32 {
        match self {
            Self::Anchor | Self::WithDelta => value,
            Self::Shifted => own + value,
            Self::Blended(share) => share * own + (1.0 - share) * value,
        }
    }
}

/// What the mix lane lends to the train lane for an order.
pub(super) enum Lent {
    /// Values that the trainer takes over.
    Values(Frame),
    /// The trainer, which has taken over everything. It comes back with the next cut.
    Trainer(Box<dyn Trainer>),
    /// The trainer, which comes back once the order is performed.
    Borrowed(Box<dyn Trainer>),
}

/// What the train lane sends to the mix lane.
pub(super) enum Handed {
    /// The round's cut.
    Cut(Frame),
    /// The buffer alone: the cut follows in pieces.
    Empty(Frame),
    /// One fragment's gradient.
    Piece(FragmentId, Vec<f32>),
    /// The trainer; its parameters are the round's cut.
    Trained(Box<dyn Trainer>),
    /// The trainer as it was borrowed.
    Back(Box<dyn Trainer>),
}

/// The train lane's end.
#[derive(Debug)]
pub(super) struct TrainEnd {
    from_mix: Receiver<Option<Lent>>,
    to_mix: SyncSender<Handed>,
    spares: Receiver<(FragmentId, Vec<f32>)>,
}

/// The mix lane's end.
#[derive(Debug)]
pub(super) struct MixEnd {
    from_train: Receiver<Handed>,
    to_train: SyncSender<Option<Lent>>,
    spares: SyncSender<(FragmentId, Vec<f32>)>,
}

/// Both ends. The channels have room for a round's pieces, one for each fragment, so that no send
/// waits.
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

    /// Hands something over.
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
