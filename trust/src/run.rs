//! A run as every member knows it, and signatures with Ed25519, each over a text that names the kind of its value.

use ed25519_dalek::ed25519::signature::{Signer, Verifier};
use ed25519_dalek::{SigningKey, VerifyingKey};
use murmurate_protocol::wire::canonical;
use murmurate_protocol::{Digest, PeerId, Proof, RunId};
use serde::Serialize;

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
    /// Everyone who knows the name is a member.
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

    /// Checks a proof that a member lies: its signatures are the peer's, and no honest peer gives both.
    pub(crate) fn proves(&self, proof: &Proof) -> bool {
        proof.holds(&self.id, |by, bytes, by_them| {
            of_bytes(by, bytes, &by_them.to_bytes())
        })
    }

    /// The run's secret, for the file of a member.
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }
}

pub(crate) fn public(secret: &[u8; 32]) -> PeerId {
    PeerId::from_bytes(SigningKey::from_bytes(secret).verifying_key().to_bytes())
}

/// Signs `value` as a `what`.
pub(crate) fn sign<T: Serialize>(secret: &[u8; 32], what: &str, value: &T) -> Vec<u8> {
    let bytes = canonical(&(what, value));
    let signature = SigningKey::from_bytes(secret).sign(&bytes);
    signature.to_bytes().to_vec()
}

/// True if `by` signed these bytes, by the rule by which members check each other's statements.
fn of_bytes(by: &PeerId, bytes: &[u8], signature: &[u8; 64]) -> bool {
    let signature = ed25519_dalek::Signature::from_bytes(signature);
    VerifyingKey::from_bytes(by.as_bytes()).is_ok_and(|key| key.verify(bytes, &signature).is_ok())
}

/// True if `by` signed `value` as a `what`. Weak keys have signed nothing.
pub(crate) fn holds<T: Serialize>(by: &PeerId, what: &str, value: &T, signature: &[u8]) -> bool {
    let Ok(key) = VerifyingKey::from_bytes(by.as_bytes()) else {
        return false;
    };
    let Ok(signature) = ed25519_dalek::Signature::from_slice(signature) else {
        return false;
    };
    !key.is_weak()
        && key
            .verify_strict(&canonical(&(what, value)), &signature)
            .is_ok()
}
