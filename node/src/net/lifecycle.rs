//! The life of links, from the first connection to the last.

use super::control::read_frames;
use super::discovery::AVOID;
use super::event::Pending;
use super::links::Link;
use super::nat::{Connection, Path, Sign};
use super::record::from_libp2p;
use super::streams::{Inbound, Internal, Kind};
use super::swarm::Network;
use super::{NetEvent, vitals};
use crate::bulk::{Pipe, Served};
use futures::StreamExt;
use libp2p::core::ConnectedPoint;
use libp2p::core::transport::PortUse;
use libp2p::swarm::ConnectionId;
use libp2p::{Stream, identity, ping};
use murmurate_net::quic::{BulkConnection, CloseCode};
use murmurate_net::tcp;
use murmurate_protocol::wire::WireVersion;
use murmurate_protocol::{PeerId, SortedSet};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// How long the last frames of a link may delay its end.
const DRAIN_WAIT: Duration = Duration::from_secs(2);

/// How long a bulk connection waits for its link.
const LINK_WAIT: Duration = Duration::from_secs(1);

impl Network {
    /// Handles an established connection.
    pub(super) fn on_connected(
        &mut self,
        theirs: identity::PeerId,
        connection: ConnectionId,
        endpoint: &ConnectedPoint,
    ) {
        self.fallbacks.remove(&connection);
        let peer = from_libp2p(&theirs);
        if peer.is_none() {
            tracing::debug!(peer = %theirs, "refused: its identity is not an Ed25519 key");
        }
        let Some(peer) = peer.filter(|peer| !self.blocked.contains(peer)) else {
            // It was reached, and dialling it again changes nothing.
            self.bootstrap.connected(connection);
            self.swarm.close_connection(connection);
            return;
        };
        if matches!(endpoint, ConnectedPoint::Dialer { port_use, .. } if *port_use == PortUse::New)
        {
            self.nat.probing(connection, theirs);
            return;
        }
        let mut connection = Connection::new(connection, endpoint, Instant::now());
        if let (Path::Relayed(None), ConnectedPoint::Listener { local_addr, .. }) =
            (connection.path, endpoint)
        {
            connection.path = Path::Relayed(self.relay_at(local_addr));
        }
        if connection.path.is_relayed() && !connection.inbound {
            self.nat.relayed(theirs, connection.remote.clone());
        }
        // At a punched hole, both ends have dialled.
        let dials = match endpoint {
            ConnectedPoint::Dialer { role_override, .. } => role_override.is_dialer(),
            ConnectedPoint::Listener { .. } => false,
        };
        self.knock((theirs, peer), connection, dials);
    }

    /// Adds a connection to a link, which it creates if necessary.
    pub(super) fn carry(&mut self, peer: PeerId, theirs: identity::PeerId, connection: Connection) {
        let Self {
            links,
            views,
            counters,
            opener,
            tasks,
            ..
        } = self;
        views.paths.linked(peer, theirs);
        links.connected(peer, theirs, connection, counters, opener, tasks);
        self.settle(peer);
    }

    /// Moves a link to its best connection, releases the connections that it no longer needs, and
    /// tells the driver about a new path.
    pub(super) fn settle(&mut self, peer: PeerId) {
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        let changed = link.settle().filter(|_| link.is_up());
        let in_vain = link.unpunched.is_some();
        let (theirs, superseded) = (link.end.theirs, link.connections.superseded());
        let carrier = link.connections.carrier();
        let direct = carrier.is_some_and(|carrier| !carrier.path.is_relayed());
        let over = direct && self.nat.direct(&theirs);
        if !direct {
            self.nat.indirect(&theirs);
        }
        self.release(theirs, superseded);
        if over {
            self.reconsider();
        }
        if let Some((path, reason)) = changed {
            self.tell(NetEvent::Path {
                peer,
                path,
                reason,
                in_vain,
            });
        }
    }

    /// Lets connections close after their last streams have ended.
    pub(super) fn release(&mut self, theirs: identity::PeerId, connections: Vec<ConnectionId>) {
        for connection in connections {
            let streams = &mut self.swarm.behaviour_mut().streams;
            streams.release(theirs, connection);
        }
    }

