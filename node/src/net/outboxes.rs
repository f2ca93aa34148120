//! The queues of control frames, one for each linked peer.

use crate::net::control::FRAMES_WAITING_MAX;
use crate::traffic::Tally;
use murmurate_protocol::PeerId;
use murmurate_protocol::limits::FRAME_BYTES_MAX;
use murmurate_protocol::wire::WireVersion;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Why a command is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Busy {
    /// There is no link to that peer.
    #[error("no link to that peer")]
    NotLinked,
    /// The queue is full.
    #[error("the queue is full")]
    Full,
    /// The frame exceeds the maximum length.
    #[error("a frame of {0} bytes is longer than {FRAME_BYTES_MAX}")]
    TooLong(usize),
    /// The network has ended.
    #[error("the network has ended")]
    Ended,
}

/// The frame queue of one peer.
#[derive(Debug)]
struct Outbox {
    queue: mpsc::Sender<Vec<u8>>,
    tally: Tally,
    /// The version of its frames.
    wire: WireVersion,
}

/// The frame queues of all links that are up.
#[derive(Debug, Default)]
pub(super) struct Outboxes {
    queues: Mutex<BTreeMap<PeerId, Outbox>>,
}

impl Outboxes {
    /// Creates a queue. Returns the end for the outbox and the end for the writer.
    pub(super) fn queue() -> (mpsc::Sender<Vec<u8>>, mpsc::Receiver<Vec<u8>>) {
        mpsc::channel(FRAMES_WAITING_MAX)
    }

    /// Adds the queue of a link that is up.
    pub(super) fn open(
        &self,
        peer: PeerId,
        queue: mpsc::Sender<Vec<u8>>,
        tally: Tally,
        wire: WireVersion,
    ) {
        self.lock().insert(peer, Outbox { queue, tally, wire });
    }

    /// The version of the wire that is used with a linked peer.
    pub(super) fn wire(&self, peer: &PeerId) -> Option<WireVersion> {
        self.lock().get(peer).map(|outbox| outbox.wire)
    }

    /// Removes a peer's queue. Its writer ends after it has written the queued frames.
    pub(super) fn close(&self, peer: &PeerId) {
        self.lock().remove(peer);
    }

    /// Queues a frame. A full queue counts as a dropped frame.
    pub(super) fn try_send(&self, to: &PeerId, frame: Vec<u8>) -> Result<(), Busy> {
        let queues = self.lock();
        let outbox = queues.get(to).ok_or(Busy::NotLinked)?;
        outbox.queue.try_send(frame).map_err(|_| {
            outbox.tally.frame_dropped();
            Busy::Full
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PeerId, Outbox>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
