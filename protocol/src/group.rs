//! The members of an exchange's group as a set, and the tag that names the group on the wire.
//!
//! Both are 64 bits today: a set is a mask over the members in `PeerId` order, a tag is a hash. A
//! larger group, or one named by a certificate, changes this file and no other.

use crate::limits::GROUP_MEMBERS_MAX;
use crate::{Digest, PeerId, Round};
use core::ops::{BitAnd, BitOr, BitOrAssign, Not};
use serde::{Deserialize, Serialize};

/// Tells the groups of one round apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupTag(u64);

impl GroupTag {
    /// The tag of these members, given in `PeerId` order, in this round.
    pub fn of<'a>(round: Round, members: impl IntoIterator<Item = &'a PeerId>) -> Self {
        let mut bytes = round.0.to_le_bytes().to_vec();
        for member in members {
            bytes.extend_from_slice(member.as_bytes());
        }
        Self::of_digest(&Digest::of(&bytes))
    }

    /// The tag of a group that a digest names.
    pub fn of_digest(digest: &Digest) -> Self {
        Self(digest.first_bits())
    }

    /// A tag with these bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

/// A set of a group's members, each named by its index in `PeerId` order.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Members(u64);

impl Members {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// All members of a group of this size.
    pub fn all(size: usize) -> Self {
        Self(u64::MAX >> (64 - size.clamp(1, GROUP_MEMBERS_MAX)))
    }

    /// The set of one member.
    pub const fn one(index: usize) -> Self {
        Self(1u64 << (index as u32 & 63))
    }

    /// The set whose mask this is.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns `true` if the set contains this member.
    pub const fn has(self, index: usize) -> bool {
        self.0 & Self::one(index).0 != 0
    }

    /// Returns `true` if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many members the set has.
    pub const fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The members of this set that are not in the other one.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns `true` if every member of this set is in the other one.
    pub const fn is_within(self, other: Self) -> bool {
        self.without(other).is_empty()
    }

    /// The lowest index in the set; the size of the largest group when the set is empty.
    pub const fn first(self) -> usize {
        self.0.trailing_zeros() as usize
    }

    /// The indices in the set, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..GROUP_MEMBERS_MAX).filter(move |index| self.has(*index))
    }
}

impl BitOr for Members {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Members {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for Members {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// The complement among all indices that a mask has room for.
impl Not for Members {
    type Output = Self;

    fn not(self) -> Self {
        Self(!self.0)
    }
}

impl FromIterator<usize> for Members {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> Self {
        indices
            .into_iter()
            .fold(Self::NONE, |set, index| set | Self::one(index))
    }
}
