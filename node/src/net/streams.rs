//! A libp2p behaviour that opens and accepts the streams of the gate and of links.
//!
//! It replaces libp2p-stream. That crate drops an inbound stream if an earlier one has not been
//! picked up yet, opens one stream at a time per connection, and dials by itself. A burst of pushes
//! must not lose slices, so here inbound streams pass through the swarm's own queues.

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::core::upgrade::{InboundUpgrade, ReadyUpgrade, UpgradeInfo};
use libp2p::identity::PeerId;
use libp2p::swarm::handler::{
    ConnectionEvent, DialUpgradeError, FullyNegotiatedInbound, FullyNegotiatedOutbound,
};
use libp2p::swarm::{
    ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm,
    NetworkBehaviour, NotifyHandler, StreamUpgradeError, SubstreamProtocol, THandler,
    THandlerInEvent, THandlerOutEvent, ToSwarm,
};
use libp2p::{Multiaddr, Stream, StreamProtocol};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// The kinds of streams between peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The gate: proofs of membership, and news of members.
    Gate,
    /// Control frames.
    Control,
    /// Slices and states.
    Bulk,
    /// What daemons say of themselves.
    Vitals,
}

impl Kind {
    /// The kinds that strangers may open.
    const FOR_ALL: &'static [Self] = &[Self::Gate];

    /// The kinds that members may open.
    const FOR_MEMBERS: &'static [Self] = &[Self::Gate, Self::Control, Self::Bulk, Self::Vitals];

    /// Name of the stream's protocol.
    const fn name(self) -> &'static str {
        match self {
            Self::Gate => "/murmurate/gate/2",
            Self::Control => "/murmurate/control/1",
            Self::Bulk => "/murmurate/bulk/1",
            Self::Vitals => "/murmurate/vitals/1",
        }
    }

    /// Name of the stream's protocol, as libp2p has it.
    const fn protocol(self) -> StreamProtocol {
        StreamProtocol::new(self.name())
    }
}

impl AsRef<str> for Kind {
    fn as_ref(&self) -> &str {
        self.name()
    }
}

/// The kinds of streams that the other end may open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer(&'static [Kind]);

impl UpgradeInfo for Offer {
    type Info = Kind;
    type InfoIter = std::iter::Copied<std::slice::Iter<'static, Kind>>;

    fn protocol_info(&self) -> Self::InfoIter {
        self.0.iter().copied()
    }
}

impl InboundUpgrade<Stream> for Offer {
    type Output = (Kind, Stream);
    type Error = Infallible;
    type Future = Ready<Result<Self::Output, Infallible>>;

    fn upgrade_inbound(self, stream: Stream, kind: Kind) -> Self::Future {
        ready(Ok((kind, stream)))
    }
}

/// Receives an opened stream. The error `Unsupported` means that the remote does not speak the
/// protocol.
pub(super) type Reply = oneshot::Sender<io::Result<Stream>>;

/// An inbound stream.
#[derive(Debug)]
pub(super) struct Inbound {
    /// The peer that opened it.
    pub(super) from: PeerId,
    /// The connection that it belongs to.
    pub(super) connection: ConnectionId,
    /// Its kind.
    pub(super) kind: Kind,
    /// The stream.
    pub(super) stream: Stream,
}

/// A command to the handler of one connection.
#[derive(Debug)]
pub(super) enum Word {
    /// Open a stream.
    Open {
        /// Kind of the stream.
        kind: Kind,
        /// Receives the stream.
        reply: Reply,
    },
    /// The other end is a member: accept its streams. The sender learns when they are accepted.
    Hear(oneshot::Sender<()>),
    /// Another connection carries the link, so this one may close after its last stream.
    Release,
}

/// Passes commands to the connections' handlers, and inbound streams to the swarm.
#[derive(Debug, Default)]
pub(super) struct Streams {
    queue: VecDeque<ToSwarm<Inbound, Word>>,
}

impl Streams {
    /// Opens a stream on a connection to `peer`. If the connection is closed, `reply` is dropped.
    pub(super) fn open(&mut self, peer: PeerId, over: ConnectionId, kind: Kind, reply: Reply) {
        self.say(peer, over, Word::Open { kind, reply });
    }

    /// Accepts the peer's control and bulk streams on a connection.
    pub(super) fn hear(&mut self, peer: PeerId, at: ConnectionId, done: oneshot::Sender<()>) {
        self.say(peer, at, Word::Hear(done));
    }

