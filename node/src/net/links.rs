//! The links: one per peer, carried by one or more connections; and the queues of control frames, one for
//! each peer.

use crate::net::bucket::Budget;
use crate::net::control::{self, FRAMES_WAITING_MAX, LinkEnd, write_frames};
use crate::net::event::Latch;
use crate::net::nat::{Connection, Connections, Path};
use crate::net::streams::Opener;
use crate::net::vitals::VitalsStreams;
use crate::traffic::{Counters, Tally};
use libp2p::identity;
use libp2p::swarm::ConnectionId;
use murmurate_protocol::limits::FRAME_BYTES_MAX;
use murmurate_protocol::wire::WireVersion;
use murmurate_protocol::{PeerId, SortedMap};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinSet};

/// Control streams of one peer that are read at the same time: the current one and one that is
/// being replaced.
const READERS_MAX: usize = 2;

/// Lost pings in a row before a link is given up. QUIC itself notices a silent peer sooner; TCP
/// depends on this.
const PINGS_LOST_MAX: u32 = 2;

#[derive(Debug)]
pub(super) struct Link {
    pub(super) end: LinkEnd,
    /// Shut when the link is down.
    pub(super) latch: Latch,
    pub(super) connections: Connections,
    /// Why no direct dial and no hole punching succeeded, if they were tried.
    pub(super) unpunched: Option<String>,
    /// The carrying connection, path and reason that were last reported.
    shown: Option<(ConnectionId, Path, String)>,
    /// Tells the writer that another connection carries the link.
    moved: Arc<Notify>,
    /// Queue of outgoing frames. Moves to the outboxes when the link is up.
    queue: Option<mpsc::Sender<Vec<u8>>>,
    writer: AbortHandle,
    readers: VecDeque<AbortHandle>,
    pub(super) vitals: VitalsStreams,
    pings_lost: u32,
}

impl Link {
    /// Returns `true` while both sides can exchange frames.
    pub(super) fn is_up(&self) -> bool {
        self.queue.is_none()
    }

    /// Updates the carrying connection and notifies the writer if it changed. Returns the path and
    /// its reason if one of them changed.
    pub(super) fn settle(&mut self) -> Option<(Path, String)> {
        let carrier = self.connections.carrier()?;
        let (id, path, reason) = (carrier.id, carrier.path, self.reason(carrier));
        let before = self.shown.replace((id, path, reason.clone()));
        if before.as_ref().is_some_and(|(before, ..)| *before != id) {
            self.moved.notify_one();
            self.vitals.move_on();
        }
        let same = before.is_some_and(|(_, p, r)| p == path && r == reason);
        (!same).then_some((path, reason))
    }

    /// The path that was last reported, with its reason.
    pub(super) fn path(&self) -> Option<(Path, String)> {
        let (_, path, reason) = self.shown.as_ref()?;
        Some((*path, reason.clone()))
    }

    fn reason(&self, carrier: &Connection) -> String {
        match (carrier.path, &self.unpunched) {
            (Path::Direct, _) if carrier.inbound => "the other end dialled".to_owned(),
            (Path::Direct, _) => "this end dialled".to_owned(),
            (Path::Punched, _) => "both ends opened holes in their routers".to_owned(),
            (Path::Relayed(_), None) => "a direct connection is being tried".to_owned(),
            (Path::Relayed(_), Some(why)) => format!("there is no direct way: {why}"),
        }
    }

    /// Adds a reader. If there are too many, the oldest one is stopped.
    pub(super) fn reads(&mut self, reader: AbortHandle) {
        self.readers.retain(|task| !task.is_finished());
        self.readers.push_back(reader);
        if self.readers.len() > READERS_MAX
            && let Some(oldest) = self.readers.pop_front()
        {
            oldest.abort();
        }
    }

