//! The connections over TCP to all linked peers: offered, dialled, measured, and left when they
//! break.

use crate::bulk::Way;
use crate::net::record::from_libp2p;
use crate::net::streams::Internal;
use crate::net::ways::chooser::{Chooser, QuicPath};
use libp2p::identity;
use murmurate_net::quic::{BulkConnection, RecvStream};
use murmurate_net::tcp::{BulkChoice, Connection, Endpoint, Error, Offer};
use murmurate_protocol::{PeerId, SortedMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Time between two looks at what the system knows of a connection.
const LOOK_EVERY: Duration = Duration::from_secs(1);

struct Slot {
    chooser: Chooser,
    /// The newest offer of the peer, and the address that it came from.
    offer: Option<(Offer, SocketAddr)>,
    open: Option<Connection>,
    dialing: bool,
    looked: Option<(Instant, u32, u32)>,
}

/// The view of one peer's choice.
#[derive(Clone, Debug, Default)]
pub(in crate::net) struct WayView {
    /// Set while new streams go over TLS.
    pub(in crate::net) tls: bool,
    pub(in crate::net) reason: Option<String>,
    pub(in crate::net) retry_in: Option<Duration>,
}

/// All peers. Clones share their state.
#[derive(Clone)]
pub(in crate::net) struct Ways {
    choice: BulkChoice,
    port: Option<u16>,
    tcp: Option<Endpoint>,
    network: mpsc::Sender<Internal>,
    /// Set once the operator was told that no port can be opened.
    told: Arc<AtomicBool>,
    slots: Arc<Mutex<SortedMap<PeerId, Slot>>>,
}

impl Ways {
    /// Starts without peers. Without an endpoint everything stays on QUIC.
    pub(in crate::net) fn new(
        (choice, port): (BulkChoice, Option<u16>),
        tcp: Option<Endpoint>,
        network: mpsc::Sender<Internal>,
    ) -> Self {
        Self {
            choice,
            port,
            tcp,
            network,
            told: Arc::default(),
            slots: Arc::default(),
        }
    }

    /// True where a bulk connection is made once it pays, and not because the configuration asks for one.
    pub(in crate::net) fn may_wait(&self) -> bool {
        self.choice == BulkChoice::Auto
    }

    /// The endpoint of connections over TCP.
    pub(in crate::net) fn endpoint(&self) -> Option<&Endpoint> {
        self.tcp.as_ref()
    }

    #[cfg(test)]
    pub(in crate::net) fn break_open(&self, peer: &PeerId) {
        let slots = self.slots();
        let open = slots.get(peer).and_then(|slot| slot.open.as_ref());
        open.unwrap().session().close();
    }

    fn slots(&self) -> MutexGuard<'_, SortedMap<PeerId, Slot>> {
        // Each change is complete before the lock is released.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::net) fn linked(&self, peer: PeerId) {
        self.slots().entry(peer).or_insert_with(|| Slot {
            chooser: Chooser::new(self.choice),
            offer: None,
            open: None,
            dialing: false,
            looked: None,
        });
    }

    /// Changes the state of a peer, if it is linked.
    fn with<T>(&self, peer: PeerId, change: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        self.slots().get_mut(&peer).map(change)
    }

    pub(in crate::net) fn forget(&self, peer: &PeerId, theirs: &identity::PeerId) {
        let slot = self.slots().remove(peer);
        if let Some(tcp) = &self.tcp {
            tcp.forget(theirs);
        }
        drop(slot);
    }

    /// Opens a port, and sends an offer on a bulk connection that the peer dialled. Unless a port is configured, it
    /// has the number of the UDP port if that is free, so that a firewall can have one rule for both.
    pub(in crate::net) fn offer(&self, to: &BulkConnection, listening: &[SocketAddr]) {
        let Some(tcp) = self.tcp.clone() else {
            return;
        };
        let remote = to.remote_address();
        if !tcp.is_listening_for(remote.ip())
            && let Err(error) = listen(&tcp, remote.ip(), listening, self.port)
            && !self.told.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                "{error}: slices come over QUIC alone; set network.bulk_port to a free port, or \
                 network.bulk = \"quic\""
            );
        }
        // Who dialled has opened a port too, because its connections come from that address.
        if to.is_dialer() {
            return;
        }
        let Some(offer) = tcp.offer(to.peer(), remote) else {
            return;
        };
        let to = to.clone();
        tokio::spawn(async move {
            if !offer.send(&to).await {
                tracing::debug!(peer = %to.peer(), "the offer of TCP could not be sent");
            }
        });
    }

    /// Reads an offer of the peer.
    pub(in crate::net) fn offered(&self, from: &BulkConnection, stream: RecvStream) {
        let Some(peer) = from_libp2p(&from.peer()).filter(|_| self.tcp.is_some()) else {
            return;
        };
        let (ways, from) = (self.clone(), from.clone());
        tokio::spawn(async move {
            match Offer::receive(stream).await {
                Some(offer) => {
                    let at = from.remote_address();
                    ways.with(peer, |slot| slot.offer = Some((offer, at)));
                    ways.reconsider(peer, from.peer());
                }
                None => tracing::debug!(%peer, "an offer of TCP that cannot be read"),
            }
        });
    }

    /// The connection over TCP for the next stream, if that is the chosen way. Dials it if it is
    /// due.
    pub(in crate::net) fn chosen(
        &self,
        peer: PeerId,
        theirs: identity::PeerId,
    ) -> Option<Connection> {
        self.tcp.as_ref()?;
        self.reconsider(peer, theirs);
        self.with(peer, |slot| {
            let tls = slot.chooser.way() == Way::Tls;
            slot.open.clone().filter(|_| tls)
        })?
    }

    /// Leaves a connection that ended, and dials one if it is due.
    fn reconsider(&self, peer: PeerId, theirs: identity::PeerId) {
        let now = Instant::now();
        let dial = self.with(peer, |slot| {
            let ended = slot.open.as_ref().and_then(|open| open.session().ended());
            if let Some(why) = ended {
                slot.open = None;
                slot.chooser.failed(now, format!("tls broke: {why}"));
            }
            if slot.open.is_some() {
                slot.chooser.is_open(now);
                return None;
            }
            let due = !slot.dialing && slot.chooser.wants_tls(now);
            let offer = slot.offer.filter(|_| due)?;
            slot.dialing = true;
            Some(offer)
        });
        if let Some((offer, at)) = dial.flatten() {
            tokio::spawn(self.clone().dial(peer, theirs, offer, at));
        }
    }

    async fn dial(self, peer: PeerId, theirs: identity::PeerId, offer: Offer, at: SocketAddr) {
        let Some(tcp) = &self.tcp else {
            return;
        };
        let dialed = tcp.dial(theirs, at, offer).await;
        let now = Instant::now();
        // The peer may have been forgotten meanwhile.
        let known = self.with(peer, |slot| {
            slot.dialing = false;
            if let Err(error) = &dialed {
                tracing::debug!(%peer, %error, "no bulk connection over TCP");
                slot.chooser.failed(now, error.to_string());
            }
        });
        if let (Ok(connection), Some(())) = (dialed, known) {
            let word = Internal::Tcp { connection };
            // The receiver is dropped only when the network has ended.
            let _ = self.network.send(word).await;
        }
    }

    /// Takes a connection that either end dialled. The newest is used.
    pub(in crate::net) fn opened(&self, peer: PeerId, connection: Connection) {
        let now = Instant::now();
        self.with(peer, |slot| {
            slot.open = Some(connection);
            slot.looked = None;
            slot.chooser.is_open(now);
        });
    }

    pub(in crate::net) fn pushed(
        &self,
        peer: PeerId,
        way: Way,
        (bytes, took): (u64, Duration),
        quic: Option<&BulkConnection>,
    ) {
        if self.tcp.is_none() {
            return;
        }
        let now = Instant::now();
        self.with(peer, |slot| {
            if let Some(stats) = quic.map(BulkConnection::stats) {
                slot.chooser.sees(QuicPath {
                    min_rtt: stats.min_rtt,
                    packet: stats.mtu,
                });
            }
            slot.chooser.pushed(now, way, bytes, took);
            if way == Way::Tls {
                look(slot, now);
            }
        });
    }

    /// Why streams to a peer take their way.
    pub(in crate::net) fn view(&self, peer: &PeerId) -> WayView {
        let now = Instant::now();
        let slots = self.slots();
        let Some(slot) = slots.get(peer) else {
            return WayView::default();
        };
        let open = slot
            .open
            .as_ref()
            .is_some_and(|open| open.session().ended().is_none());
        let retry_at = slot.chooser.retry_at().filter(|_| !open);
        WayView {
            tls: open && slot.chooser.way() == Way::Tls,
            reason: slot.chooser.reason().map(str::to_owned),
            retry_in: retry_at.map(|at| at.saturating_duration_since(now)),
        }
    }
}