    /// Handles a control stream that a peer opened, which shows that the peer uses this connection.
    fn on_controlled(&mut self, peer: PeerId, connection: ConnectionId) {
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        if link.connections.controlled(connection) == Sign::Usual {
            return self.settle(peer);
        }
        let Some(link) = self.links.remove(peer) else {
            return;
        };
        let theirs = link.end.theirs;
        let newest = link.connections.get(connection).cloned();
        let outlived: Vec<_> = link
            .connections
            .ids()
            .filter(|id| *id != connection)
            .collect();
        self.on_link_ended(peer, link);
        for old in outlived {
            self.swarm.close_connection(old);
        }
        if let Some(newest) = newest {
            self.carry(peer, theirs, newest);
        }
    }

    pub(super) fn on_disconnected(&mut self, theirs: identity::PeerId, connection: ConnectionId) {
        let Some(peer) = from_libp2p(&theirs) else {
            return;
        };
        if self.nat.probed(connection) || self.left_the_gate(connection) {
            return;
        }
        match self.links.disconnected(peer, connection) {
            Some(link) => {
                let meant = self.avoided.contains_key(&theirs) || self.blocked.contains(&peer);
                self.nat.gone(&theirs, !meant);
                self.on_link_ended(peer, link);
                self.forget_unlinked(peer, &theirs);
                self.reconsider();
            }
            None => self.settle(peer),
        }
        if self.links.is_empty() {
            self.bootstrap.alone(Instant::now());
        }
    }

    fn on_link_ended(&mut self, peer: PeerId, link: Link) {
        self.outboxes.close(&peer);
        self.vitals.close(&peer);
        self.bulk.link_down(peer);
        self.views.paths.forget(&peer);
        self.views.meters.forget(peer);
        if link.is_up() {
            self.pending.push_back(Pending::Down(peer, link.latch));
        }
    }

    /// Handles a stream that a peer opened.
    pub(super) fn on_stream(&mut self, inbound: Inbound) {
        let Some(peer) = from_libp2p(&inbound.from) else {
            return;
        };
        if inbound.kind == Kind::Gate {
            return self.on_gate_stream(peer, inbound.connection, inbound.stream);
        }
        // A control stream says that the other end is ready, too.
        self.let_in(inbound.connection);
        if self.links.get(&peer).is_none() {
            return;
        }
        match inbound.kind {
            Kind::Gate => {}
            Kind::Control => {
                self.on_controlled(peer, inbound.connection);
                self.on_control_works(peer);
                self.pending.push_back(Pending::Read(peer, inbound.stream));
            }
            Kind::Bulk => self
                .bulk
                .serve(peer, Pipe::of_stream(inbound.stream), &mut self.tasks),
            Kind::Vitals => self.read_vitals(peer, inbound.stream),
        }
    }

    /// Handles an open bulk connection. It may arrive shortly before the link that it belongs to.
    pub(super) fn on_bulk(&mut self, connection: BulkConnection, again: bool) {
        let peer = from_libp2p(&connection.peer());
        match peer.filter(|peer| self.views.paths.offer(*peer, &connection)) {
            Some(peer) => {
                self.views.paths.offer_tcp(&connection);
                let connection = Served::Quic(connection);
                self.bulk
                    .serve_connection(peer, connection, &mut self.tasks);
            }
            None if again => connection.close(CloseCode::Denied),
            None => {
                let network = self.opener.network.clone();
                self.tasks.spawn(async move {
                    tokio::time::sleep(LINK_WAIT).await;
                    let word = Internal::Bulk {
                        connection,
                        again: true,
                    };
                    // The receiver is dropped only when the network has ended.
                    let _ = network.send(word).await;
                });
            }
        }
    }

    pub(super) fn on_tcp(&mut self, connection: tcp::Connection) {
        let peer = from_libp2p(&connection.peer());
        match peer.filter(|peer| self.views.paths.opened_tcp(*peer, &connection)) {
            Some(peer) => {
                let connection = Served::Tcp(connection);
                self.bulk
                    .serve_connection(peer, connection, &mut self.tasks);
            }
            None => connection.session().close(),
        }
    }

