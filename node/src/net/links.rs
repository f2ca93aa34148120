//! The links: one per peer, however many connections carry it.

use crate::net::control::{LinkEnd, write_frames};
use crate::net::gate::Gate;
use crate::net::nat::{Connection, Connections, Path};
use crate::net::opener::Opener;
use crate::net::outboxes::Outboxes;
use crate::traffic::Counters;
use libp2p::identity;
use libp2p::swarm::ConnectionId;
use murmurate_protocol::PeerId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinSet};

/// Control streams of one peer that are read at a time: the live one and one that is being
/// replaced.
const READERS_MAX: usize = 2;

/// Pings in a row that may go unanswered. QUIC notices a silent peer by itself and sooner; over
/// TCP this is what does.
const PINGS_LOST_MAX: u32 = 2;

/// One peer that is connected.
#[derive(Debug)]
pub(super) struct Link {
    /// What its tasks know of it.
    pub(super) end: LinkEnd,
    /// Shut when the link is down.
    pub(super) gate: Gate,
    /// What carries it.
    pub(super) connections: Connections,
    /// Why no hole could be punched, if that was tried.
    pub(super) unpunched: Option<String>,
    /// The connection and the path that others know to carry it.
    shown: Option<(ConnectionId, Path, String)>,
    /// Tells the writer that another connection carries it.
    moved: Arc<Notify>,
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

    /// Has the writer move when another connection carries the link than before. The path and the
    /// reason for it when one of them is new.
    pub(super) fn settle(&mut self) -> Option<(Path, String)> {
        let carrier = self.connections.carrier()?;
        let (id, path, reason) = (carrier.id, carrier.path, self.reason(carrier));
        let before = self.shown.replace((id, path, reason.clone()));
        if before.as_ref().is_some_and(|(before, ..)| *before != id) {
            self.moved.notify_one();
        }
        let same = before.is_some_and(|(_, p, r)| p == path && r == reason);
        (!same).then_some((path, reason))
    }

    /// The path that was last settled on.
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
            gate: Gate::open(),
            connections: Connections::new(connection),
            unpunched: None,
            shown: None,
            moved,
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
        match link.connections.remove(connection) {
            true => self.remove(peer),
            false => None,
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
