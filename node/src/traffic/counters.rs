//! Counters of bytes on the network.

use murmurate_protocol::PeerId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
    pub peers: BTreeMap<PeerId, Traffic>,
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

    /// Counts received control bytes.
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

    /// Counts a dropped frame.
    pub(crate) fn frame_dropped(&self) {
        self.add(|c| &c.frames_dropped, 1);
    }
}

/// Bytes of streams over TCP.
#[derive(Debug, Default)]
pub(crate) struct WireCells {
    /// Bytes read from streams.
    pub(crate) bytes_in: AtomicU64,
    /// Bytes written to streams.
    pub(crate) bytes_out: AtomicU64,
}

/// All counters of one daemon.
#[derive(Debug, Default)]
pub struct Counters {
    total: Arc<Cells>,
    peers: Mutex<BTreeMap<PeerId, Arc<Cells>>>,
    wire: Arc<WireCells>,
}

impl Counters {
    /// The counters of one peer.
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

    /// The counters of the transport.
    pub(crate) fn wire(&self) -> Arc<WireCells> {
        Arc::clone(&self.wire)
    }

    /// Reads all counters.
    pub fn snapshot(&self) -> CounterSnapshot {
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
