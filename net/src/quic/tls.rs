//! TLS 1.3 as used by libp2p: ciphers, certificates and protocols.
//!
//! The ciphers are ring's: AES-128-GCM first if the machine has AES instructions, otherwise
//! ChaCha20-Poly1305. The server follows the client's preference.
//! Sessions are never resumed, because a resumed session would skip the check of the peer's
//! identity, and all peers share one server name. So there is no 0-RTT either.

use crate::quic::admission::Kind;
use crate::quic::certificate;
use crate::quic::error::Error;
use crate::quic::hybrid::X25519MlKem768;
use crate::quic::ids::ResetKey;
use crate::quic::verifier::Verifier;
use libp2p::PeerId;
use libp2p::identity::Keypair;
use quinn::crypto::rustls::{HandshakeData, QuicClientConfig, QuicServerConfig};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, SecureRandom, ring};
use rustls::pki_types::CertificateDer;
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, KeyLogFile, ServerConfig, Tls13CipherSuite};
use std::sync::Arc;

/// The server name of a dial. It has no meaning, because peers are identified by their keys, but
/// TLS requires one.
pub(super) const SERVER_NAME: &str = "l";

/// The cipher that a dial prefers. Both ends support all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cipher {
    /// AES-128-GCM if the machine has AES instructions, otherwise ChaCha20-Poly1305.
    #[default]
    Auto,
    /// AES-128-GCM.
    Aes128,
    /// ChaCha20-Poly1305.
    ChaCha20,
}

impl Cipher {
    /// True if it resolves to AES-128-GCM on this machine.
    #[must_use]
    pub fn is_aes(self) -> bool {
        match self {
            Self::Auto => hardware_aes(),
            Self::Aes128 => true,
            Self::ChaCha20 => false,
        }
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn hardware_aes() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn hardware_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn hardware_aes() -> bool {
    false
}

/// An identity's certificate, and the TLS configurations with it.
pub(super) struct Tls {
    provider: Arc<CryptoProvider>,
    certificate: Arc<SingleCertAndKey>,
    key_log: bool,
}

impl Tls {
    pub(super) fn new(
        identity: &Keypair,
        cipher: Cipher,
        post_quantum: bool,
        key_log: bool,
    ) -> Result<Self, Error> {
        // `with_single_cert` refuses libp2p's critical extension.
        let certified = certificate::generate(identity).map_err(Error::Certificate)?;
        Ok(Self {
            provider: Arc::new(provider(cipher, post_quantum)),
            certificate: Arc::new(SingleCertAndKey::from(certified)),
            key_log,
        })
    }

    /// rustls's settings of the dialling side.
    pub(super) fn client_config(
        &self,
        alpn: &[u8],
        verifier: Arc<Verifier>,
    ) -> Result<ClientConfig, rustls::Error> {
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(Arc::clone(&self.certificate) as Arc<_>);
        config.alpn_protocols = vec![alpn.to_vec()];
        config.resumption = Resumption::disabled();
        config.enable_early_data = false;
        config.enable_sni = false;
        if self.key_log {
            config.key_log = Arc::new(KeyLogFile::new());
        }
        Ok(config)
    }

    /// rustls's settings of the listening side.
    pub(super) fn server_config(&self, alpn: &[&[u8]]) -> Result<ServerConfig, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(Arc::new(Verifier::default()))
            .with_cert_resolver(Arc::clone(&self.certificate) as Arc<_>);
        config.alpn_protocols = alpn.iter().map(|alpn| alpn.to_vec()).collect();
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.max_early_data_size = 0;
        if self.key_log {
            config.key_log = Arc::new(KeyLogFile::new());
        }
        Ok(config)
    }

    pub(super) fn random(&self) -> &'static dyn SecureRandom {
        self.provider.secure_random
    }

    /// The configuration of the dialling side. The caller keeps the verifier to learn which peer
    /// answered.
    pub(super) fn client(
        &self,
        kind: Kind,
        verifier: Arc<Verifier>,
    ) -> Result<QuicClientConfig, Error> {
        let config = self.client_config(kind.alpn(), verifier)?;
        let suite = initial_suite(&self.provider)?;
        QuicClientConfig::with_initial(Arc::new(config), quic_suite(suite)?)
            .map_err(|error| Error::Tls(rustls::Error::General(error.to_string())))
    }

