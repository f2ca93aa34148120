//! The key exchange X25519MLKEM768: X25519 and ML-KEM-768 at once, so that recorded traffic stays secret
//! if one of the two is broken.
//!
//! **Source:** draft-ietf-tls-ecdhe-mlkem, with FIPS 203. Shares and secrets are those of ML-KEM, then
//! those of X25519.

use ml_kem::kem::{Decapsulate, Encapsulate, Kem, KeyExport};
use ml_kem::ml_kem_768::{DecapsulationKey, EncapsulationKey, MlKem768};
use rustls::crypto::ring::kx_group::X25519;
use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

/// Bytes of a client's share of ML-KEM-768: its encapsulation key.
const KEY_BYTES: usize = 1184;

/// Bytes of a server's share of ML-KEM-768: the encapsulated secret.
const CIPHERTEXT_BYTES: usize = 1088;

const INVALID: Error = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);

/// The key exchange.
#[derive(Debug)]
pub(super) struct X25519MlKem768;

impl SupportedKxGroup for X25519MlKem768 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let classical = X25519.start()?;
        let (secret, public) = MlKem768::generate_keypair();
        let share = [&public.to_bytes()[..], classical.pub_key()].concat();
        Ok(Box::new(Started {
            classical,
            secret,
            share,
        }))
    }

    fn start_and_complete(&self, share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (key, classical) = share.split_at_checked(KEY_BYTES).ok_or(INVALID)?;
        let key = key.try_into().map_err(|_| INVALID)?;
        let key = EncapsulationKey::new(key).map_err(|_| INVALID)?;
        let classical = X25519.start_and_complete(classical)?;
        let (ciphertext, secret) = key.encapsulate();
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: [&ciphertext[..], &classical.pub_key].concat(),
            secret: [&secret[..], classical.secret.secret_bytes()]
                .concat()
                .into(),
        })
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

/// An exchange of which the client's share was sent.
struct Started {
    classical: Box<dyn ActiveKeyExchange>,
    secret: DecapsulationKey,
    share: Vec<u8>,
}

impl ActiveKeyExchange for Started {
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        let (ciphertext, classical) = share.split_at_checked(CIPHERTEXT_BYTES).ok_or(INVALID)?;
        let secret = self.secret.decapsulate_slice(ciphertext);
        let secret = secret.map_err(|_| INVALID)?;
        let classical = self.classical.complete(classical)?;
        Ok([&secret[..], classical.secret_bytes()].concat().into())
    }

    // A server without ML-KEM takes this half, without another round trip.
    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.classical.group(), self.classical.pub_key()))
    }

    fn complete_hybrid_component(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        self.classical.complete(share)
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_have_one_secret_and_shares_of_the_standards_sizes() {
        let client = X25519MlKem768.start().unwrap();
        assert_eq!(client.pub_key().len(), 1216);
        let server = X25519MlKem768.start_and_complete(client.pub_key()).unwrap();
        assert_eq!(server.pub_key.len(), 1120);
        let secret = client.complete(&server.pub_key).unwrap();
        assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
        assert_eq!(secret.secret_bytes().len(), 64);
    }

    #[test]
    fn each_half_counts_and_other_lengths_are_refused() {
        for at in [0, CIPHERTEXT_BYTES] {
            let client = X25519MlKem768.start().unwrap();
            let mut server = X25519MlKem768.start_and_complete(client.pub_key()).unwrap();
            server.pub_key[at] ^= 1;
            let secret = client.complete(&server.pub_key).unwrap();
            assert_ne!(secret.secret_bytes(), server.secret.secret_bytes());
        }
        let client = X25519MlKem768.start().unwrap();
        for len in [0, KEY_BYTES, 1215] {
            let share = &client.pub_key()[..len];
            assert!(X25519MlKem768.start_and_complete(share).is_err());
        }
        // Coefficients of a key are below 3329.
        assert!(X25519MlKem768.start_and_complete(&[0xff; 1216]).is_err());
        assert!(client.complete(&[0; 1119]).is_err());
    }

    #[test]
    fn servers_without_ml_kem_take_the_share_of_x25519() {
        let client = X25519MlKem768.start().unwrap();
        let (group, share) = client.hybrid_component().unwrap();
        assert_eq!(group, NamedGroup::X25519);
        let server = X25519.start_and_complete(share).unwrap();
        let secret = client.complete_hybrid_component(&server.pub_key).unwrap();
        assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
    }
}
