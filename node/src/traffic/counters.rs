//! Counters of bytes on the network; round-trip time and rate of each link, measured by pings and pushes.

use murmurate_protocol::{PeerId, SortedMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Number of peers with counters of their own. Beyond it only the totals count.
const COUNTED_PEERS_MAX: usize = 4096;

/// Bytes in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Received bytes of control frames, including length prefixes.
    pub control_in: u64,
    /// Sent bytes of control frames, including length prefixes.
    pub control_out: u64,
    /// Received bytes of encoded slices and states, without headers.
    pub bulk_in: u64,
    /// Sent bytes of encoded slices and states, without headers.
    pub bulk_out: u64,
    /// Frames that were dropped because the queue to the peer was full.
    pub frames_dropped: u64,
}

/// All counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterSnapshot {
    /// Totals over all peers.
    pub total: Traffic,
    /// Counters of each peer.
    pub peers: SortedMap<PeerId, Traffic>,
    /// All received bytes. For QUIC: those of its sockets, including packet headers and
    /// acknowledgements. For TCP: those of its streams, without encryption.
    pub wire_in: u64,
    /// All sent bytes, counted in the same way.
    pub wire_out: u64,
}

#[derive(Debug, Default)]
struct Cells {
    control_in: AtomicU64,
    control_out: AtomicU64,
    bulk_in: AtomicU64,
    bulk_out: AtomicU64,
    frames_dropped: AtomicU64,
}

impl Cells {
    fn read(&self) -> Traffic {
        Traffic {
            control_in: self.control_in.load(Ordering::Relaxed),
            control_out: self.control_out.load(Ordering::Relaxed),
            bulk_in: self.bulk_in.load(Ordering::Relaxed),
            bulk_out: self.bulk_out.load(Ordering::Relaxed),
            frames_dropped: self.frames_dropped.load(Ordering::Relaxed),
        }
    }
}

/// The counters of one peer. Each count is also added to the totals.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    peer: Arc<Cells>,
    total: Arc<Cells>,
}

impl Tally {
    fn add(&self, cell: impl Fn(&Cells) -> &AtomicU64, count: u64) {
        cell(&self.peer).fetch_add(count, Ordering::Relaxed);
        cell(&self.total).fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn control_in(&self, bytes: u64) {
        self.add(|c| &c.control_in, bytes);
    }

    /// Counts control bytes that were passed to the transport.
    pub(crate) fn control_out(&self, bytes: u64) {
        self.add(|c| &c.control_out, bytes);
    }

    /// Counts received encoded bytes.
    pub(crate) fn bulk_in(&self, bytes: u64) {
        self.add(|c| &c.bulk_in, bytes);
    }

    /// Encoded bytes received so far.
    pub(crate) fn bulk_in_so_far(&self) -> u64 {
        self.peer.bulk_in.load(Ordering::Relaxed)
    }

    /// Counts encoded bytes that were passed to the transport.
    pub(crate) fn bulk_out(&self, bytes: u64) {
        self.add(|c| &c.bulk_out, bytes);
    }

    pub(crate) fn frame_dropped(&self) {
        self.add(|c| &c.frames_dropped, 1);
    }
}

/// Bytes of streams over TCP.
#[derive(Debug, Default)]
pub(crate) struct WireCells {
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    total: Arc<Cells>,
    peers: Mutex<SortedMap<PeerId, Arc<Cells>>>,
    wire: Arc<WireCells>,
}

impl Counters {
    pub(crate) fn of(&self, peer: PeerId) -> Tally {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let cells = match peers.get(&peer) {
            Some(cells) => Arc::clone(cells),
            None => {
                let cells = Arc::new(Cells::default());
                if peers.len() < COUNTED_PEERS_MAX {
                    peers.insert(peer, Arc::clone(&cells));
                }
                cells
            }
        };
        Tally {
            peer: cells,
            total: Arc::clone(&self.total),
        }
    }

    pub(crate) fn wire(&self) -> Arc<WireCells> {
        Arc::clone(&self.wire)
    }

