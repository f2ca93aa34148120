//! Ids and counters of different kinds, each its own type so that they cannot be mixed up.

use core::cmp::Ordering;
use core::fmt;
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
                use fmt::Write;
                self.0.iter().fold(String::with_capacity(64), |mut s, b| {
                    let _ = write!(s, "{b:02x}");
                    s
                })
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
