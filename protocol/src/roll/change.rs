//! What a round decides about the roll.

use crate::PeerId;
use crate::limits::ROLL_CHANGE_BYTES_MAX;
use crate::wire::{PeerRecord, WireError, decode_value, encode_value};
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
    /// Whether it changes nothing.
    pub const fn is_empty(&self) -> bool {
        self.leave.is_empty() && self.join.is_empty()
    }

    /// As bytes; none where it changes nothing.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self.is_empty() {
            true => Vec::new(),
            false => encode_value(self),
        }
    }

    /// From bytes.
    ///
    /// # Errors
    /// What is wrong with them.
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
