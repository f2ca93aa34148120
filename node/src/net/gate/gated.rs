//! A behaviour that says nothing on a connection until both of its ends have passed the gate, and the peers that have
//! passed on a connection that is still there.

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::core::upgrade::{InboundUpgrade, UpgradeInfo};
use libp2p::swarm::handler::{
    ConnectionEvent, FullyNegotiatedInbound, InboundUpgradeSend, ListenUpgradeError,
};
use libp2p::swarm::{
    ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm,
    NetworkBehaviour, NotifyHandler, SubstreamProtocol, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm,
};
use libp2p::{Multiaddr, PeerId, Stream};
use murmurate_protocol::SortedSet;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::oneshot;

/// The connected members. The relay and the handlers of connections share it with the network's
/// task.
#[derive(Clone, Debug, Default)]
pub(in crate::net) struct Members(Arc<Mutex<SortedSet<PeerId>>>);

impl Members {
    pub(in crate::net) fn add(&self, peer: PeerId) {
        self.lock().insert(peer);
    }

    /// Removes a peer whose last connection is closed, or that was revoked.
    pub(in crate::net) fn remove(&self, peer: &PeerId) {
        self.lock().remove(peer);
    }

    pub(in crate::net) fn has(&self, peer: &PeerId) -> bool {
        self.lock().contains(peer)
    }

    fn lock(&self) -> MutexGuard<'_, SortedSet<PeerId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests for streams that may wait until this end may speak. `B` asks for a few at most.
const WAITING_MAX: usize = 64;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// The peer may be a stranger: nothing is offered, asked or computed.
    Closed,
    /// The peer is a member, but may not know that this end is one: its streams are accepted.
    Hears,
    /// Both ends are members.
    Speaks,
}

/// A word to the handler of one connection: `B`'s own, or how far the connection is.
pub(in crate::net) enum Word<E> {
    /// Accept streams. The sender learns when they are accepted.
    Hear(oneshot::Sender<()>),
    /// Open streams too.
    Speak,
    /// A word of `B`.
    Inner(E),
}

impl<E> fmt::Debug for Word<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hear(_) => "Hear",
            Self::Speak => "Speak",
            Self::Inner(_) => "Inner",
        })
    }
}

/// `B` behind the gate.
pub(in crate::net) struct Gated<B: NetworkBehaviour> {
    pub(in crate::net) inner: B,
    /// Those whose streams are accepted on every connection; `None` where another gate is before this one.
    members: Option<Members>,
    queue: VecDeque<ToSwarm<B::ToSwarm, Word<THandlerInEvent<B>>>>,
}

impl<B: NetworkBehaviour> Gated<B> {
    /// `members` are those whose streams are accepted on every connection: AutoNAT's probes do not
    /// pass the gate once more.
    pub(in crate::net) fn new(inner: B, members: Members) -> Self {
        Self {
            inner,
            members: Some(members),
            queue: VecDeque::new(),
        }
    }

    /// `B` behind the gate of another behaviour, with handlers that never keep a connection open.
    ///
    /// DCUtR's handler keeps a relayed connection open forever after it has led to a direct one. Here only the link
    /// keeps connections, so a relayed one ends after its last stream.
    pub(in crate::net) fn quiet(inner: B) -> Self {
        Self {
            inner,
            members: None,
            queue: VecDeque::new(),
        }
    }

    /// Accepts the peer's streams on a connection. `done` learns when that is in force.
    pub(in crate::net) fn hear(
        &mut self,
        peer: PeerId,
        at: ConnectionId,
        done: oneshot::Sender<()>,
    ) {
        self.say(peer, at, Word::Hear(done));
    }

    pub(in crate::net) fn speak(&mut self, peer: PeerId, at: ConnectionId) {
        self.say(peer, at, Word::Speak);
    }

