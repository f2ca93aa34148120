//! Bytes, counted where they pass.

use murmurate_protocol::PeerId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Peers whose bytes are told apart; the totals go on beyond.
const COUNTED_PEERS_MAX: usize = 4096;

/// Bytes that went one way or the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes of control frames that came, with their length prefixes.
    pub control_in: u64,
    /// Bytes of control frames that were sent, with their length prefixes.
    pub control_out: u64,
    /// Encoded bytes of slices and states that came, without headers.
    pub bulk_in: u64,
    /// Encoded bytes of slices and states that were sent, without headers.
    pub bulk_out: u64,
    /// Frames that found no room in the queue towards the peer.
    pub frames_dropped: u64,
}

/// Everything that was counted, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterSnapshot {
    /// Over all peers.
    pub total: Traffic,
    /// Peer by peer.
    pub peers: BTreeMap<PeerId, Traffic>,
    /// All bytes that came: of QUIC what its sockets received, packets' headers and acknowledgements
    /// included; of TCP what its streams carried, without encryption.
    pub wire_in: u64,
    /// The same for bytes that were sent.
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

/// The counters of one peer; each count goes into the totals as well.
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

    /// Control bytes came.
    pub(crate) fn control_in(&self, bytes: u64) {
        self.add(|c| &c.control_in, bytes);
    }

    /// Control bytes were handed to the transport.
    pub(crate) fn control_out(&self, bytes: u64) {
        self.add(|c| &c.control_out, bytes);
    }

    /// Encoded bytes came.
    pub(crate) fn bulk_in(&self, bytes: u64) {
        self.add(|c| &c.bulk_in, bytes);
    }

    /// Encoded bytes that came so far.
    pub(crate) fn bulk_in_so_far(&self) -> u64 {
        self.peer.bulk_in.load(Ordering::Relaxed)
    }

    /// Encoded bytes were handed to the transport.
    pub(crate) fn bulk_out(&self, bytes: u64) {
        self.add(|c| &c.bulk_out, bytes);
    }

    /// A frame found no room.
    pub(crate) fn frame_dropped(&self) {
        self.add(|c| &c.frames_dropped, 1);
    }
}

/// Bytes of streams over TCP.
#[derive(Debug, Default)]
pub(crate) struct WireCells {
    /// Read from streams.
    pub(crate) bytes_in: AtomicU64,
    /// Written to streams.
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

    /// What the transport counts into.
    pub(crate) fn wire(&self) -> Arc<WireCells> {
        Arc::clone(&self.wire)
    }

    /// Reads everything.
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
