//! Signatures with Ed25519, each over a text that says what is signed.

use ed25519_dalek::ed25519::signature::{Signer, Verifier};
use ed25519_dalek::{SigningKey, VerifyingKey};
use murmurate_protocol::PeerId;
use murmurate_protocol::wire::canonical;
use serde::Serialize;

/// The public key of a secret one.
pub(crate) fn public(secret: &[u8; 32]) -> PeerId {
    PeerId::from_bytes(SigningKey::from_bytes(secret).verifying_key().to_bytes())
}

/// Signs `value` as a `what`.
pub(crate) fn sign<T: Serialize>(secret: &[u8; 32], what: &str, value: &T) -> Vec<u8> {
    let bytes = canonical(&(what, value));
    let signature = SigningKey::from_bytes(secret).sign(&bytes);
    signature.to_bytes().to_vec()
}

/// Whether `by` signed these bytes, by the rule by which members check each other's statements.
pub(crate) fn of_bytes(by: &PeerId, bytes: &[u8], signature: &[u8; 64]) -> bool {
    let signature = ed25519_dalek::Signature::from_bytes(signature);
    VerifyingKey::from_bytes(by.as_bytes()).is_ok_and(|key| key.verify(bytes, &signature).is_ok())
}

/// Whether `by` signed `value` as a `what`. Weak keys have signed nothing.
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
