//! Connection ids and stateless resets. Ids are random, all of the same length, and all accepted as ours.
//!
//! quinn's own ids contain a checksum under a key that changes with each start. A restarted daemon
//! would take ids from before for garbage and stay silent. Here it answers them with a stateless
//! reset, whose key is derived from the identity: a daemon that was killed and restarts on its port tells its
//! peers at once that their connections are gone, so they need not wait for the idle timeout.

use crate::quic::admission::Kind;
use libp2p::identity::Keypair;
use quinn::crypto::{CryptoError, HmacKey};
use quinn::{ConnectionId, ConnectionIdGenerator};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use rustls::Tls13CipherSuite;
use rustls::crypto::tls13::OkmBlock;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Bytes of an id. Long enough that ids of one endpoint do not collide.
const LENGTH: usize = 8;

/// Bytes of the id that a dial makes up for the listener of a bulk connection; of others 20 (quinn, libp2p). So a
/// listener knows early where to look for larger packets. A false length gets a peer nothing else.
const FIRST_OF_BULK: usize = 19;

/// Makes up the listener's first id on a bulk connection.
pub(super) fn first_of_bulk() -> ConnectionId {
    let mut id = [0; FIRST_OF_BULK];
    random().fill_bytes(&mut id);
    ConnectionId::new(&id)
}

/// The kind of connection that a listener's first id announces.
pub(super) fn announced(first: &ConnectionId) -> Kind {
    match first.len() {
        FIRST_OF_BULK => Kind::Bulk,
        _ => Kind::Control,
    }
}

/// A generator seeded with the system's randomness.
pub(super) fn random() -> ChaCha8Rng {
    let keyed = RandomState::new();
    let mut seed = [0; 32];
    for (part, bytes) in seed.chunks_exact_mut(8).enumerate() {
        bytes.copy_from_slice(&keyed.hash_one(part).to_le_bytes());
    }
    ChaCha8Rng::from_seed(seed)
}

/// Generates the ids of one socket's connections.
pub(super) struct Ids(ChaCha8Rng);

impl Ids {
    pub(super) fn new() -> Self {
        Self(random())
    }
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; LENGTH];
        self.0.fill_bytes(&mut id);
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// HMAC-SHA256 under a key derived from the identity.
pub(super) struct ResetKey {
    secret: [u8; 32],
    suite: &'static Tls13CipherSuite,
}

impl ResetKey {
    const DOMAIN: &[u8] = b"murmurate quic stateless reset 1";

    /// `suite` must use SHA-256. `None` if the identity's kind has no secret to derive a key from.
    pub(super) fn new(identity: &Keypair, suite: &'static Tls13CipherSuite) -> Option<Self> {
        let secret = identity.derive_secret(Self::DOMAIN)?;
        Some(Self { secret, suite })
    }
}

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        let key = OkmBlock::new(&self.secret);
        let tag = self.suite.hkdf_provider.hmac_sign(&key, data);
        signature_out.copy_from_slice(tag.as_ref());
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut tag = [0; 32];
        self.sign(data, &mut tag);
        if signature.len() != tag.len() {
            return Err(CryptoError);
        }
        // No early return, because its timing would reveal the number of correct bytes.
        let differing = tag
            .iter()
            .zip(signature)
            .fold(0, |all, (a, b)| all | (a ^ b));
        if differing == 0 {
            Ok(())
        } else {
            Err(CryptoError)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quic::tls::Cipher;
    use crate::quic::tls::provider;

    fn key(identity: &Keypair) -> ResetKey {
        let provider = provider(Cipher::Aes128, false);
        let suite = provider.cipher_suites[0].tls13().unwrap();
        ResetKey::new(identity, suite).unwrap()
    }

    #[test]
    fn an_identity_has_one_key_and_only_its_signatures_pass() {
        let identity = Keypair::generate_ed25519();
        let (mut first, mut again) = ([0; 32], [0; 32]);
        key(&identity).sign(b"connection", &mut first);
        key(&identity).sign(b"connection", &mut again);
        assert_eq!(first, again, "a restarted daemon signs the same");
        assert!(key(&identity).verify(b"connection", &first).is_ok());
        assert!(key(&identity).verify(b"connection", &first[..16]).is_err());
        assert!(key(&identity).verify(b"another", &first).is_err());
        assert!(
            key(&Keypair::generate_ed25519())
                .verify(b"connection", &first)
                .is_err()
        );
    }
}
