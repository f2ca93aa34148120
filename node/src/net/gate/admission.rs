//! Lets connections in, or ends them.

use super::handshake::End;
use super::news;
use super::step::{GateError, Passed, Step};
use crate::net::NetEvent;
use crate::net::links::Link;
use crate::net::nat::Connection;
use crate::net::streams::Kind;
use crate::net::swarm::Network;
use libp2p::swarm::ConnectionId;
use libp2p::{Stream, identity};
use murmurate_protocol::PeerId;
use murmurate_protocol::wire::{WireError, WireVersion};
use murmurate_trust::{Chain, Learned, News, Refusal};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long discovery does not dial a peer that is no member.
const AVOID: Duration = Duration::from_secs(600);

impl Network {
    /// Brings a new connection to the gate. `dials` tells that this end begins.
    pub(in crate::net) fn knock(
        &mut self,
        (theirs, peer): (identity::PeerId, PeerId),
        connection: Connection,
        dials: bool,
    ) {
        let id = connection.id;
        let crowded = self
            .gate
            .pending
            .add((theirs, peer), connection, dials, Instant::now());
        if let Some(out) = crowded {
            self.turn_away(out, GateError::Broken);
        }
        if dials {
            let (reply, opened) = oneshot::channel();
            let streams = &mut self.swarm.behaviour_mut().streams;
            streams.open(theirs, id, Kind::Gate, reply);
            let end = self.end_of(id, peer);
            self.tasks.spawn(end.dial(opened));
        }
    }

    fn end_of(&self, connection: ConnectionId, peer: PeerId) -> End {
        End {
            membership: Arc::clone(&self.gate.membership),
            wire: self.gate.wire,
            network: self.opener.network.clone(),
            connection,
            peer,
        }
    }

    /// Handles a stream to the gate: the other end's handshake, or a member's news.
    pub(in crate::net) fn on_gate_stream(
        &mut self,
        peer: PeerId,
        at: ConnectionId,
        stream: Stream,
    ) {
        if let Some(waiting) = self.gate.pending.get_mut(at) {
            // A second stream on the same connection is nothing that a daemon opens.
            if !waiting.dials && !std::mem::replace(&mut waiting.running, true) {
                let end = self.end_of(at, peer);
                self.tasks.spawn(end.listen(stream));
            }
            return;
        }
        let linked = self
            .links
            .get(&peer)
            .is_some_and(|link| link.connections.get(at).is_some());
        let stream = if linked {
            self.gate.tells(peer, stream)
        } else {
            None
        };
        self.read_news(peer, stream);
    }

    /// All that a member had to tell on one stream was read.
    pub(in crate::net) fn on_news_read(&mut self, peer: PeerId) {
        let next = self.gate.told(&peer);
        self.read_news(peer, next);
    }

    fn read_news(&mut self, peer: PeerId, stream: Option<Stream>) {
        if let Some(stream) = stream {
            let reads = (Arc::clone(&self.gate.membership), self.gate.budget.clone());
            let network = self.opener.network.clone();
            self.tasks
                .spawn(news::receive(stream, peer, reads, network));
        }
    }

    /// Handles the progress of a handshake.
    pub(in crate::net) fn on_gate(&mut self, passed: Passed) {
        let Passed { connection, step } = passed;
        match step {
            Step::Admitted {
                chain,
                wire,
                fresh,
                differs,
                heard,
            } => self.admit(connection, (chain, wire), (fresh, differs), heard),
            Step::Ready => self.let_in(connection),
            Step::Failed(error) => self.turn_away(connection, error),
        }
    }

    /// The other end is a member: its streams are accepted from now on.
    fn admit(
        &mut self,
        id: ConnectionId,
        (chain, wire): (Chain, WireVersion),
        (fresh, differs): (bool, bool),
        [one, two]: [oneshot::Sender<()>; 2],
    ) {
        let Some(waiting) = self.gate.pending.get_mut(id).filter(|at| !at.closed) else {
            return;
        };
        waiting.admitted = true;
        waiting.connection.wire = wire;
        let (theirs, peer) = (waiting.theirs, waiting.peer);
        // Before the other end may open streams of members.
        self.gate.allowances.lift(&waiting.connection.remote);
        self.views.quic.prove(theirs);
        self.nat.members.add(theirs);
        self.gate.chains.insert(peer, chain.clone());
        let behaviour = self.swarm.behaviour_mut();
        behaviour.streams.hear(theirs, id, one);
        behaviour.gated.hear(theirs, id, two);
        if fresh {
            self.tell(NetEvent::Register);
            let news = News {
                members: vec![chain],
                ..News::default()
            };
            self.spread(&news, peer);
        }
        if differs {
            self.gate.to_tell.insert(peer);
        }
    }

    /// Both ends accept each other's streams: the connection may carry a link.
    pub(in crate::net) fn let_in(&mut self, id: ConnectionId) {
        let admitted = self.gate.pending.get(id).is_some_and(|at| at.admitted);
        let Some(waiting) = self
            .gate
            .pending
            .remove(id)
            .filter(|at| admitted && !at.closed)
        else {
            return;
        };
        self.bootstrap.connected(id);
        let behaviour = self.swarm.behaviour_mut();
        behaviour.gated.speak(waiting.theirs, id);
        let peer = waiting.peer;
        let to = (waiting.theirs, waiting.connection.wire);
        self.carry(peer, waiting.theirs, waiting.connection);
        if waiting.punched {
            self.on_punched(peer, id);
        }
        if self.gate.to_tell.remove(&peer) {
            let all = self.gate.membership.register().news();
            self.tasks.spawn(news::send(self.opener.clone(), to, all));
        }
    }

