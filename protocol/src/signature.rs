//! Signatures as bytes. Hosts make and check them; a peer only carries them.

use crate::id::words;
use crate::limits::{SEALS_CHECKED_MAX, SEALS_MADE_MAX};
use crate::sorted::SortedSet;
use crate::{Digest, PeerId};
use core::fmt;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A signature of 64 bytes, of whatever kind the hosts of a run use (Ed25519 between daemons).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Signature(
    #[serde(with = "words")] [u8; 32],
    #[serde(with = "words")] [u8; 32],
);

impl Signature {
    /// The place of a signature that the sender's host fills in.
    pub const BLANK: Self = Self([0; 32], [0; 32]);

    /// Wraps 64 raw bytes.
    pub fn from_bytes(bytes: [u8; 64]) -> Self {
        let (mut first, mut second) = ([0; 32], [0; 32]);
        first.copy_from_slice(&bytes[..32]);
        second.copy_from_slice(&bytes[32..]);
        Self(first, second)
    }

    /// The raw bytes.
    pub fn to_bytes(self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&self.0);
        bytes[32..].copy_from_slice(&self.1);
        bytes
    }

    /// It is still to be filled in.
    pub fn is_blank(&self) -> bool {
        *self == Self::BLANK
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = &self.0;
        write!(f, "Signature({:02x}{:02x}..)", first[0], first[1])
    }
}

/// A signature in a message: whose it is, over which bytes, and its place.
#[derive(Debug)]
pub struct Signed<'a> {
    /// The peer whose signature it is.
    pub by: PeerId,
    /// The bytes under the signature.
    pub statement: Vec<u8>,
    /// The signature, or its blank place.
    pub signature: &'a mut Signature,
}

/// What a host remembers of the signatures that it made and checked. A statement goes to all members of a
/// group, and comes back in proposals and proofs: it is signed once and checked once.
#[derive(Debug, Default)]
pub struct SealMemory {
    made: VecDeque<(Digest, Signature)>,
    right: SortedSet<Digest>,
    /// The same, oldest first.
    ages: VecDeque<Digest>,
}

impl SealMemory {
    /// The signature that was made for this statement.
    pub fn made(&self, statement: &[u8]) -> Option<Signature> {
        let statement = Digest::of(statement);
        let made = self.made.iter().find(|(of, _)| *of == statement);
        made.map(|(_, signature)| *signature)
    }

    /// A signature was made.
    pub fn note_made(&mut self, statement: &[u8], signature: Signature) {
        if self.made.len() == SEALS_MADE_MAX {
            self.made.pop_front();
        }
        self.made.push_back((Digest::of(statement), signature));
    }

    /// This signature was checked before and was right.
    pub fn is_right(&self, by: PeerId, statement: &[u8], signature: &Signature) -> bool {
        self.right.contains(&name(by, statement, signature))
    }

    /// A signature was checked and is right.
    pub fn note_right(&mut self, by: PeerId, statement: &[u8], signature: &Signature) {
        let name = name(by, statement, signature);
        if !self.right.insert(name) {
            return;
        }
        self.ages.push_back(name);
        if self.ages.len() > SEALS_CHECKED_MAX
            && let Some(oldest) = self.ages.pop_front()
        {
            self.right.remove(&oldest);
        }
    }
}

/// A signer and a signature have a fixed length, so no two different ones have the same bytes.
fn name(by: PeerId, statement: &[u8], signature: &Signature) -> Digest {
    Digest::of(&[by.as_bytes(), &signature.to_bytes()[..], statement].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(id: u8) -> Signature {
        Signature::from_bytes([id; 64])
    }

    #[test]
    fn what_differs_in_anything_was_not_checked() {
        let (a, b) = (PeerId::from_bytes([1; 32]), PeerId::from_bytes([2; 32]));
        let mut memory = SealMemory::default();
        memory.note_right(a, b"vote", &signature(1));
        assert!(memory.is_right(a, b"vote", &signature(1)));
        assert!(!memory.is_right(b, b"vote", &signature(1)));
        assert!(!memory.is_right(a, b"vota", &signature(1)));
        assert!(!memory.is_right(a, b"vote", &signature(2)));
        memory.note_made(b"vote", signature(3));
        assert_eq!(memory.made(b"vote"), Some(signature(3)));
        assert_eq!(memory.made(b"lock"), None);
    }

    #[test]
    fn it_forgets_the_oldest() {
        let me = PeerId::from_bytes([1; 32]);
        let mut memory = SealMemory::default();
        for number in 0..=SEALS_CHECKED_MAX as u64 {
            memory.note_right(me, &number.to_le_bytes(), &signature(1));
            memory.note_right(me, &number.to_le_bytes(), &signature(1));
            memory.note_made(&number.to_le_bytes(), signature(1));
        }
        assert_eq!(
            (memory.right.len(), memory.ages.len()),
            (SEALS_CHECKED_MAX, SEALS_CHECKED_MAX)
        );
        assert_eq!(memory.made.len(), SEALS_MADE_MAX);
        assert!(!memory.is_right(me, &0_u64.to_le_bytes(), &signature(1)));
    }
}