    /// Tells the swarm at which address others saw this daemon, without changing the port.
    pub(in crate::net) fn may_be_at(&mut self, address: Multiaddr) {
        let event = ToSwarm::NewExternalAddrCandidate(address);
        self.queue.push_back(event);
    }

    fn say(&mut self, peer_id: PeerId, at: ConnectionId, event: Word<THandlerInEvent<B>>) {
        self.queue.push_back(ToSwarm::NotifyHandler {
            peer_id,
            handler: NotifyHandler::One(at),
            event,
        });
    }

    fn handler(&self, inner: THandler<B>, peer: &PeerId, port: PortUse) -> Handler<THandler<B>> {
        let stage = match &self.members {
            None => Stage::Speaks,
            // Only probes of members are dialled from a new port.
            Some(members) if members.has(peer) && port == PortUse::New => Stage::Speaks,
            Some(members) if members.has(peer) => Stage::Hears,
            Some(_) => Stage::Closed,
        };
        Handler {
            inner,
            stage,
            keeps: self.members.is_some(),
            waiting: VecDeque::new(),
            waker: None,
        }
    }
}

impl<B: NetworkBehaviour> NetworkBehaviour for Gated<B> {
    type ConnectionHandler = Handler<THandler<B>>;
    type ToSwarm = B::ToSwarm;

    fn handle_pending_inbound_connection(
        &mut self,
        id: ConnectionId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        let inner = &mut self.inner;
        inner.handle_pending_inbound_connection(id, local, remote)
    }

    fn handle_established_inbound_connection(
        &mut self,
        id: ConnectionId,
        peer: PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let inner = &mut self.inner;
        let handler = inner.handle_established_inbound_connection(id, peer, local, remote)?;
        Ok(self.handler(handler, &peer, PortUse::Reuse))
    }

    fn handle_pending_outbound_connection(
        &mut self,
        id: ConnectionId,
        peer: Option<PeerId>,
        addresses: &[Multiaddr],
        role: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        let inner = &mut self.inner;
        inner.handle_pending_outbound_connection(id, peer, addresses, role)
    }

    fn handle_established_outbound_connection(
        &mut self,
        id: ConnectionId,
        peer: PeerId,
        address: &Multiaddr,
        role: Endpoint,
        port: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let inner = &mut self.inner;
        let handler =
            inner.handle_established_outbound_connection(id, peer, address, role, port)?;
        Ok(self.handler(handler, &peer, port))
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        self.inner.on_swarm_event(event);
    }

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        id: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        self.inner.on_connection_handler_event(peer, id, event);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ToSwarm<B::ToSwarm, THandlerInEvent<Self>>> {
        // No waker is needed: the queue only grows inside the swarm's task.
        if let Some(next) = self.queue.pop_front() {
            return Poll::Ready(next);
        }
        self.inner.poll(cx).map(|to| to.map_in(Word::Inner))
    }
}

type Asked<H> = ConnectionHandlerEvent<
    <H as ConnectionHandler>::OutboundProtocol,
    <H as ConnectionHandler>::OutboundOpenInfo,
    <H as ConnectionHandler>::ToBehaviour,
>;

/// `H` behind the gate.
pub(in crate::net) struct Handler<H: ConnectionHandler> {
    inner: H,
    stage: Stage,
    /// Set where it may keep the connection open.
    keeps: bool,
    /// Requests for streams that wait until this end may speak.
    waiting: VecDeque<Asked<H>>,
    waker: Option<Waker>,
}

