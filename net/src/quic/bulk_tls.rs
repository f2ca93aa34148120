//! TLS of bulk connections over TCP, with the identities and checks of those over QUIC.

use crate::quic::certificate;
use crate::quic::config::Config;
use crate::quic::error::{Error, Mismatch};
use crate::quic::tls::{SERVER_NAME, Tls};
use crate::quic::verifier::Verifier;
use libp2p::PeerId;
use libp2p::identity::Keypair;
use rustls::crypto::SecureRandom;
use rustls::pki_types::{CertificateDer, ServerName};
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Makes the TLS ends of an identity.
pub(crate) struct BulkTls {
    tls: Tls,
    acceptor: TlsAcceptor,
    alpn: &'static [u8],
}

/// Dials one peer.
pub(crate) struct Connector {
    tls: TlsConnector,
    name: ServerName<'static>,
}

/// The check of a dialled peer.
pub(crate) struct Expected(Arc<Verifier>);

impl Expected {
    /// The peer that was meant and the one that answered, if they differ.
    pub(crate) fn mismatch(&self) -> Option<Mismatch> {
        self.0.mismatch()
    }
}

impl Connector {
    /// Completes the handshake on a connection.
    pub(crate) async fn shake(self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.tls.connect(self.name, stream).await
    }
}

impl BulkTls {
    pub(crate) fn new(
        config: &Config,
        identity: &Keypair,
        alpn: &'static [u8],
    ) -> Result<Self, Error> {
        let tls = Tls::new(identity, config.cipher, config.post_quantum, config.key_log)?;
        let acceptor = TlsAcceptor::from(Arc::new(tls.server_config(&[alpn])?));
        Ok(Self {
            tls,
            acceptor,
            alpn,
        })
    }

    /// A dial that accepts only this peer.
    pub(crate) fn connector(&self, peer: PeerId) -> Result<(Connector, Expected), rustls::Error> {
        let verifier = Arc::new(Verifier::expecting(Some(peer)));
        let config = self.tls.client_config(self.alpn, Arc::clone(&verifier))?;
        let tls = TlsConnector::from(Arc::new(config));
        let name = ServerName::try_from(SERVER_NAME)
            .map_err(|_| rustls::Error::General("no server name".to_owned()))?;
        Ok((Connector { tls, name }, Expected(verifier)))
    }

    pub(crate) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    pub(crate) fn random(&self) -> &'static dyn SecureRandom {
        self.tls.random()
    }
}

/// The peer that these certificates prove.
pub(crate) fn peer_of_certificates(chain: &[CertificateDer<'_>]) -> Option<PeerId> {
    let certificate = certificate::parse(chain.first()?)?;
    Some(certificate.peer_id())
}
