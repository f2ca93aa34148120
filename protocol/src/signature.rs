//! Signatures as bytes. Hosts make and check them; a peer only carries them.

use crate::PeerId;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A signature of 64 bytes, of whatever kind the hosts of a run use (Ed25519 between daemons).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Signature([[u8; 32]; 2]);

impl Signature {
    /// The place of a signature that the sender's host fills in.
    pub const BLANK: Self = Self([[0; 32]; 2]);

    /// Wraps 64 raw bytes.
    pub fn from_bytes(bytes: [u8; 64]) -> Self {
        let (mut first, mut second) = ([0; 32], [0; 32]);
        first.copy_from_slice(&bytes[..32]);
        second.copy_from_slice(&bytes[32..]);
        Self([first, second])
    }

    /// The raw bytes.
    pub fn to_bytes(self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&self.0[0]);
        bytes[32..].copy_from_slice(&self.0[1]);
        bytes
    }

    /// Whether it is still to be filled in.
    pub fn is_blank(&self) -> bool {
        *self == Self::BLANK
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = &self.0[0];
        write!(f, "Signature({:02x}{:02x}..)", first[0], first[1])
    }
}

/// A signature in a message: whose it is, over which bytes, and its place.
#[derive(Debug)]
pub struct Signed<'a> {
    /// The peer whose signature it is.
    pub by: PeerId,
    /// What is signed.
    pub statement: Vec<u8>,
    /// The signature, or its blank place.
    pub signature: &'a mut Signature,
}