/// Opens a port for the family of an address, if QUIC listens there.
fn listen(
    tcp: &Endpoint,
    remote: IpAddr,
    listening: &[SocketAddr],
    port: Option<u16>,
) -> Result<(), Error> {
    let v4 = remote.to_canonical().is_ipv4();
    let Some(udp) = listening.iter().find(|addr| addr.is_ipv4() == v4) else {
        return Ok(());
    };
    let at = |port| SocketAddr::new(udp.ip(), port);
    let opened = match port {
        Some(port) => tcp.listen(at(port)),
        None => tcp.listen(*udp).or_else(|_| tcp.listen(at(0))),
    };
    let addr = opened?;
    tracing::debug!(%addr, "bulk connections over TCP are accepted");
    Ok(())
}

/// Asks the system how many segments TCP sent again.
fn look(slot: &mut Slot, now: Instant) {
    let due = slot
        .looked
        .is_none_or(|(at, ..)| now.saturating_duration_since(at) >= LOOK_EVERY);
    let Some(info) = slot
        .open
        .as_ref()
        .filter(|_| due)
        .and_then(Connection::info)
    else {
        return;
    };
    let (sent, again) = match slot.looked {
        Some((_, sent, again)) => (
            info.sent.wrapping_sub(sent),
            info.resent.wrapping_sub(again),
        ),
        None => (info.sent, info.resent),
    };
    slot.looked = Some((now, info.sent, info.resent));
    slot.chooser.resent(now, sent, again);
}

/// Passes connections over TCP that peers dialled to the network's task.
pub(in crate::net) async fn accept(tcp: Endpoint, network: mpsc::Sender<Internal>) {
    while let Some(connection) = tcp.accept().await {
        if network.send(Internal::Tcp { connection }).await.is_err() {
            return;
        }
    }
}
