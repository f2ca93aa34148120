//! The messages that carry vitals between linked peers.

use super::SignedVitals;
use crate::PeerId;
use crate::limits::{VITALS_AT_ONCE_MAX, VITALS_MESSAGE_BYTES_MAX, VITALS_PEERS_MAX};
use crate::wire::{WireError, decode_limited, encode_value};
use serde::{Deserialize, Serialize};

/// A message on a stream of vitals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum VitalsMessage {
    /// Vitals of the sender, or of others that it heard of.
    Vitals(Vec<Heard>),
    /// Of which peers the sender has vitals, and how new they are. The receiver answers with newer
    /// ones, and asks for those that it lacks.
    Known(Vec<Known>),
    /// Asks for the vitals of these peers, by the first bytes of their ids.
    Wanted(Vec<u64>),
}

/// Vitals, and how old they are in the sender's words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heard {
    /// Milliseconds since their peer made them, or since the first daemon on their way heard them.
    pub age_ms: u32,
    /// The vitals.
    pub signed: SignedVitals,
}

/// How new the sender's vitals of one peer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// The first bytes of the peer's id.
    pub peer: u64,
    /// Their sequence number.
    pub sequence: u64,
}

impl Known {
    /// The first eight bytes of an id. Two peers with the same ones only miss some of each other's
    /// vitals.
    pub fn prefix(peer: &PeerId) -> u64 {
        let mut first = [0; 8];
        first.copy_from_slice(&peer.as_bytes()[..8]);
        u64::from_le_bytes(first)
    }
}

impl VitalsMessage {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        encode_value(self)
    }

    /// Reads a message and checks its lengths and ranges, but no signature.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let message: Self = decode_limited::<_, VITALS_MESSAGE_BYTES_MAX>(bytes)?;
        message.check()?;
        Ok(message)
    }

    fn check(&self) -> Result<(), WireError> {
        let (field, count, most) = match self {
            Self::Vitals(all) => ("vitals", all.len(), VITALS_AT_ONCE_MAX),
            Self::Known(all) => ("known", all.len(), VITALS_PEERS_MAX),
            Self::Wanted(all) => ("wanted", all.len(), VITALS_PEERS_MAX),
        };
        if count > most {
            let field = field.to_owned();
            return Err(WireError::OutOfRange { field });
        }
        match self {
            Self::Vitals(all) => all.iter().try_for_each(|heard| heard.signed.check()),
            Self::Known(_) | Self::Wanted(_) => Ok(()),
        }
    }
}
