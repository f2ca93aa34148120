//! The path of bulk streams to each linked peer: a bulk connection beside the link's QUIC
//! connection, or streams of the link if a bulk connection is impossible (a relay, TCP, or a peer
//! without the bulk protocol).
//!
//! The first bytes go over streams of the link: a bulk connection costs a handshake, and a search for the
//! largest packet, which small models do not earn back. Once there is more to send, the path is found by
//! trying, remembered, and tried again later. The end that pushes first dials. If both dial at once, both use
//! the connection that the smaller PeerId dialled; the other one ends when it is idle.

use super::bucket::doubled;
use super::record::from_libp2p;
use super::streams::{Internal, Kind, Opener};
use super::ways::Ways;
use crate::bulk::{BulkTransport, Pipe, Served, Way};
use futures::FutureExt;
use futures::future::BoxFuture;
use libp2p::identity;
use murmurate_net::quic::{
    BulkConnection, CloseCode, ConnectionError, Endpoint, Error, RecvStream,
};
use murmurate_net::tcp;
use murmurate_protocol::{PeerId, SortedMap};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How long a push waits for a new bulk connection before it takes a stream of the link.
const DIAL_PATIENCE: Duration = Duration::from_secs(1);

/// Smallest send window of a bulk connection in bytes: 1 Gbit/s for 34 ms.
const SEND_WINDOW_MIN: u64 = 4 << 20;

/// Largest send window of a bulk connection in bytes; see `WINDOWS` in `quic`.
const SEND_WINDOW_MAX: u64 = 64 << 20;

/// Bytes to a peer that go over streams of its link before a bulk connection is dialled.
const LINK_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug)]
struct Slot {
    theirs: identity::PeerId,
    path: watch::Sender<Path>,
    /// Bytes that streams of the link carried, or were opened for, because there were few.
    few: AtomicU64,
}

impl Slot {
    /// Counts `bytes` towards [`LINK_BYTES_MAX`]. False once a bulk connection is there, tried, or due.
    fn takes_link(&self, bytes: u64) -> bool {
        let untried = matches!(*self.path.borrow(), Path::Unknown);
        let before = self
            .few
            .fetch_add(bytes.min(LINK_BYTES_MAX), Ordering::Relaxed);
        untried && before.saturating_add(bytes) < LINK_BYTES_MAX
    }
}

/// The paths to all linked peers. Clones share their state.
#[derive(Clone)]
pub(super) struct Paths {
    quic: Endpoint,
    opener: Opener,
    ways: Ways,
    slots: Arc<Mutex<SortedMap<PeerId, Arc<Slot>>>>,
}

