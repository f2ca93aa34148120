//! The one buffer that goes back and forth between the two lanes: parameters in one direction,
//! the round's cut in the other. No lane ever waits for the other's lock.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Frames under way in one direction at most: one lent, one fresh after a catch-up.
const FRAMES_MAX: usize = 4;

/// A buffer of the flat parameters' length.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) values: Vec<f32>,
    /// Towards the trainer: the pieces to put in force.
    pub(super) install: Vec<Install>,
    /// On its way back: the room of a second frame of the round.
    pub(super) room: Option<Vec<f32>>,
}

impl Frame {
    /// Without the room of another.
    pub(super) const fn new(values: Vec<f32>, install: Vec<Install>) -> Self {
        Self {
            values,
            install,
            room: None,
        }
    }
}

/// A piece to put in force.
#[derive(Clone, Debug)]
pub(super) struct Install {
    pub(super) range: Range<usize>,
    pub(super) taken: Taken,
}

/// What becomes of the trainer's own values of a piece.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Taken {
    /// They are the anchor's.
    Anchor,
    /// They are the anchor's and a delta which is kept, or what an eager update makes of it.
    WithDelta,
    /// They move by the frame's: what was trained ahead stays on top of the new anchor.
    Shifted,
    /// They are mixed with the anchor's, with this share of their own.
    Blended(f32),
}

impl Taken {
    /// The trainer's value from its own and the frame's.
    pub(super) fn of(self, own: f32, value: f32) -> f32 {
        match self {
            Self::Anchor | Self::WithDelta => value,
            Self::Shifted => own + value,
            Self::Blended(share) => share * own + (1.0 - share) * value,
        }
    }
}

/// The train lane's end.
#[derive(Debug)]
pub(super) struct TrainEnd {
    from_mix: Receiver<Option<Frame>>,
    to_mix: SyncSender<Frame>,
}

/// The mix lane's end.
#[derive(Debug)]
pub(super) struct MixEnd {
    from_train: Receiver<Frame>,
    to_train: SyncSender<Option<Frame>>,
}

/// Both ends.
pub(super) fn pair() -> (TrainEnd, MixEnd) {
    let (to_train, from_mix) = sync_channel(FRAMES_MAX);
    let (to_mix, from_train) = sync_channel(FRAMES_MAX);
    (
        TrainEnd { from_mix, to_mix },
        MixEnd {
            from_train,
            to_train,
        },
    )
}

impl TrainEnd {
    /// The mix lane's word for this order: a frame, or none because it is here already. `None`
    /// outside when the mix lane is gone.
    pub(super) fn receive(&self) -> Option<Option<Frame>> {
        self.from_mix.recv().ok()
    }

    /// Hands the cut over; false when the mix lane is gone.
    pub(super) fn send(&self, frame: Frame) -> bool {
        self.to_mix.send(frame).is_ok()
    }
}

impl MixEnd {
    /// The cut, if it has come.
    pub(super) fn receive(&self) -> Option<Frame> {
        self.from_train.try_recv().ok()
    }

    /// Says a word for one order of the train lane.
    pub(super) fn send(&self, frame: Option<Frame>) {
        // A train lane that is gone has no use for it.
        let _ = self.to_train.send(frame);
    }
}
