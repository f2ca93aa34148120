//! What a Byzantine machine sends in place of its slices.

use murmurate_protocol::Time;

/// What a Byzantine machine sends instead of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lie {
    /// The same number of random bytes.
    Garbage,
    /// The first half of the bytes.
    Truncated,
    /// The bytes with one bit of the last byte flipped, which may still decode.
    FlippedBit,
    /// Anything that it can sign: other votes, promises and proposals for every receiver, false
    /// decisions and repairs, false calls to catch up, and silence.
    Anything,
    /// No slices, though it votes.
    Withhold,
    /// An absurd loss of its training: enormous, negative, infinite or not a number.
    Loss,
    /// Scores of contributions with the wrong sign.
    Scores,
    /// No slices and no messages, except that it says that it takes part.
    Silent,
    /// True slices, and in place of its votes it asks for the last ballot that it coordinates and promises the
    /// last one of the receiver.
    Ballots,
    /// All as it should be in one round of seven, and as [`Lie::Withhold`] in the others.
    Rare,
}

/// A lie and its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lying {
    pub(crate) lie: Lie,
    pub(crate) until: Time,
}