    /// Lets a connection close after its last stream.
    pub(super) fn release(&mut self, peer: PeerId, connection: ConnectionId) {
        self.say(peer, connection, Word::Release);
    }

    fn say(&mut self, peer: PeerId, connection: ConnectionId, word: Word) {
        self.queue.push_back(ToSwarm::NotifyHandler {
            peer_id: peer,
            handler: NotifyHandler::One(connection),
            event: word,
        });
    }
}

impl NetworkBehaviour for Streams {
    type ConnectionHandler = Handler;
    type ToSwarm = Inbound;

    fn handle_established_inbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(Handler::default())
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        port: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(Handler {
            // Only probes are dialled from a port other than ours, and they end by themselves.
            released: port == PortUse::New,
            ..Handler::default()
        })
    }

    fn on_swarm_event(&mut self, _: FromSwarm<'_>) {}

    fn on_connection_handler_event(
        &mut self,
        from: PeerId,
        connection: ConnectionId,
        (kind, stream): THandlerOutEvent<Self>,
    ) {
        self.queue.push_back(ToSwarm::GenerateEvent(Inbound {
            from,
            connection,
            kind,
            stream,
        }));
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Inbound, THandlerInEvent<Self>>> {
        // No waker is needed: the queue only grows inside the swarm's task.
        self.queue.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}

/// The handler of one connection.
#[derive(Debug, Default)]
pub(super) struct Handler {
    asked: VecDeque<(Kind, Reply)>,
    /// Whether the other end is a member.
    hears: bool,
    released: bool,
    inbound: VecDeque<(Kind, Stream)>,
}

impl ConnectionHandler for Handler {
    type FromBehaviour = Word;
    type ToBehaviour = (Kind, Stream);
    type InboundProtocol = Offer;
    type OutboundProtocol = ReadyUpgrade<StreamProtocol>;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = Reply;

    fn listen_protocol(&self) -> SubstreamProtocol<Self::InboundProtocol> {
        let kinds = match self.hears {
            true => Kind::FOR_MEMBERS,
            false => Kind::FOR_ALL,
        };
        SubstreamProtocol::new(Offer(kinds), ())
    }

    fn connection_keep_alive(&self) -> bool {
        // Links end by a decision or by the transport's timeout, not for being idle.
        !self.released
    }

    fn poll(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<ConnectionHandlerEvent<Self::OutboundProtocol, Reply, Self::ToBehaviour>> {
        if let Some(arrived) = self.inbound.pop_front() {
            return Poll::Ready(ConnectionHandlerEvent::NotifyBehaviour(arrived));
        }
        if let Some((kind, reply)) = self.asked.pop_front() {
            let protocol = SubstreamProtocol::new(ReadyUpgrade::new(kind.protocol()), reply);
            return Poll::Ready(ConnectionHandlerEvent::OutboundSubstreamRequest { protocol });
        }
        Poll::Pending
    }

    fn on_behaviour_event(&mut self, word: Word) {
        match word {
            Word::Open { kind, reply } => self.asked.push_back((kind, reply)),
            Word::Hear(done) => {
                self.hears = true;
                // The task that asked may have given up.
                let _ = done.send(());
            }
            Word::Release => self.released = true,
        }
    }

    fn on_connection_event(
        &mut self,
        event: ConnectionEvent<'_, Self::InboundProtocol, Self::OutboundProtocol, (), Reply>,
    ) {
        match event {
            ConnectionEvent::FullyNegotiatedInbound(FullyNegotiatedInbound {
                protocol, ..
            }) => self.inbound.push_back(protocol),
            ConnectionEvent::FullyNegotiatedOutbound(FullyNegotiatedOutbound {
                protocol,
                info,
            }) => {
                // The requesting task may have given up; then the stream is dropped.
                let _ = info.send(Ok(protocol));
            }
            ConnectionEvent::DialUpgradeError(DialUpgradeError { info, error }) => {
                let error = match error {
                    StreamUpgradeError::Timeout => io::ErrorKind::TimedOut.into(),
                    StreamUpgradeError::NegotiationFailed => io::ErrorKind::Unsupported.into(),
                    StreamUpgradeError::Io(error) => error,
                    StreamUpgradeError::Apply(never) => match never {},
                };
                let _ = info.send(Err(error));
            }
            _ => {}
        }
    }
}
