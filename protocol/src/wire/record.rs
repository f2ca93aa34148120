//! Peer records: who can be reached where, signed and expiring.

use crate::limits::{ADDRESS_BYTES_MAX, RECORD_ADDRESSES_MAX, SIGNATURE_BYTES_MAX};
use crate::wire::WireError;
use crate::{PeerId, RunId, Time};
use serde::{Deserialize, Serialize};

/// Where a peer of a run can be reached, in its own words.
///
/// The shell signs its own and checks the signatures of all others: records reach the
/// [`Peer`](crate::Peer) verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerRecord {
    /// The peer.
    pub peer: PeerId,
    /// The run it takes part in.
    pub run: RunId,
    /// Raised with every change; the highest wins.
    pub sequence: u64,
    /// When it is no longer believed, by the clock of the peer that made it.
    pub expires: Time,
    /// Multiaddresses in their binary form, opaque here.
    pub addresses: Vec<Vec<u8>>,
    /// By `peer`, over [`PeerRecord::signed_bytes`].
    pub signature: Vec<u8>,
}

impl PeerRecord {
    /// The bytes that the signature is over: everything but the signature itself.
    pub fn signed_bytes(&self) -> Vec<u8> {
        let unsigned = Self {
            signature: Vec::new(),
            ..self.clone()
        };
        crate::wire::canonical(&("murmurate peer record", unsigned))
    }

    /// Bytes on the wire.
    pub fn wire_bytes(&self) -> usize {
        crate::wire::encode_value(self).len()
    }

    /// Checks lengths and counts.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] with the field that is too long.
    pub fn check(&self) -> Result<(), WireError> {
        let out = |field: &str| {
            Err(WireError::OutOfRange {
                field: field.to_owned(),
            })
        };
        if self.addresses.len() > RECORD_ADDRESSES_MAX {
            return out("record.addresses");
        }
        if self.addresses.iter().any(|a| a.len() > ADDRESS_BYTES_MAX) {
            return out("record.address");
        }
        if self.signature.len() > SIGNATURE_BYTES_MAX {
            return out("record.signature");
        }
        Ok(())
    }
}
