//! The versions of the protocol on the wire, and the one that two daemons use.
//!
//! A release speaks its own version and that of the release before it, so that the daemons of a run can be
//! replaced one by one. Each end states its range at the gate. Both use the newest version in both ranges.

use core::fmt;
use serde::{Deserialize, Serialize};

/// The newest version that this build speaks. Raised with every change of a message's layout.
pub const WIRE_VERSION: u8 = 8;

/// The oldest version that this build speaks. Raised with [`WIRE_VERSION`], so that two stay.
pub const WIRE_VERSION_OLDEST: u8 = 7;

/// The version that two daemons use: the first byte of every frame between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WireVersion(u8);

impl WireVersion {
    /// The newest of this build.
    pub const NEWEST: Self = Self(WIRE_VERSION);

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Display for WireVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A range of versions, which one daemon speaks. That of another daemon is its claim and may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireVersions {
    oldest: u8,
    newest: u8,
}

impl WireVersions {
    /// All that this build speaks.
    pub const OURS: Self = Self {
        oldest: WIRE_VERSION_OLDEST,
        newest: WIRE_VERSION,
    };

    /// A part of [`WireVersions::OURS`]; none if this build does not speak all of it.
    pub fn of_ours(oldest: u8, newest: u8) -> Option<Self> {
        let ours = Self::OURS;
        let fits = oldest <= newest && ours.has(oldest) && ours.has(newest);
        fits.then_some(Self { oldest, newest })
    }

    /// The range that another build states.
    pub const fn claimed(oldest: u8, newest: u8) -> Self {
        Self { oldest, newest }
    }

    /// Returns `true` if a version is one of them.
    pub const fn has(&self, version: u8) -> bool {
        self.oldest <= version && version <= self.newest
    }

    /// The newest version in both ranges.
    pub fn newest_shared(&self, other: &Self) -> Option<WireVersion> {
        let newest = self.newest.min(other.newest);
        (self.has(newest) && other.has(newest)).then_some(WireVersion(newest))
    }

    /// Returns `true` if all of them are older than all of the others.
    pub const fn is_before(&self, other: &Self) -> bool {
        self.newest < other.oldest
    }
}

impl fmt::Display for WireVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.oldest == self.newest {
            write!(f, "wire version {}", self.newest)
        } else {
            write!(f, "wire versions {} to {}", self.oldest, self.newest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_daemons_use_the_newest_version_that_both_speak() {
        let shared = |a: (u8, u8), b: (u8, u8)| {
            let (a, b) = (
                WireVersions::claimed(a.0, a.1),
                WireVersions::claimed(b.0, b.1),
            );
            let found = a.newest_shared(&b);
            assert_eq!(found, b.newest_shared(&a), "both ends find the same");
            found.map(WireVersion::number)
        };
        assert_eq!(shared((7, 8), (7, 8)), Some(8));
        assert_eq!(shared((7, 8), (7, 7)), Some(7));
        assert_eq!(shared((7, 8), (8, 9)), Some(8));
        assert_eq!(shared((7, 8), (9, 10)), None);
        assert_eq!(shared((7, 8), (0, 6)), None);
        assert_eq!(shared((7, 8), (0, 255)), Some(8));
        // A range whose ends are the wrong way round is empty.
        assert_eq!(shared((7, 8), (8, 7)), None);
        assert_eq!(shared((8, 7), (8, 7)), None);
        for all in 0..=u16::MAX {
            let [oldest, newest] = all.to_le_bytes();
            let found = shared((7, 8), (oldest, newest));
            let slow = (7..=8)
                .rev()
                .find(|version| (oldest..=newest).contains(version));
            assert_eq!(found, slow, "{oldest} to {newest}");
        }
    }

    #[test]
    fn a_daemon_states_no_version_that_its_build_does_not_speak() {
        assert_eq!(WireVersions::of_ours(7, 8), Some(WireVersions::OURS));
        assert!(WireVersions::of_ours(7, 7).is_some());
        for (oldest, newest) in [(6, 8), (7, 9), (8, 7)] {
            assert_eq!(WireVersions::of_ours(oldest, newest), None);
        }
        assert_eq!(WireVersions::OURS.to_string(), "wire versions 7 to 8");
        assert_eq!(WireVersions::claimed(9, 9).to_string(), "wire version 9");
    }
}
