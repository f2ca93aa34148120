//! Inbound connections: they are screened, complete the handshake, are admitted, and go to the
//! transport or to the queue of bulk connections.
//!
//! The handshake happens here and not in the swarm, because only its result shows the kind of a
//! connection. [`Limits`](super::Limits) bounds all resources of a remote that has not proved its
//! identity.

use crate::places::{Place, network_of};
use crate::quic::addr::bare;
use crate::quic::admission::Kind;
use crate::quic::bulk::BulkConnection;
use crate::quic::close::CloseCode;
use crate::quic::counts::count;
use crate::quic::error::Error;
use crate::quic::flights::Watched;
use crate::quic::ids::announced;
use crate::quic::muxer::{Arrival, Muxer};
use crate::quic::port::Port;
use crate::quic::shared::Shared;
use crate::quic::tls::kind_of;
use libp2p::core::transport::ListenerId;
use quinn::Incoming;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use tokio::time::{Instant, sleep, timeout};

/// Binds `addr` and accepts the connections that arrive there.
pub(super) fn listen(
    shared: &Arc<Shared>,
    id: ListenerId,
    addr: SocketAddr,
) -> Result<Arc<Port>, Error> {
    let port = shared.bind(id, addr)?;
    let task = tokio::spawn(accept_all(
        Arc::downgrade(shared),
        Arc::downgrade(&port),
        port.quinn.clone(),
        id,
    ));
    port.accept_with(task.abort_handle());
    shared.listens_at(Arc::clone(&port));
    Ok(port)
}

/// Accepts connections at a port until its socket is shut down or the endpoint is dropped.
async fn accept_all(
    shared: Weak<Shared>,
    port: Weak<Port>,
    quinn: quinn::Endpoint,
    listener: ListenerId,
) {
    while let Some(incoming) = quinn.accept().await {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        // Before the first packet is answered.
        let remote = incoming.remote_address();
        let unseen = !incoming.remote_address_validated() && !shared.registry.reaches(remote);
        let bound = port.upgrade().filter(|_| unseen);
        let watched = bound.map(|bound| bound.flights.watch(remote));
        if let Some((connecting, place)) = screen(&shared, incoming) {
            let work = (connecting, place, watched);
            tokio::spawn(greet(shared, Weak::clone(&port), listener, work));
        }
    }
    if let Some(shared) = shared.upgrade() {
        let inbound = shared.inbound.clone();
        drop(shared);
        // The transport may be gone; then there is no receiver.
        let _ = inbound.send(Arrival::Stopped { listener }).await;
    }
}

/// Decides from the source address and the load whether to answer an attempt.
fn screen(shared: &Shared, incoming: Incoming) -> Option<(quinn::Connecting, Place)> {
    let counts = &shared.counts;
    let source = incoming.remote_address().ip();
    if !shared.arrivals.take(source, Instant::now()) {
        count(&counts.too_often);
        incoming.refuse();
        return None;
    }
    let crowded = shared.handshakes.taken() >= shared.config.limits.handshakes_max / 2;
    if crowded && !incoming.remote_address_validated() {
        count(&counts.retried);
        // This cannot fail, because an unvalidated address may always be asked to retry.
        let _ = incoming.retry();
        return None;
    }
    let kind = announced(&incoming.orig_dst_cid());
    let accepted = match shared.server_for(kind, incoming.remote_address()) {
        Ok(server) => incoming.accept_with(Arc::new(server)),
        // The same settings made the endpoint, so this is not reached.
        Err(_) => incoming.accept(),
    };
    match accepted {
        Ok(connecting) => Some((connecting, shared.handshakes.take(Some(network_of(source))))),
        Err(error) => {
            count(&counts.failed);
            tracing::debug!(%source, %error, "a connection attempt failed");
            None
        }
    }
}

/// Completes the handshake and passes the connection on.
async fn greet(
    shared: Arc<Shared>,
    port: Weak<Port>,
    listener: ListenerId,
    (connecting, place, watched): (quinn::Connecting, Place, Option<Watched>),
) {
    let source = connecting.remote_address();
    let wait = shared.config.handshake_timeout;
    let shaken = place.hold(timeout(wait, connecting)).await;
    let connection = match shaken {
        Some(Ok(Ok(connection))) => connection,
        failed => {
            let (counter, why) = match failed {
                None => (
                    &shared.counts.too_many,
                    "it made room for another one".to_owned(),
                ),
                Some(Ok(Err(error))) => (&shared.counts.failed, error.to_string()),
                Some(_) => (&shared.counts.failed, "it did not end in time".to_owned()),
            };
            count(counter);
            tracing::debug!(%source, %why, "an inbound handshake failed");
            drop(shared);
            // quinn says for a while that the connection is closed, to an address that may be forged.
            sleep(wait).await;
            return drop(watched);
        }
    };
    // Who completes a handshake receives at its address.
    drop(watched);
    match hand_over(&shared, port, listener, connection) {
        Ok(()) => count(&shared.counts.accepted),
        Err(error) => {
            count(&shared.counts.turned_away);
            tracing::debug!(%source, %error, "an inbound connection was turned away");
        }
    }
}

fn hand_over(
    shared: &Shared,
    port: Weak<Port>,
    listener: ListenerId,
    connection: quinn::Connection,
) -> Result<(), Error> {
    // Without one of our protocols TLS would have refused the connection.
    let kind = kind_of(&connection).ok_or(Error::Unsupported("any of our protocols"))?;
    let bound = port.upgrade().ok_or(Error::Closed)?.local;
    let (peer, hold) = shared.settle(&connection, kind, port)?;
    if kind == Kind::Bulk {
        let bulk = BulkConnection::new(connection.clone(), peer, hold);
        return queued(
            &connection,
            shared.bulk.try_send(bulk).is_ok(),
            shared.config.limits.bulk_queue,
        );
    }
    let remote = bare(connection.remote_address());
    let local = match connection.local_ip() {
        Some(ip) => bare(SocketAddr::new(ip, bound.port())),
        None => bound,
    };
    let muxer = Muxer::new(connection.clone(), hold);
    let Some(muxer) = shared.punches.deliver(remote, peer, muxer) else {
        return Ok(());
    };
    let arrival = Arrival::Control {
        listener,
        local,
        remote,
        peer,
        muxer: Box::new(muxer),
    };
    let sent = shared.inbound.try_send(arrival).is_ok();
    queued(&connection, sent, shared.config.limits.inbound_queue)
}

/// Closes a connection if its queue was full.
fn queued(connection: &quinn::Connection, sent: bool, max: usize) -> Result<(), Error> {
    if sent {
        return Ok(());
    }
    CloseCode::TooMany.close(connection);
    Err(Error::Full { max })
}
