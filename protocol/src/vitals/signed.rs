//! Vitals with the signature of the daemon that they are about.

use super::Vitals;
use crate::limits::VITALS_BYTES_MAX;
use crate::wire::{WireError, canonical, encode_value};
use crate::{RunId, Signature};
use serde::{Deserialize, Serialize};

/// Vitals, signed by the peer that they name. Hosts sign and check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignedVitals {
    /// What is signed.
    pub vitals: Vitals,
    /// By `vitals.peer`, over [`SignedVitals::statement`].
    pub signature: Signature,
}

impl SignedVitals {
    /// The bytes that the signature is over. They name the run, so vitals of one run are worth nothing
    /// in another.
    pub fn statement(run: &RunId, vitals: &Vitals) -> Vec<u8> {
        canonical(&("murmurate vitals 1", run, vitals))
    }

    /// Bytes on the wire.
    pub fn wire_bytes(&self) -> usize {
        encode_value(self).len()
    }

    /// Checks lengths and ranges.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] with the field, [`WireError::TooLong`] for more than
    /// [`VITALS_BYTES_MAX`] bytes.
    pub fn check(&self) -> Result<(), WireError> {
        self.vitals.check()?;
        let bytes = self.wire_bytes();
        match bytes <= VITALS_BYTES_MAX {
            true => Ok(()),
            false => Err(WireError::TooLong {
                bytes: bytes as u64,
                max: VITALS_BYTES_MAX as u64,
            }),
        }
    }
}