impl Paths {
    /// Starts without linked peers.
    pub(super) fn new(quic: Endpoint, opener: Opener, ways: Ways) -> Self {
        Self {
            quic,
            opener,
            ways,
            slots: Arc::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn break_tls(&self, peer: &PeerId) {
        self.ways.break_open(peer);
    }

    /// The endpoint of connections over TCP, if there may be some.
    pub(super) fn tcp(&self) -> Option<&tcp::Endpoint> {
        self.ways.endpoint()
    }

    /// Offers TCP on a bulk connection that a peer dialled.
    pub(super) fn offer_tcp(&self, connection: &BulkConnection) {
        self.ways.offer(connection, &self.quic.listening());
    }

    /// Stores a connection over TCP that either end dialled. Returns false if the peer is not
    /// linked.
    pub(super) fn opened_tcp(&self, peer: PeerId, connection: &tcp::Connection) -> bool {
        let linked = self.slot(&peer).is_some();
        if linked {
            self.ways.opened(peer, connection.clone());
        }
        linked
    }

    pub(super) fn linked(&self, peer: PeerId, theirs: identity::PeerId) {
        self.ways.linked(peer);
        self.slots().entry(peer).or_insert_with(|| {
            let path = watch::Sender::new(Path::Unknown);
            let few = AtomicU64::new(0);
            Arc::new(Slot { theirs, path, few })
        });
    }

    /// Removes a peer whose last connection is closed, or whose link belongs to an earlier life of
    /// it.
    pub(super) fn forget(&self, peer: &PeerId) {
        let Some(slot) = self.slots().remove(peer) else {
            return;
        };
        self.ways.forget(peer, &slot.theirs);
        if let Path::Direct { connection, .. } = &*slot.path.borrow() {
            connection.close(CloseCode::Done);
        }
    }

    /// Stores a bulk connection that either end dialled. Returns false if the peer is not linked.
    pub(super) fn offer(&self, peer: PeerId, connection: &BulkConnection) -> bool {
        let Some(slot) = self.slot(&peer) else {
            return false;
        };
        let ours = self.quic.local_peer_id();
        // Both ends prefer the connection that the peer with the smaller id dialled.
        let preferred = |c: &BulkConnection| c.is_dialer() == (ours < slot.theirs);
        slot.path.send_if_modified(|path| {
            let failures = match path {
                Path::Direct {
                    connection: held, ..
                } if held.close_reason().is_none() => {
                    if same(held, connection) || (preferred(held) && !preferred(connection)) {
                        return false;
                    }
                    0
                }
                Path::Dialing { failures } | Path::Stream { failures, .. } => *failures,
                Path::Direct { failures, .. } => *failures,
                Path::Unknown => 0,
            };
            *path = Path::Direct {
                connection: connection.clone(),
                since: Instant::now(),
                failures,
            };
            true
        });
        true
    }

    /// The transports to all linked peers, for the status.
    pub(super) fn views(&self) -> SortedMap<PeerId, PathView> {
        let now = Instant::now();
        let slots = self.slots();
        let view = |slot: &Slot| match &*slot.path.borrow() {
            Path::Unknown if slot.few.load(Ordering::Relaxed) > 0 => PathView {
                path: BulkPath::Stream,
                reason: Some("there is little to send so far".to_owned()),
                retry_in: None,
            },
            Path::Unknown | Path::Dialing { failures: 0 } => PathView::default(),
            Path::Dialing { .. } => PathView {
                path: BulkPath::Stream,
                reason: Some("a bulk connection is being tried again".to_owned()),
                retry_in: None,
            },
            Path::Direct { .. } => PathView {
                path: BulkPath::Quic,
                ..PathView::default()
            },
            Path::Stream {
                reason, retry_at, ..
            } => PathView {
                path: BulkPath::Stream,
                reason: Some(reason.clone()),
                retry_in: Some(retry_at.saturating_duration_since(now)),
            },
        };
        let both = |peer: &PeerId, slot: &Slot| {
            let (view, way) = (view(slot), self.ways.view(peer));
            match view.path {
                BulkPath::Quic => PathView {
                    path: if way.tls {
                        BulkPath::Tls
                    } else {
                        BulkPath::Quic
                    },
                    reason: way.reason,
                    retry_in: way.retry_in,
                },
                _ => view,
            }
        };
        slots
            .iter()
            .map(|(peer, slot)| (*peer, both(peer, slot)))
            .collect()
    }

    fn slots(&self) -> MutexGuard<'_, SortedMap<PeerId, Arc<Slot>>> {
        // Each change is a single insert or remove.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, peer: &PeerId) -> Option<Arc<Slot>> {
        self.slots().get(peer).cloned()
    }

    /// The bulk connection to use, dialled if that is due; `None` if the push must use the link.
    async fn direct(&self, slot: &Arc<Slot>) -> Option<BulkConnection> {
        let mut dial = false;
        slot.path.send_if_modified(|path| {
            dial = path.advance(Instant::now());
            dial
        });
        if dial {
            // Dialling has its own task, so a push that is given up does not cancel the dial.
            tokio::spawn(self.clone().dial(Arc::clone(slot)));
        }
        let mut changes = slot.path.subscribe();
        let settled = changes.wait_for(|path| !matches!(path, Path::Dialing { .. }));
        match timeout(DIAL_PATIENCE, settled).await {
            Ok(Ok(path)) => match &*path {
                Path::Direct { connection, .. } => Some(connection.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    async fn dial(self, slot: Arc<Slot>) {
        let dialed = self.quic.dial_bulk_beside(slot.theirs).await;
        match (dialed, from_libp2p(&slot.theirs)) {
            (Ok(connection), Some(peer)) => {
                if self.offer(peer, &connection) {
                    let word = Internal::Bulk {
                        connection,
                        again: false,
                    };
                    // The receiver is dropped only when the network has ended.
                    let _ = self.opener.network.send(word).await;
                }
            }
            // Only peers with Ed25519 identities can be linked.
            (Ok(connection), None) => connection.close(CloseCode::Done),
            (Err(error), _) => {
                tracing::debug!(peer = %slot.theirs, %error, "no bulk connection");
                slot.path
                    .send_modify(|path| path.dial_failed(&error, Instant::now()));
            }
        }
    }

    async fn open(self, to: PeerId, bytes: u64) -> io::Result<Pipe> {
        let slot = self.slot(&to).ok_or(io::ErrorKind::NotConnected)?;
        if self.ways.may_wait() && slot.takes_link(bytes) {
            return Ok(Pipe::of_stream(
                self.opener.open(slot.theirs, Kind::Bulk).await?,
            ));
        }
        if let Some(connection) = self.ways.chosen(to, slot.theirs)
            && let Ok(halves) = connection.session().open_bi()
        {
            return Ok(Pipe::of_tls(halves));
        }
        // The connection may have ended unnoticed. Then dial once more.
        for _ in 0..2 {
            let Some(connection) = self.direct(&slot).await else {
                break;
            };
            connection.set_send_window(send_window(connection.stats().congestion_window));
            if let Ok(halves) = connection.open_bi().await {
                return Ok(Pipe::of_quic(halves));
            }
        }
        let stream = self.opener.open(slot.theirs, Kind::Bulk).await?;
        Ok(Pipe::of_stream(stream))
    }
}

impl BulkTransport for Paths {
    fn open(&self, to: PeerId, bytes: u64) -> BoxFuture<'static, io::Result<Pipe>> {
        self.clone().open(to, bytes).boxed()
    }

    fn keeps(&self, connection: &Served) -> bool {
        let connection = match connection {
            Served::Quic(connection) => connection,
            Served::Tcp(connection) => return connection.session().ended().is_none(),
        };
        let slot = from_libp2p(&connection.peer()).and_then(|peer| self.slot(&peer));
        slot.is_some_and(|slot| match &*slot.path.borrow() {
            Path::Direct {
                connection: held, ..
            } => same(held, connection),
            _ => false,
        })
    }

    fn told(&self, from: &BulkConnection, stream: RecvStream) {
        self.ways.offered(from, stream);
    }

    fn measured(&self, to: PeerId, way: Way, bytes: u64, took: Duration) {
        let slot = self.slot(&to);
        let connection = slot.and_then(|slot| match &*slot.path.borrow() {
            Path::Direct { connection, .. } => Some(connection.clone()),
            _ => None,
        });
        self.ways
            .pushed(to, way, (bytes, took), connection.as_ref());
    }
}

/// Bytes that a connection may hold unacknowledged: twice the congestion window, so that it does
/// not run dry while the window grows. A larger send window would only take memory and delay small
/// messages.
fn send_window(congestion_window: u64) -> u64 {
    congestion_window
        .saturating_mul(2)
        .clamp(SEND_WINDOW_MIN, SEND_WINDOW_MAX)
}

fn same(a: &BulkConnection, b: &BulkConnection) -> bool {
    a.quinn().stable_id() == b.quinn().stable_id()
}

/// A connection that ends sooner than this was refused by the remote.
const SETTLED: Duration = Duration::from_secs(2);

/// Pause after the first failure; it doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_secs(5);

const PAUSE_MAX: Duration = Duration::from_secs(300);

/// Pause if there is no QUIC connection to dial beside. Checking again is cheap, and hole punching
/// may have made one.
const PAUSE_NO_PATH: Duration = Duration::from_secs(1);

/// The transport of bulk streams to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BulkPath {
    /// No stream has been opened yet.
    #[default]
    Unused,
    /// A QUIC connection of their own.
    Quic,
    /// A connection of their own over TLS and TCP.
    Tls,
    /// Streams of the link.
    Stream,
}

/// The transport to one peer, for the status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathView {
    /// The transport.
    pub path: BulkPath,
    /// Why it is this one, if there was a choice or a failure.
    pub reason: Option<String>,
    /// Time until a better one is tried again, by the first push after it.
    pub retry_in: Option<Duration>,
}

#[derive(Clone, Debug)]
pub(super) enum Path {
    Unknown,
    Dialing {
        failures: u32,
    },
    Direct {
        connection: BulkConnection,
        since: Instant,
        failures: u32,
    },
    Stream {
        reason: String,
        failures: u32,
        retry_at: Instant,
    },
}

impl Path {
    /// The path after a failure, with the time of the next attempt.
    fn failed(reason: String, failures: u32, retry_at: Instant) -> Self {
        Self::Stream {
            reason,
            failures,
            retry_at,
        }
    }

    /// Updates the path before it is used. Returns whether the caller must dial.
    pub(super) fn advance(&mut self, now: Instant) -> bool {
        let next = match self {
            Self::Unknown => Self::Dialing { failures: 0 },
            Self::Stream {
                failures, retry_at, ..
            } if *retry_at <= now => Self::Dialing {
                failures: *failures,
            },
            Self::Direct {
                connection,
                since,
                failures,
            } => match connection.close_reason() {
                None => return false,
                Some(end) if now.saturating_duration_since(*since) < SETTLED => {
                    let failures = *failures + 1;
                    Self::failed(turned_away(&end), failures, now + pause_after(failures))
                }
                Some(_) => Self::Dialing { failures: 0 },
            },
            Self::Dialing { .. } | Self::Stream { .. } => return false,
        };
        *self = next;
        matches!(self, Self::Dialing { .. })
    }

    /// Records a failed dial, unless a connection arrived meanwhile.
    pub(super) fn dial_failed(&mut self, error: &Error, now: Instant) {
        let Self::Dialing { failures } = self else {
            return;
        };
        *self = match error {
            Error::NoPath(_) => {
                let reason = "there is no QUIC connection to it: it is reached over TCP or a relay";
                Self::failed(reason.to_owned(), *failures, now + PAUSE_NO_PATH)
            }
            Error::Unsupported(_) => {
                Self::failed(error.to_string(), *failures + 1, now + PAUSE_MAX)
            }
            _ => {
                let failures = *failures + 1;
                Self::failed(error.to_string(), failures, now + pause_after(failures))
            }
        };
    }
}

fn turned_away(end: &ConnectionError) -> String {
    let why = match CloseCode::of(end) {
        Some(CloseCode::Denied) => "it does not admit us".to_owned(),
        Some(CloseCode::TooMany) => "it has too many connections".to_owned(),
        _ => end.to_string(),
    };
    format!("the peer closed the bulk connection at once: {why}")
}

fn pause_after(failures: u32) -> Duration {
    doubled(PAUSE_MIN, PAUSE_MAX, failures)
}

#[cfg(test)]
mod tests;