    /// The configuration of the listening side, for both kinds.
    pub(super) fn server(&self) -> Result<QuicServerConfig, Error> {
        let config = self.server_config(&[Kind::Control.alpn(), Kind::Bulk.alpn()])?;
        let suite = initial_suite(&self.provider)?;
        QuicServerConfig::with_initial(Arc::new(config), quic_suite(suite)?)
            .map_err(|error| Error::Tls(rustls::Error::General(error.to_string())))
    }

    /// The key of stateless resets; `None` if the identity has no secret for it.
    pub(super) fn reset_key(&self, identity: &Keypair) -> Option<ResetKey> {
        ResetKey::new(identity, initial_suite(&self.provider).ok()?)
    }
}

pub(super) fn provider(cipher: Cipher, post_quantum: bool) -> CryptoProvider {
    use ring::cipher_suite::{
        TLS13_AES_128_GCM_SHA256 as AES_128, TLS13_AES_256_GCM_SHA384 as AES_256,
        TLS13_CHACHA20_POLY1305_SHA256 as CHACHA20,
    };
    let mut provider = ring::default_provider();
    provider.cipher_suites = if cipher.is_aes() {
        vec![AES_128, AES_256, CHACHA20]
    } else {
        vec![CHACHA20, AES_128, AES_256]
    };
    if post_quantum {
        // The same preference as libp2p-tls. ring has no ML-KEM.
        provider.kx_groups.insert(0, &X25519MlKem768);
    }
    provider
}

/// AES-128-GCM with SHA-256, which protects QUIC's first packets (RFC 9001, 5.2).
fn initial_suite(provider: &CryptoProvider) -> Result<&'static Tls13CipherSuite, Error> {
    let aes = rustls::CipherSuite::TLS13_AES_128_GCM_SHA256;
    provider
        .cipher_suites
        .iter()
        .find_map(|suite| suite.tls13().filter(|_| suite.suite() == aes))
        .ok_or_else(|| missing("AES-128-GCM"))
}

fn quic_suite(suite: &'static Tls13CipherSuite) -> Result<rustls::quic::Suite, Error> {
    suite
        .quic_suite()
        .ok_or_else(|| missing("AES-128-GCM for QUIC"))
}

fn missing(what: &str) -> Error {
    Error::Tls(rustls::Error::General(format!("no {what}")))
}

/// The peer at the other end of a connection whose handshake is complete.
///
/// # Errors
/// [`Error::NoIdentity`] if it sent no libp2p certificate, which cannot happen on a connection of
/// an [`Endpoint`](super::Endpoint).
pub fn remote_peer_id(connection: &quinn::Connection) -> Result<PeerId, Error> {
    let identity = connection.peer_identity().ok_or(Error::NoIdentity)?;
    let chain = identity
        .downcast::<Vec<CertificateDer<'static>>>()
        .map_err(|_| Error::NoIdentity)?;
    let end_entity = chain.first().ok_or(Error::NoIdentity)?;
    let certificate = certificate::parse(end_entity).ok_or(Error::NoIdentity)?;
    Ok(certificate.peer_id())
}

pub(super) fn kind_of(connection: &quinn::Connection) -> Option<Kind> {
    let data = connection.handshake_data()?;
    let data = data.downcast::<HandshakeData>().ok()?;
    Kind::of(data.protocol.as_deref()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{CipherSuite, NamedGroup};

    #[test]
    fn the_fastest_cipher_of_the_machine_comes_first() {
        let first = |cipher| provider(cipher, false).cipher_suites[0].suite();
        assert_eq!(first(Cipher::Aes128), CipherSuite::TLS13_AES_128_GCM_SHA256);
        assert_eq!(
            first(Cipher::ChaCha20),
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
        );
        let aes = Cipher::Auto.is_aes();
        assert_eq!(
            first(Cipher::Auto) == CipherSuite::TLS13_AES_128_GCM_SHA256,
            aes
        );
    }

    #[test]
    fn the_key_exchange_is_post_quantum_only_if_asked_for() {
        let first = |on| provider(Cipher::Auto, on).kx_groups[0].name();
        assert_eq!(first(true), NamedGroup::X25519MLKEM768);
        assert_eq!(first(false), NamedGroup::X25519);
    }
}
