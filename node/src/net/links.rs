//! The links: one per peer, however many connections carry it.

use crate::net::control::{LinkEnd, write_frames};
use crate::net::counters::Counters;
use crate::net::gate::Gate;
use crate::net::handle::Outboxes;
use crate::net::opener::Opener;
use libp2p::identity;
use libp2p::swarm::ConnectionId;
use murmurate_protocol::PeerId;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

/// Control streams of one peer that are read at a time: the live one and one that is being
/// replaced.
const READERS_MAX: usize = 2;

/// Pings in a row that may go unanswered. QUIC notices a silent peer by itself and sooner; over
/// TCP this is what does.
const PINGS_LOST_MAX: u32 = 2;

/// Two ends that dial each other at once do so within this time.
const SIMULTANEOUS: Duration = Duration::from_secs(2);

/// One peer that is connected.
#[derive(Debug)]
pub(super) struct Link {
    /// What its tasks know of it.
    pub(super) end: LinkEnd,
    /// Shut when the link is down.
    pub(super) gate: Gate,
    connections: Vec<ConnectionId>,
    since: Instant,
    /// Where frames go; handed to the outboxes when the link is up.
    queue: Option<mpsc::Sender<Vec<u8>>>,
    writer: AbortHandle,
    readers: VecDeque<AbortHandle>,
    pings_lost: u32,
}

impl Link {
    /// Whether both sides can exchange frames.
    pub(super) fn is_up(&self) -> bool {
        self.queue.is_none()
    }

    /// Notes a reader; the oldest one ends when there are too many.
    pub(super) fn reads(&mut self, reader: AbortHandle) {
        self.readers.retain(|task| !task.is_finished());
        self.readers.push_back(reader);
        if self.readers.len() > READERS_MAX
            && let Some(oldest) = self.readers.pop_front()
        {
            oldest.abort();
        }
    }

    /// A ping came back, or did not; whether the connection is to be given up.
    pub(super) fn pinged(&mut self, answered: bool) -> bool {
        self.pings_lost = if answered { 0 } else { self.pings_lost + 1 };
        self.pings_lost >= PINGS_LOST_MAX
    }
}

/// All links.
#[derive(Debug, Default)]
pub(super) struct Links {
    links: BTreeMap<PeerId, Link>,
    next: u64,
}

impl Links {
    /// A connection is established. The first one makes a link, whose writer tries to open a
    /// control stream.
    pub(super) fn connected(
        &mut self,
        peer: PeerId,
        theirs: identity::PeerId,
        connection: ConnectionId,
        counters: &Counters,
        opener: &Opener,
        tasks: &mut JoinSet<()>,
    ) {
        if let Some(link) = self.links.get_mut(&peer) {
            link.connections.push(connection);
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
        let writer = tasks.spawn(write_frames(end.clone(), frames));
        let link = Link {
            end,
            gate: Gate::open(),
            connections: vec![connection],
            since: Instant::now(),
            queue: Some(queue),
            writer,
            readers: VecDeque::new(),
            pings_lost: 0,
        };
        self.links.insert(peer, link);
    }

    /// A connection is gone; the link comes back when it was the last one.
    pub(super) fn disconnected(&mut self, peer: PeerId, connection: ConnectionId) -> Option<Link> {
        let link = self.links.get_mut(&peer)?;
        link.connections.retain(|id| *id != connection);
        if !link.connections.is_empty() {
            return None;
        }
        self.remove(peer)
    }

    /// The connections of a link that its peer cannot know of any more: nobody dials a peer it is
    /// connected to, but for both dialling at once. So it was restarted, or lost us unnoticed.
    pub(super) fn outlived(&self, peer: &PeerId, now: Instant) -> Vec<ConnectionId> {
        match self.links.get(peer) {
            Some(link) if now.saturating_duration_since(link.since) > SIMULTANEOUS => {
                link.connections.clone()
            }
            _ => Vec::new(),
        }
    }

    /// Ends a link and its tasks.
    pub(super) fn remove(&mut self, peer: PeerId) -> Option<Link> {
        let link = self.links.remove(&peer)?;
        link.writer.abort();
        link.readers.iter().for_each(AbortHandle::abort);
        Some(link)
    }

    /// The control protocol works with this peer; its queue, the first time.
    pub(super) fn up(&mut self, peer: &PeerId) -> Option<(&Link, mpsc::Sender<Vec<u8>>)> {
        let link = self.links.get_mut(peer)?;
        let queue = link.queue.take()?;
        Some((link, queue))
    }

    /// One link.
    pub(super) fn get(&self, peer: &PeerId) -> Option<&Link> {
        self.links.get(peer)
    }

    /// One link, to change.
    pub(super) fn get_mut(&mut self, peer: &PeerId) -> Option<&mut Link> {
        self.links.get_mut(peer)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// All linked peers.
    pub(super) fn peers(&self) -> Vec<PeerId> {
        self.links.keys().copied().collect()
    }
}
