//! Outbound connections of either kind.

use crate::quic::addr::bare;
use crate::quic::admission::Kind;
use crate::quic::error::Error;
use crate::quic::port::Port;
use crate::quic::registry::Hold;
use crate::quic::shared::Shared;
use crate::quic::tls::SERVER_NAME;
use crate::quic::verifier::Verifier;
use libp2p::PeerId;
use quinn::{ConnectionError, TransportErrorCode};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::time::timeout;

/// TLS's alert `no_application_protocol` (RFC 7301, 3.2).
const ALERT_NO_PROTOCOL: u8 = 120;

impl Shared {
    /// Dials `addr` from `port`. If `addr` names a peer, any other peer is refused before it learns
    /// our identity.
    pub(super) async fn dial(
        &self,
        port: &Arc<Port>,
        addr: SocketAddr,
        expected: Option<PeerId>,
        kind: Kind,
    ) -> Result<(PeerId, quinn::Connection, Hold), Error> {
        if let Some(peer) = expected {
            self.may(peer, kind)?;
        }
        let verifier = Arc::new(Verifier::expecting(expected));
        let known = Arc::clone(&verifier);
        let client = self.config.client(&self.tls, kind, known, Some(addr))?;
        let connecting = port.quinn.connect_with(client, bare(addr), SERVER_NAME)?;
        let wait = self.config.handshake_timeout;
        let connection = timeout(wait, connecting)
            .await
            .map_err(|_| Error::HandshakeTimeout(wait))?
            .map_err(|error| why(error, &verifier, kind))?;
        let (peer, hold) = self.settle(&connection, kind, Arc::downgrade(port))?;
        Ok((peer, connection, hold))
    }
}

fn why(error: ConnectionError, verifier: &Verifier, kind: Kind) -> Error {
    if let Some(mismatch) = verifier.mismatch() {
        return Error::WrongPeer(Box::new(mismatch));
    }
    if let ConnectionError::ConnectionClosed(close) = &error
        && close.error_code == TransportErrorCode::crypto(ALERT_NO_PROTOCOL)
    {
        return Error::Unsupported(match kind {
            Kind::Control => "libp2p",
            Kind::Bulk => "murmurate-bulk/1",
        });
    }
    Error::Connection(error)
}
