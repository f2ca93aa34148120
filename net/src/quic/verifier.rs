//! Verifies libp2p certificates in both directions. `admission` decides whether the peer may
//! connect.
//!
//! libp2p's certificates are self-signed and contain the peer's public key in a critical extension
//! (libp2p's specification of TLS), so the usual verification refuses them.

use crate::quic::certificate::{SCHEMES, parse};
use crate::quic::error::Mismatch;
use libp2p::PeerId;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible,
    SignatureScheme,
};
use std::sync::OnceLock;

/// Verifies libp2p certificates and, for a dial, that the certificate belongs to the expected peer.
#[derive(Debug, Default)]
pub(super) struct Verifier {
    expected: Option<PeerId>,
    found: OnceLock<PeerId>,
}

impl Verifier {
    pub(super) fn expecting(expected: Option<PeerId>) -> Self {
        Self {
            expected,
            found: OnceLock::new(),
        }
    }

    /// The expected and the actual peer, if the handshake failed because they differ.
    pub(super) fn mismatch(&self) -> Option<Mismatch> {
        let (expected, found) = (self.expected?, *self.found.get()?);
        (expected != found).then_some(Mismatch { expected, found })
    }
}

/// The signatures that both ends take.
macro_rules! signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(PeerIncompatible::Tls13RequiredForQuic.into())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify(message, cert, signed)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            SCHEMES.to_vec()
        }
    };
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let peer = peer_of(end_entity, intermediates)?;
        let found = *self.found.get_or_init(|| peer);
        if self.expected.is_some_and(|expected| expected != found) {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(ServerCertVerified::assertion())
    }

    signatures!();
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        peer_of(end_entity, intermediates)?;
        Ok(ClientCertVerified::assertion())
    }

    signatures!();
}

/// The peer of a certificate. Checks that it is the only one, self-signed and currently valid, and
/// that the peer signed its key.
fn peer_of(
    end_entity: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
) -> Result<PeerId, Error> {
    if !intermediates.is_empty() {
        return Err(Error::General(
            "a libp2p peer shows one certificate".to_owned(),
        ));
    }
    let certificate = parse(end_entity).ok_or(CertificateError::BadEncoding)?;
    Ok(certificate.peer_id())
}

/// Checks that the other end holds the certificate's key.
fn verify(
    message: &[u8],
    cert: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let certificate = parse(cert).ok_or(CertificateError::BadEncoding)?;
    if certificate.has_signed(signed.scheme, message, signed.signature()) {
        Ok(HandshakeSignatureValid::assertion())
    } else {
        Err(CertificateError::BadSignature.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quic::certificate::generate;
    use libp2p::identity::Keypair;

    fn certificate(identity: &Keypair) -> CertificateDer<'static> {
        generate(identity).unwrap().cert[0].clone()
    }

    fn shown(verifier: &Verifier, cert: &CertificateDer<'_>) -> Result<ServerCertVerified, Error> {
        let name = ServerName::try_from("l").unwrap();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1));
        verifier.verify_server_cert(cert, &[], &name, &[], now)
    }

    #[test]
    fn only_the_peer_one_meant_passes() {
        let (right, wrong) = (Keypair::generate_ed25519(), Keypair::generate_ed25519());
        let cert = certificate(&right);
        let peer = right.public().to_peer_id();
        let other = wrong.public().to_peer_id();
        let verifier = Verifier::expecting(Some(peer));
        assert!(shown(&verifier, &cert).is_ok());
        assert_eq!(verifier.mismatch(), None);
        let verifier = Verifier::expecting(Some(other));
        assert!(shown(&verifier, &cert).is_err());
        let mismatch = Mismatch {
            expected: other,
            found: peer,
        };
        assert_eq!(verifier.mismatch(), Some(mismatch));
        assert!(shown(&Verifier::default(), &cert).is_ok());
    }

    #[test]
    fn a_damaged_certificate_never_passes_for_another_peers() {
        let identity = Keypair::generate_ed25519();
        let cert = certificate(&identity);
        let mut passed = 0;
        for at in 0..cert.len() {
            let mut damaged = cert.to_vec();
            damaged[at] ^= 0x20;
            // A tag that is parsed leniently and not signed may pass, because it changes nothing of
            // importance.
            if let Ok(peer) = peer_of(&CertificateDer::from(damaged), &[]) {
                assert_eq!(peer, identity.public().to_peer_id(), "byte {at}");
                passed += 1;
            }
        }
        assert!(passed < 8, "{passed} of {} bytes do not count", cert.len());
    }

    #[test]
    fn a_chain_is_refused() {
        let cert = certificate(&Keypair::generate_ed25519());
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1));
        let verifier = Verifier::default();
        assert!(verifier.verify_client_cert(&cert, &[], now).is_ok());
        let chain = [cert.clone()];
        assert!(verifier.verify_client_cert(&cert, &chain, now).is_err());
    }
}
