//! Outbound connections.

use crate::mux::Side;
use crate::tcp::connection::{Connection, Ends};
use crate::tcp::error::Error;
use crate::tcp::offer::Offer;
use crate::tcp::shared::Shared;
use crate::tcp::{WELCOME, WRITE_BYTES};
use libp2p::PeerId;
use socket2::SockRef;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Dials the port of an offer at the remote's address.
pub(super) async fn dial(
    shared: &Arc<Shared>,
    peer: PeerId,
    remote: SocketAddr,
    offer: Offer,
) -> Result<Connection, Error> {
    let addr = SocketAddr::new(remote.ip().to_canonical(), offer.port);
    let after = shared.handshake_timeout;
    timeout(after, connect(shared, peer, addr, offer))
        .await
        .unwrap_or(Err(Error::Timeout { addr, after }))
}

async fn connect(
    shared: &Arc<Shared>,
    peer: PeerId,
    addr: SocketAddr,
    offer: Offer,
) -> Result<Connection, Error> {
    let unreachable = |source| Error::Unreachable {
        addr,
        source: Arc::new(source),
    };
    let hold = shared.hold(peer).ok_or(Error::Token)?;
    let stream = shared.connect(addr).await.map_err(unreachable)?;
    tune(&stream, shared.patience);
    let local = stream.local_addr().map_err(unreachable)?;
    let (connector, expected) = shared.tls.connector(peer)?;
    let shaken = connector.shake(stream).await;
    let mut stream = shaken.map_err(|source| match expected.mismatch() {
        Some(mismatch) => Error::WrongPeer(Box::new(mismatch)),
        None => Error::Handshake {
            addr,
            source: Arc::new(source),
        },
    })?;
    stream.get_mut().1.set_buffer_limit(Some(WRITE_BYTES));
    stream.write_all(&offer.token).await.map_err(unreachable)?;
    stream.flush().await.map_err(unreachable)?;
    match stream.read_u8().await {
        Ok(WELCOME) => {}
        Ok(_) | Err(_) => return Err(Error::Token),
    }
    let ends = Ends {
        local,
        remote: addr,
    };
    Ok(Connection::start(
        stream,
        Side::Dialer,
        shared.patience,
        ends,
        hold,
    ))
}

/// Frames leave at once, and a remote that acknowledges nothing is noticed.
pub(super) fn tune(stream: &TcpStream, patience: Duration) {
    // Without these options the connection still works.
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = SockRef::from(stream).set_tcp_user_timeout(Some(patience));
    #[cfg(not(target_os = "linux"))]
    let _ = (SockRef::from(stream), patience);
}
