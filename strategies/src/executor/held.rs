//! What is held of a fragment between two orders to train.

/// What the local buffer holds of one fragment, and what the trainer does about it next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Nothing that is still needed; the trainer continues with what it has.
    Nothing,
    /// This round's contribution.
    Contribution,
    /// Nothing that is still needed; the trainer takes the anchor over.
    TakeAnchor,
    /// A delta that the trainer takes over on top of the anchor.
    KeepDelta,
    /// The difference by which the trainer moves what it has trained since the cut.
    Shift,
    /// Nothing that is still needed; the trainer mixes the anchor into what it has trained since.
    Blend,
}

impl Held {
    /// Its code in a checkpoint. A contribution is written as nothing, because the next one
    /// contains it.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Nothing | Self::Contribution => 0,
            Self::TakeAnchor => 1,
            Self::KeepDelta => 2,
            Self::Shift => 3,
            Self::Blend => 4,
        }
    }

    /// From its code in a checkpoint.
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

    /// Whether it needs values of the local buffer after a restart.
    pub(super) const fn needs_values(self) -> bool {
        matches!(self, Self::KeepDelta | Self::Shift)
    }
}
