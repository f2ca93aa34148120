//! What every member of a run knows of it.

use crate::signature;
use murmurate_protocol::{Digest, PeerId, Proof, RunId};

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

    /// Whether a proof that a member lies is one: its signatures are the peer's, and no honest peer gives both.
    pub(crate) fn proves(&self, proof: &Proof) -> bool {
        proof.holds(&self.id, |by, bytes, by_them| {
            signature::of_bytes(by, bytes, &by_them.to_bytes())
        })
    }

    /// The run's secret, for the file of a member.
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }
}
