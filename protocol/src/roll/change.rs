//! What a round decides about the roll, and, in the note of the column that decides it, about the data.

use crate::data::Tally;
use crate::limits::{ROLL_CHANGE_BYTES_MAX, ROUND_NOTE_BYTES_MAX};
use crate::roll::Roll;
use crate::wire::{PeerRecord, WireError, decode_limited, decode_value, encode_value};
use crate::{PeerId, Taken};
use serde::{Deserialize, Serialize};

/// Peers that leave the roll and peers that enter it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollChange {
    /// Peers that did not contribute, or said that they leave.
    pub leave: Vec<PeerId>,
    /// Newcomers, with where they can be reached.
    pub join: Vec<PeerRecord>,
}

impl RollChange {
    /// Returns `true` if it changes nothing.
    pub const fn is_empty(&self) -> bool {
        self.leave.is_empty() && self.join.is_empty()
    }

    /// As bytes; none where it changes nothing.
    pub fn to_bytes(&self) -> Vec<u8> {
        if self.is_empty() {
            Vec::new()
        } else {
            encode_value(self)
        }
    }

    /// From bytes.
    ///
    /// # Errors
    /// If there are more than [`ROLL_CHANGE_BYTES_MAX`], they do not decode, or a record is invalid.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        if bytes.len() > ROLL_CHANGE_BYTES_MAX {
            return Err(WireError::TooLong {
                bytes: bytes.len() as u64,
                max: ROLL_CHANGE_BYTES_MAX as u64,
            });
        }
        let change: Self = decode_value(bytes)?;
        change.join.iter().try_for_each(PeerRecord::check)?;
        Ok(change)
    }

    /// Drops newcomers, and then leavers, until it fits into a round.
    pub fn cut(&mut self) {
        let room = |list: usize| list <= ROLL_CHANGE_BYTES_MAX - 16;
        let mut bytes = 0;
        self.leave.retain(|_| {
            bytes += 32;
            room(bytes)
        });
        self.join.retain(|record| {
            bytes += record.wire_bytes();
            room(bytes)
        });
    }
}

/// A round's note.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RoundNote {
    /// Who leaves the roll, and who enters.
    pub(crate) change: RollChange,
    /// Whose contributions are in the column's sum, with the data behind them.
    pub(crate) tally: Tally,
}

/// Both parts as bytes, each empty where it says nothing.
#[derive(Serialize, Deserialize)]
struct Parts {
    change: Vec<u8>,
    tally: Vec<u8>,
}

impl RoundNote {
    /// Puts a note together from the bytes of its parts; empty if both are.
    pub(crate) fn join(change: Vec<u8>, tally: Vec<u8>) -> Vec<u8> {
        if change.is_empty() && tally.is_empty() {
            Vec::new()
        } else {
            encode_value(&Parts { change, tally })
        }
    }

    /// From bytes.
    ///
    /// # Errors
    /// If there are too many, they do not decode, or the change or the tally in them is invalid.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let parts: Parts = decode_limited::<_, ROUND_NOTE_BYTES_MAX>(bytes)?;
        Ok(Self {
            change: RollChange::from_bytes(&parts.change)?,
            tally: Tally::from_bytes(&parts.tally)?,
        })
    }

    pub(crate) fn counted(&self, roll: &Roll) -> Vec<(PeerId, Taken)> {
        let known = self.tally.entries();
        known
            .filter_map(|entry| Some((roll.peer(usize::from(entry.place))?, entry.taken)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;
    use crate::{Round, TallyEntry};

    #[test]
    fn a_note_says_both_or_nothing() {
        let (pool, blocks, from) = (4, 5, None);
        let taken = Taken { pool, blocks, from };
        let tally = Tally::of(&[2, 1, 9].map(|place| TallyEntry { place, taken }));
        let change = RollChange {
            leave: vec![record(3).peer],
            join: Vec::new(),
        };
        let bytes = RoundNote::join(change.to_bytes(), tally.to_bytes());
        let note = RoundNote::from_bytes(&bytes).unwrap();
        assert_eq!(note, RoundNote { change, tally });
        let roll = Roll::found((0..4).map(record), 2, Round(0));
        // The roll has no ninth place.
        let counted = [1, 2].map(|place| (roll.peer(place).unwrap(), taken));
        assert_eq!(note.counted(&roll), counted);
        assert!(RoundNote::join(Vec::new(), Vec::new()).is_empty());
        assert_eq!(RoundNote::from_bytes(&[]), Ok(RoundNote::default()));
        assert!(RoundNote::from_bytes(&bytes[..bytes.len() - 1]).is_err());
    }
}