impl<H: ConnectionHandler> Handler<H> {
    fn reach(&mut self, stage: Stage) {
        self.stage = self.stage.max(stage);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl<H: ConnectionHandler> ConnectionHandler for Handler<H> {
    type FromBehaviour = Word<H::FromBehaviour>;
    type ToBehaviour = H::ToBehaviour;
    type InboundProtocol = Masked<H::InboundProtocol>;
    type OutboundProtocol = H::OutboundProtocol;
    type InboundOpenInfo = H::InboundOpenInfo;
    type OutboundOpenInfo = H::OutboundOpenInfo;

    fn listen_protocol(&self) -> SubstreamProtocol<Self::InboundProtocol, Self::InboundOpenInfo> {
        let shown = self.stage > Stage::Closed;
        let inner = self.inner.listen_protocol();
        inner.map_upgrade(|inner| Masked { inner, shown })
    }

    fn connection_keep_alive(&self) -> bool {
        self.keeps && self.inner.connection_keep_alive()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Asked<H>> {
        if self.stage == Stage::Closed {
            self.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        if self.stage == Stage::Speaks
            && let Some(asked) = self.waiting.pop_front()
        {
            return Poll::Ready(asked);
        }
        while self.waiting.len() < WAITING_MAX {
            match self.inner.poll(cx) {
                Poll::Ready(asked @ ConnectionHandlerEvent::OutboundSubstreamRequest { .. })
                    if self.stage < Stage::Speaks =>
                {
                    self.waiting.push_back(asked);
                }
                other => {
                    self.waker = Some(cx.waker().clone());
                    return other;
                }
            }
        }
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Option<Self::ToBehaviour>> {
        self.inner.poll_close(cx)
    }

    fn on_behaviour_event(&mut self, word: Self::FromBehaviour) {
        match word {
            Word::Hear(done) => {
                self.reach(Stage::Hears);
                // The task that asked may have given up.
                let _ = done.send(());
            }
            Word::Speak => self.reach(Stage::Speaks),
            Word::Inner(event) => self.inner.on_behaviour_event(event),
        }
    }

    fn on_connection_event(
        &mut self,
        event: ConnectionEvent<
            '_,
            Self::InboundProtocol,
            Self::OutboundProtocol,
            Self::InboundOpenInfo,
            Self::OutboundOpenInfo,
        >,
    ) {
        let event = match event {
            ConnectionEvent::FullyNegotiatedInbound(FullyNegotiatedInbound { protocol, info }) => {
                ConnectionEvent::FullyNegotiatedInbound(FullyNegotiatedInbound { protocol, info })
            }
            ConnectionEvent::ListenUpgradeError(ListenUpgradeError { info, error }) => {
                ConnectionEvent::ListenUpgradeError(ListenUpgradeError { info, error })
            }
            ConnectionEvent::FullyNegotiatedOutbound(event) => {
                ConnectionEvent::FullyNegotiatedOutbound(event)
            }
            ConnectionEvent::DialUpgradeError(event) => ConnectionEvent::DialUpgradeError(event),
            ConnectionEvent::AddressChange(event) => ConnectionEvent::AddressChange(event),
            ConnectionEvent::LocalProtocolsChange(event) => {
                ConnectionEvent::LocalProtocolsChange(event)
            }
            ConnectionEvent::RemoteProtocolsChange(event) => {
                ConnectionEvent::RemoteProtocolsChange(event)
            }
            // The enum may grow; what it grows by is not for this handler to translate.
            _ => return,
        };
        self.inner.on_connection_event(event);
    }
}

/// `P`, or no protocol at all while it is hidden.
#[derive(Debug)]
pub(in crate::net) struct Masked<P> {
    inner: P,
    shown: bool,
}

impl<P: InboundUpgradeSend> UpgradeInfo for Masked<P> {
    type Info = P::Info;
    type InfoIter = std::vec::IntoIter<P::Info>;

    fn protocol_info(&self) -> Self::InfoIter {
        let all: Vec<_> = if self.shown {
            self.inner.protocol_info().collect()
        } else {
            Vec::new()
        };
        all.into_iter()
    }
}

impl<P: InboundUpgradeSend> InboundUpgrade<Stream> for Masked<P> {
    type Output = P::Output;
    type Error = P::Error;
    type Future = P::Future;

    fn upgrade_inbound(self, stream: Stream, info: P::Info) -> P::Future {
        self.inner.upgrade_inbound(stream, info)
    }
}
