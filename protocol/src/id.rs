//! Identities: 32-byte newtypes with a short display form. No arithmetic, no randomness.

use core::fmt;
use serde::{Deserialize, Serialize};

macro_rules! id32 {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name([u8; 32]);

        impl $name {
            /// Wraps 32 raw bytes.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// The raw bytes.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_round_trips_and_refuses_nonsense() {
        let id = PeerId::from_bytes([0xab; 32]);
        assert_eq!(PeerId::from_hex(&id.to_hex()), Some(id));
        assert_eq!(id.to_string(), "abababab");
        assert_eq!(PeerId::from_hex("xyz"), None);
        assert_eq!(PeerId::from_hex(&"+1".repeat(32)), None);
    }
}
