//! Ids, counters, points in time, and sets of members, each its own type so that they cannot be mixed up; and the
//! hash by which peers are drawn.
//!
//! A group's members and its tag on the wire are 64 bits today: a mask over the members in `PeerId` order, and a
//! hash. A larger group, or one named by a certificate, changes this file and no other.

use crate::limits::GROUP_MEMBERS_MAX;
use core::cmp::Ordering;
use core::fmt;
use core::ops::{Add, BitAnd, BitOr, BitOrAssign, Not, Sub};
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// 32 bytes for serde: four words where no person reads them. Fixed-length integers in little-endian order are the
/// same bytes, in an eighth of the calls; the ids in messages are most of what a large swarm encodes.
pub(crate) mod words {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() {
            return bytes.serialize(to);
        }
        let (words, _) = bytes.as_chunks::<8>();
        let word = |n: usize| u64::from_le_bytes(words[n]);
        [word(0), word(1), word(2), word(3)].serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 32], D::Error> {
        if from.is_human_readable() {
            // As one list. serde's arrays are read in as many steps as they have elements, each compiled.
            let bytes = Vec::<u8>::deserialize(from)?;
            let wrong =
                |bytes: Vec<u8>| D::Error::invalid_length(bytes.len(), &"an array of length 32");
            return bytes.try_into().map_err(wrong);
        }
        let words = <[u64; 4]>::deserialize(from)?;
        let mut bytes = [0; 32];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        Ok(bytes)
    }
}

macro_rules! id32 {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub struct $name(#[serde(with = "words")] [u8; 32]);

        impl $name {
            /// Wraps 32 raw bytes.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// The raw bytes.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// The first eight bytes as a number.
            pub fn first_bits(&self) -> u64 {
                let bytes = self.0.iter().take(8).rev();
                bytes.fold(0, |bits, byte| bits << 8 | u64::from(*byte))
            }

            /// All 64 hexadecimal digits.
            pub fn to_hex(&self) -> String {
                let digits = self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]);
                let mut hex = String::with_capacity(64);
                hex.extend(digits.filter_map(|digit| char::from_digit(digit.into(), 16)));
                hex
            }

            /// Parses 64 hexadecimal digits; `None` for anything else.
            pub fn from_hex(text: &str) -> Option<Self> {
                let digits = text.as_bytes();
                if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                let mut out = [0u8; 32];
                for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
                    *byte = u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok()?;
                }
                Some(Self(out))
            }
        }

        impl Ord for $name {
            /// By the first eight bytes where they differ: without a call, which a search makes at each step.
            fn cmp(&self, other: &Self) -> Ordering {
                let first = |it: &Self| u64::from_be_bytes(*it.0.first_chunk().expect("32 bytes"));
                match first(self).cmp(&first(other)) {
                    Ordering::Equal => self.0.cmp(&other.0),
                    different => different,
                }
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl fmt::Display for $name {
            /// The first eight hexadecimal digits: enough for a log line, not for a comparison.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().take(4).try_for_each(|b| write!(f, "{b:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

id32!(
    /// A peer: its 32-byte Ed25519 public key.
    PeerId
);
id32!(
    /// A run: every peer that trains the same model together carries the same one.
    RunId
);
id32!(
    /// The hash of a [`Plan`](crate::Plan): two peers exchange only when theirs are equal.
    PlanHash
);
id32!(
    /// The hash of a model's tensor names, shapes and offsets.
    LayoutHash
);
id32!(
    /// A BLAKE3 hash of parameters or of encoded bytes.
    Digest
);

impl Digest {
    /// Hashes one run of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// One hash over those of all fragments; of a single one, its own.
    pub fn of_all(fragments: &[Self]) -> Self {
        match fragments {
            [only] => *only,
            many => Self::of(&many.iter().flat_map(|it| it.0).collect::<Vec<u8>>()),
        }
    }
}

macro_rules! count {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub struct $name(pub $inner);

        impl $name {
            /// The next one, saturating at the end of the range.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }

            /// How many lie between `earlier` and `self`; zero when `earlier` is later.
            pub const fn since(self, earlier: Self) -> $inner {
                self.0.saturating_sub(earlier.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

count!(
    /// A round: inner steps, then an exchange. Round `r` leads from anchor `r` to anchor `r + 1`.
    Round(u64)
);
count!(
    /// An inner step, counted from the start of its round.
    InnerStep(u64)
);
count!(
    /// A fragment: a run of the flat parameters that is exchanged as one unit.
    FragmentId(u16)
);
count!(
    /// A work order. Every reply names the order it answers.
    OrderId(u64)
);

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const fn peer(byte: u8) -> PeerId {
        PeerId::from_bytes([byte; 32])
    }

    #[test]
    fn hex_round_trips_and_refuses_nonsense() {
        let id = PeerId::from_bytes([0xab; 32]);
        assert_eq!(PeerId::from_hex(&id.to_hex()), Some(id));
        assert_eq!(id.to_string(), "abababab");
        assert_eq!(PeerId::from_hex("xyz"), None);
        assert_eq!(PeerId::from_hex(&"+1".repeat(32)), None);
    }

    #[test]
    fn the_encoding_is_the_bytes() {
        let bytes = core::array::from_fn(|n| n as u8 * 7);
        let id = PeerId::from_bytes(bytes);
        assert_eq!(crate::wire::encode_value(&id), bytes);
        assert_eq!(crate::wire::decode_value(&bytes), Ok(id));
    }
}

/// Nanoseconds since the driver's epoch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time(u64);

impl Time {
    /// The driver's epoch.
    pub const ZERO: Self = Self(0);
    /// Later than every deadline.
    pub const NEVER: Self = Self(u64::MAX);

    /// From nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// As nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// As seconds, for people.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// The time from `earlier` to `self`; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        let nanos = u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub<Duration> for Time {
    type Output = Self;

    fn sub(self, rhs: Duration) -> Self {
        let nanos = u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(nanos))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}s", self.as_secs_f64())
    }
}

/// The rank of a peer in a round of a run; the highest one wins. Different slots give
/// independent ranks in the same round.
pub(crate) fn rendezvous(run: &RunId, round: Round, slot: u8, peer: PeerId) -> u64 {
    let mut bytes = [0u8; 73];
    bytes[..32].copy_from_slice(run.as_bytes());
    bytes[32..64].copy_from_slice(peer.as_bytes());
    bytes[64..72].copy_from_slice(&round.0.to_le_bytes());
    bytes[72] = slot;
    Digest::of(&bytes).first_bits()
}

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