    pub(crate) fn snapshot(&self) -> CounterSnapshot {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        CounterSnapshot {
            total: self.total.read(),
            peers: peers
                .iter()
                .map(|(peer, cells)| (*peer, cells.read()))
                .collect(),
            wire_in: self.wire.bytes_in.load(Ordering::Relaxed),
            wire_out: self.wire.bytes_out.load(Ordering::Relaxed),
        }
    }
}

/// Weight of the newest push in the smoothed rate. After two or three pushes it is replaced by
/// half.
const NEWEST: f64 = 0.25;

#[derive(Clone, Copy, Debug, Default)]
struct Meter {
    rtt: Option<Duration>,
    rate: Option<f64>,
    queueing: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Round-trip time of the last ping.
    pub(crate) rtt: Option<Duration>,
    /// Bytes per second of pushes, smoothed.
    pub(crate) rate: Option<u64>,
    /// Time that pushes waited for their turn, smoothed.
    pub(crate) queueing: Option<Duration>,
}

fn smoothed(old: Option<f64>, newest: f64) -> f64 {
    old.map_or(newest, |old| NEWEST.mul_add(newest - old, old))
}

impl Meter {
    fn read(self) -> Option<(Duration, u64)> {
        Some((self.rtt?, self.rate.unwrap_or(0.0) as u64))
    }
}

#[derive(Debug, Default)]
pub(crate) struct LinkMeters {
    links: Mutex<SortedMap<PeerId, Meter>>,
}

impl LinkMeters {
    /// Adds the round-trip time of a ping. Returns it with the current rate in bytes per second.
    pub(crate) fn pinged(&self, peer: PeerId, rtt: Duration) -> Option<(Duration, u64)> {
        self.change(peer, |meter| meter.rtt = Some(rtt))
    }

    /// Adds an acknowledged push with its duration.
    pub(crate) fn pushed(
        &self,
        peer: PeerId,
        bytes: u64,
        took: Duration,
    ) -> Option<(Duration, u64)> {
        let newest = bytes as f64 / took.as_secs_f64().max(1e-6);
        self.change(peer, |meter| {
            meter.rate = Some(smoothed(meter.rate, newest));
        })
    }

    /// Adds the time that a push waited for its turn.
    pub(crate) fn queued(&self, peer: PeerId, waited: Duration) {
        self.change(peer, |meter| {
            meter.queueing = Some(smoothed(meter.queueing, waited.as_secs_f64()));
        });
    }

    pub(crate) fn read(&self, peer: PeerId) -> Reading {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let meter = links.get(&peer).copied().unwrap_or_default();
        let seconds = |s| Duration::try_from_secs_f64(s).unwrap_or_default();
        Reading {
            rtt: meter.rtt,
            rate: meter.rate.map(|rate| rate as u64),
            queueing: meter.queueing.map(seconds),
        }
    }

    /// Removes a link that is gone.
    pub(crate) fn forget(&self, peer: PeerId) {
        self.links
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&peer);
    }

    fn change(&self, peer: PeerId, f: impl FnOnce(&mut Meter)) -> Option<(Duration, u64)> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let meter = links.entry(peer).or_default();
        f(meter);
        meter.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_smoothed_and_waits_for_a_ping() {
        let meters = LinkMeters::default();
        let peer = PeerId::from_bytes([1; 32]);
        let second = Duration::from_secs(1);
        assert_eq!(meters.pushed(peer, 1000, second), None);
        let rtt = Duration::from_millis(3);
        assert_eq!(meters.pinged(peer, rtt), Some((rtt, 1000)));
        assert_eq!(meters.pushed(peer, 2000, second), Some((rtt, 1250)));
        meters.queued(peer, second);
        meters.queued(peer, Duration::ZERO);
        let read = meters.read(peer);
        assert_eq!((read.rtt, read.rate), (Some(rtt), Some(1250)));
        assert_eq!(read.queueing, Some(Duration::from_millis(750)));
        meters.forget(peer);
        assert_eq!(meters.read(peer), Reading::default());
        assert_eq!(meters.pinged(peer, rtt), Some((rtt, 0)));
    }
}