    /// Counts the result of a ping. Returns whether to give up the connection.
    pub(super) fn pinged(&mut self, answered: bool) -> bool {
        self.pings_lost = if answered { 0 } else { self.pings_lost + 1 };
        self.pings_lost >= PINGS_LOST_MAX
    }
}

#[derive(Debug)]
pub(super) struct Links {
    links: SortedMap<PeerId, Link>,
    next: u64,
    /// What peers may send in frames, also over a link that is closed and opened again.
    pub(super) frames: Budget,
}

impl Links {
    pub(super) fn new() -> Self {
        Self {
            links: SortedMap::new(),
            next: 0,
            frames: control::budget(),
        }
    }

    /// Adds an established connection. The first one creates a link, whose writer tries to open a
    /// control stream.
    pub(super) fn connected(
        &mut self,
        peer: PeerId,
        theirs: identity::PeerId,
        connection: Connection,
        counters: &Counters,
        opener: &Opener,
        tasks: &mut JoinSet<()>,
    ) {
        if let Some(link) = self.links.get_mut(&peer) {
            link.connections.add(connection);
            return;
        }
        self.next += 1;
        let end = LinkEnd {
            peer,
            theirs,
            link: self.next,
            tally: counters.of(peer),
            opener: opener.clone(),
        };
        let (queue, frames) = Outboxes::queue();
        let moved = Arc::new(Notify::new());
        let writer = tasks.spawn(write_frames(end.clone(), frames, Arc::clone(&moved)));
        let link = Link {
            end,
            latch: Latch::open(),
            connections: Connections::new(connection),
            unpunched: None,
            shown: None,
            moved,
            queue: Some(queue),
            writer,
            readers: VecDeque::new(),
            vitals: VitalsStreams::default(),
            pings_lost: 0,
        };
        self.links.insert(peer, link);
    }

    /// Removes a closed connection. Returns the link if this was its last connection.
    pub(super) fn disconnected(&mut self, peer: PeerId, connection: ConnectionId) -> Option<Link> {
        let link = self.links.get_mut(&peer)?;
        if link.connections.remove(connection) {
            self.remove(peer)
        } else {
            None
        }
    }

    pub(super) fn remove(&mut self, peer: PeerId) -> Option<Link> {
        let link = self.links.remove(&peer)?;
        link.writer.abort();
        link.readers.iter().for_each(AbortHandle::abort);
        Some(link)
    }

    /// Marks the link as up. Returns the link and its queue the first time, `None` later.
    pub(super) fn up(&mut self, peer: &PeerId) -> Option<(&Link, mpsc::Sender<Vec<u8>>)> {
        let link = self.links.get_mut(peer)?;
        let queue = link.queue.take()?;
        Some((link, queue))
    }

    pub(super) fn get(&self, peer: &PeerId) -> Option<&Link> {
        self.links.get(peer)
    }

    pub(super) fn get_mut(&mut self, peer: &PeerId) -> Option<&mut Link> {
        self.links.get_mut(peer)
    }

    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// All connected peers, also those whose link is not up yet.
    pub(super) fn peers(&self) -> Vec<PeerId> {
        self.links.keys().copied().collect()
    }
}

/// Why a command is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Busy {
    #[error("no link to that peer")]
    NotLinked,
    #[error("the queue is full")]
    Full,
    /// The frame exceeds the maximum length.
    #[error("a frame of {0} bytes is longer than {FRAME_BYTES_MAX}")]
    TooLong(usize),
    #[error("the network has ended")]
    Ended,
}

/// The frame queue of one peer.
#[derive(Debug)]
struct Outbox {
    queue: mpsc::Sender<Vec<u8>>,
    tally: Tally,
    wire: WireVersion,
}

/// The frame queues of all links that are up.
#[derive(Debug, Default)]
pub(super) struct Outboxes {
    queues: Mutex<SortedMap<PeerId, Outbox>>,
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

    fn lock(&self) -> MutexGuard<'_, SortedMap<PeerId, Outbox>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
