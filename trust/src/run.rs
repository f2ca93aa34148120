//! What every member of a run knows of it.

use crate::key::RunKey;
use murmurate_protocol::{Digest, PeerId, RunId};

/// A run as its members know it. The secret shows at the gate that a peer was told about the run;
/// only certificates let it in.
#[derive(Clone, PartialEq, Eq)]
pub struct Run {
    /// Hash of the public key and the name; in an open run, of the name alone.
    pub id: RunId,
    /// The run's public key.
    pub key: PeerId,
    /// Known to members only.
    pub(crate) secret: [u8; 32],
    /// Whether everyone who knows the name is a member.
    pub open: bool,
}

impl core::fmt::Debug for Run {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { id, key, open, .. } = self;
        write!(f, "Run {{ id: {id}, key: {key}, open: {open} }}")
    }
}

impl Run {
    /// A run with a key.
    pub fn closed(name: &str, key: PeerId, secret: [u8; 32]) -> Self {
        let text = [
            b"murmurate closed run ",
            &key.as_bytes()[..],
            name.as_bytes(),
        ]
        .concat();
        Self {
            id: RunId::from_bytes(*Digest::of(&text).as_bytes()),
            key,
            secret,
            open: false,
        }
    }

    /// A run without a key of its own: everyone can compute its key from its id, so everyone can
    /// make a certificate for itself.
    pub fn open(id: RunId) -> (Self, RunKey) {
        let seed = blake3::derive_key("murmurate 2026 key of an open run", id.as_bytes());
        let key = RunKey::from_seed(String::new(), seed);
        let run = Self {
            id,
            key: key.public(),
            secret: key.secret(),
            open: true,
        };
        (run, key)
    }

    /// The run's secret, for the file of a member.
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }
}
