//! Inbound connections: they are screened, complete the handshake, and show a token.

use crate::mux::Side;
use crate::places::network_of;
use crate::tcp::connection::{Connection, Ends};
use crate::tcp::dial::tune;
use crate::tcp::offer::TOKEN_BYTES;
use crate::tcp::shared::Shared;
use crate::tcp::{WELCOME, WRITE_BYTES};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};

/// Pause after the system refused to accept a connection, for example because too many files are
/// open.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until the endpoint is dropped.
pub(super) async fn all(shared: Weak<Shared>, listener: TcpListener) {
    loop {
        let accepted = listener.accept().await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        match accepted {
            Ok((stream, source)) if shared.arrivals.take(source.ip(), Instant::now()) => {
                tokio::spawn(greet(shared, stream, source));
            }
            Ok((_, source)) => tracing::debug!(%source, "too many TCP connections at once"),
            Err(error) => {
                tracing::debug!(%error, "no TCP connection could be accepted");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn greet(shared: Arc<Shared>, stream: TcpStream, source: SocketAddr) {
    let place = shared.handshakes.take(Some(network_of(source.ip())));
    let shaken = place.hold(timeout(
        shared.handshake_timeout,
        welcome(&shared, stream, source),
    ));
    match shaken.await {
        Some(Ok(Ok(connection))) => {
            // A full queue drops the connection, and the peer stays on QUIC.
            if shared.inbound.try_send(connection).is_err() {
                tracing::debug!(%source, "too many TCP connections wait to be accepted");
            }
        }
        Some(Ok(Err(error))) => tracing::debug!(%source, %error, "a TCP connection was refused"),
        Some(Err(_)) => tracing::debug!(%source, "a TCP handshake did not end in time"),
        None => tracing::debug!(%source, "a TCP handshake made room for another one"),
    }
}

/// Completes the handshake with a peer that has a token.
async fn welcome(
    shared: &Arc<Shared>,
    stream: TcpStream,
    remote: SocketAddr,
) -> io::Result<Connection> {
    tune(&stream, shared.patience);
    let local = stream.local_addr()?;
    let mut stream = shared.tls.acceptor().accept(stream).await?;
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let peer = crate::quic::peer_of_certificates(certificates);
    let peer = peer.ok_or_else(|| io::Error::other("no libp2p identity"))?;
    let mut token = [0; TOKEN_BYTES];
    stream.read_exact(&mut token).await?;
    if !shared.token_is_good(&peer, &token) {
        return Err(io::Error::other("a token that was not given to this peer"));
    }
    let hold = shared.hold(peer);
    let hold = hold.ok_or_else(|| io::Error::other("not admitted, or too many connections"))?;
    stream.get_mut().1.set_buffer_limit(Some(WRITE_BYTES));
    stream.write_u8(WELCOME).await?;
    stream.flush().await?;
    let ends = Ends { local, remote };
    Ok(Connection::start(
        stream,
        Side::Listener,
        shared.patience,
        ends,
        hold,
    ))
}