    /// Declares the link up at the first sign that the peer speaks the control protocol.
    pub(super) fn on_control_works(&mut self, peer: PeerId) {
        let Some((link, queue)) = self.links.up(&peer) else {
            return;
        };
        let carrier = link.connections.carrier();
        let wire = carrier.map_or(WireVersion::NEWEST, |carrier| carrier.wire);
        self.outboxes
            .open(peer, queue, link.end.tally.clone(), wire);
        self.bulk.link_up(peer, &mut self.tasks);
        let (path, in_vain) = (link.path(), link.unpunched.is_some());
        let role = self.gate.role_of(&peer);
        if !role.trains() {
            self.tell(NetEvent::Bystander { peer, role });
        }
        self.tell(NetEvent::LinkUp(peer));
        if let Some((path, reason)) = path {
            self.tell(NetEvent::Path {
                peer,
                path,
                reason,
                in_vain,
            });
        }
        self.send_vitals(peer);
    }

    pub(super) fn read(&mut self, peer: PeerId, stream: Stream) {
        let frames = self.links.frames.clone();
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        let events = self.events.clone();
        let tally = link.end.tally.clone();
        let task = read_frames(peer, stream, link.latch.clone(), events, (tally, frames));
        link.reads(self.tasks.spawn(task));
    }

    pub(super) fn on_ping(&mut self, event: &ping::Event) {
        let Some(peer) = from_libp2p(&event.peer) else {
            return;
        };
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        // A lost ping counts only on the connection that carries the link.
        let carries = link.connections.carrier().map(|c| c.id) == Some(event.connection);
        match &event.result {
            Ok(_) if !carries => {}
            Ok(rtt) => {
                link.pinged(true);
                let measured = self
                    .views
                    .meters
                    .pinged(peer, *rtt)
                    .filter(|_| link.is_up());
                if let Some((rtt, rate)) = measured {
                    self.tell(NetEvent::Measured { peer, rtt, rate });
                }
            }
            Err(ping::Failure::Unsupported) => {}
            Err(failure) => {
                tracing::debug!(%peer, %failure, "ping");
                if !carries || link.pinged(false) {
                    self.swarm.close_connection(event.connection);
                }
            }
        }
    }

    /// Ends all connections to these peers at once, and refuses new ones until others are named.
    pub(super) fn block(&mut self, peers: SortedSet<PeerId>) {
        for peer in &peers {
            if let Some(link) = self.links.get(peer) {
                let _ = self.swarm.disconnect_peer_id(link.end.theirs);
            }
        }
        self.blocked = peers;
    }

    /// Lets the writer finish, then closes the connections. A timer closes them if the writer is
    /// stuck.
    pub(super) fn disconnect(&mut self, peer: PeerId) {
        let Some(link) = self.links.get(&peer) else {
            return;
        };
        let (end, up) = (link.end.clone(), link.is_up());
        self.avoid(end.theirs, AVOID);
        if !up {
            let _ = self.swarm.disconnect_peer_id(end.theirs);
            return;
        }
        self.outboxes.close(&peer);
        self.tasks.spawn(async move {
            tokio::time::sleep(DRAIN_WAIT).await;
            let close = Internal::Close {
                peer,
                link: end.link,
            };
            let _ = end.opener.network.send(close).await;
        });
    }

    /// The link to a peer, if it still has this number.
    pub(super) fn current(&self, peer: &PeerId, number: u64) -> Option<&Link> {
        self.links.get(peer).filter(|link| link.end.link == number)
    }

    /// Writes the queued frames, closes all connections, and stops.
    pub(super) async fn end(mut self, deadline: Instant, done: oneshot::Sender<()>) {
        for peer in self.links.peers() {
            self.disconnect(peer);
        }
        let closing = async {
            while !self.links.is_empty() {
                tokio::select! {
                    event = self.swarm.select_next_some() => self.on_swarm(event),
                    Some(word) = self.internal.recv() => self.on_internal(word),
                }
            }
        };
        let _ = timeout_at(deadline, closing).await;
        // The remotes receive the close, or notice the silence.
        let _ = timeout_at(deadline, self.views.quic.close()).await;
        drop(self);
        let _ = done.send(());
    }

    fn send_vitals(&mut self, peer: PeerId) {
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        let (queue, board) = (self.vitals.open(peer), self.vitals.clone());
        let task = vitals::write(link.end.clone(), queue, board, link.vitals.moved());
        link.vitals.writes(self.tasks.spawn(task));
    }

    fn read_vitals(&mut self, peer: PeerId, stream: Stream) {
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        let task = vitals::read(peer, stream, self.vitals.clone(), self.events.clone());
        link.vitals.reads(self.tasks.spawn(task));
    }
}