    fn turn_away(&mut self, id: ConnectionId, error: GateError) {
        let Some(waiting) = self.gate.pending.remove(id) else {
            return;
        };
        let (peer, theirs) = (waiting.peer, waiting.theirs);
        tracing::debug!(%peer, %error, dialled = waiting.dials, "turned away at the gate");
        self.swarm.close_connection(id);
        self.forget_unlinked(peer, &theirs);
        let join = self.bootstrap.failed(id, Instant::now());
        // Where versions differ, the operators of both ends must know.
        let for_both = matches!(error, GateError::OtherVersion { .. });
        if waiting.dials || for_both {
            if error != GateError::Broken {
                self.avoid(theirs, AVOID);
            }
            let (address, retry_in) = join.map_or((None, None), |(at, wait)| (Some(at), wait));
            self.tell(NetEvent::TurnedAway {
                peer,
                error,
                address,
                retry_in,
            });
        }
    }

    /// Handles the end of a connection at the gate. Returns whether it was one.
    pub(in crate::net) fn left_the_gate(&mut self, id: ConnectionId) -> bool {
        let Some(waiting) = self.gate.pending.get_mut(id) else {
            return false;
        };
        // Its task knows better why.
        waiting.closed = true;
        if !waiting.running || waiting.admitted {
            self.turn_away(id, GateError::Broken);
        }
        true
    }

    /// Ends the connections that took too long.
    pub(in crate::net) fn clear_the_gate(&mut self) {
        for late in self.gate.pending.expired(Instant::now()) {
            self.turn_away(late, GateError::Broken);
        }
    }

    /// Learns what the operator says, and passes it on.
    pub(in crate::net) fn learn(&mut self, news: News) {
        let me = self.gate.membership.me();
        let learned = self.gate.membership.learn(news, &me);
        self.on_learned(me, &learned);
    }

    /// Handles the new part of the news of a member, or of this daemon.
    pub(in crate::net) fn on_learned(&mut self, from: PeerId, learned: &Learned) {
        let fresh = &learned.fresh;
        if learned.slanders && from != self.gate.membership.me() {
            let what = "a certificate, a revocation or a proof that proves nothing, or a directive that \
                        the owner has not signed";
            let error = WireError::Undecodable(what.to_owned());
            self.tell(NetEvent::Malformed { from, error });
        }
        for overused in &learned.overused {
            self.tell(NetEvent::Overused(*overused));
        }
        if !fresh.is_empty() {
            self.tell(NetEvent::Register);
            self.spread(fresh, from);
        }
        for proof in &fresh.bans {
            let (peer, what) = (proof.by(), proof.what());
            self.tell(NetEvent::Banned { peer, what });
        }
        if !fresh.revocations.is_empty() || !fresh.bans.is_empty() || !learned.overused.is_empty() {
            self.dismiss();
        }
    }

    /// Ends the links whose certificates have ended, and forgets what has.
    pub(in crate::net) fn look_at_members(&mut self) {
        if !self.gate.looks(Instant::now()) {
            return;
        }
        self.dismiss();
        if self.gate.membership.tidy() {
            self.tell(NetEvent::Register);
        }
    }

    fn reader(&self, peer: PeerId, link: &Link) -> (identity::PeerId, WireVersion) {
        let wire = self.outboxes.wire(&peer).unwrap_or(WireVersion::NEWEST);
        (link.end.theirs, wire)
    }

    /// Passes news on to all links but one.
    fn spread(&mut self, news: &News, except: PeerId) {
        for peer in self.links.peers() {
            let Some(link) = self.links.get(&peer).filter(|_| peer != except) else {
                continue;
            };
            let (opener, to) = (self.opener.clone(), self.reader(peer, link));
            self.tasks.spawn(news::send(opener, to, vec![news.clone()]));
        }
    }

    /// Tells the next peer the owner's directives again, if it is due and there are some.
    pub(in crate::net) fn repeat_directives(&mut self) {
        let peers = self.links.peers();
        let Some(peer) = self.gate.repeat.next(Instant::now(), &peers) else {
            return;
        };
        let known = self.gate.membership.register().signed_directives();
        if let Some(link) = self.links.get(&peer).filter(|_| !known.is_empty()) {
            let news = News {
                directives: known,
                ..News::default()
            };
            let (opener, to) = (self.opener.clone(), self.reader(peer, link));
            self.tasks.spawn(news::send(opener, to, vec![news]));
        }
    }

    /// Ends the links to peers that are no longer members.
    fn dismiss(&mut self) {
        let gate = &self.gate;
        let chains = gate.chains.iter();
        let out =
            chains.filter_map(|(peer, chain)| Some((*peer, gate.membership.stays(chain).err()?)));
        let out: Vec<(PeerId, Refusal)> = out.collect();
        for (peer, why) in out {
            self.gate.chains.remove(&peer);
            let Some(theirs) = self.links.get(&peer).map(|link| link.end.theirs) else {
                continue;
            };
            self.nat.members.remove(&theirs);
            self.tell(NetEvent::Dismissed(peer, why));
            self.avoid(theirs, AVOID);
            let _ = self.swarm.disconnect_peer_id(theirs);
        }
    }

    /// Forgets a peer that has neither a link nor another connection at the gate.
    pub(in crate::net) fn forget_unlinked(&mut self, peer: PeerId, theirs: &identity::PeerId) {
        if self.links.get(&peer).is_none() && !self.gate.pending.has_admitted(&peer) {
            self.nat.members.remove(theirs);
            self.gate.chains.remove(&peer);
            self.gate.to_tell.remove(&peer);
            self.gate.telling.remove(&peer);
        }
    }
}
