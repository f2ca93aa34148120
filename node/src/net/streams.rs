//! A libp2p behaviour that opens and accepts the streams of the gate and of links, and the messages with which the
//! tasks of streams ask the network's task for them.
//!
//! It replaces libp2p-stream. That crate drops an inbound stream if an earlier one has not been
//! picked up yet, opens one stream at a time per connection, and dials by itself. A burst of pushes
//! must not lose slices, so here inbound streams pass through the swarm's own queues.

use super::gate::Passed;
use libp2p::core::Endpoint as Role;
use libp2p::core::transport::PortUse;
use libp2p::core::upgrade::{InboundUpgrade, ReadyUpgrade, UpgradeInfo};
use libp2p::swarm::handler::{
    ConnectionEvent, DialUpgradeError, FullyNegotiatedInbound, FullyNegotiatedOutbound,
};
use libp2p::swarm::{
    ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm,
    NetworkBehaviour, NotifyHandler, StreamUpgradeError, SubstreamProtocol, THandler,
    THandlerInEvent, THandlerOutEvent, ToSwarm,
};
use libp2p::{Multiaddr, Stream, StreamProtocol, identity};
use murmurate_net::quic::{BulkConnection, Endpoint};
use murmurate_net::tcp;
use murmurate_protocol::PeerId;
use murmurate_protocol::wire::PeerRecord;
use murmurate_trust::Learned;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// The kinds of streams between peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The gate: proofs of membership, and news of members.
    Gate,
    Control,
    /// Slices and states.
    Bulk,
    /// What daemons say of themselves.
    Vitals,
}

impl Kind {
    /// The kinds that strangers may open.
    const FOR_ALL: &'static [Self] = &[Self::Gate];

    const FOR_MEMBERS: &'static [Self] = &[Self::Gate, Self::Control, Self::Bulk, Self::Vitals];

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

#[derive(Debug)]
pub(super) struct Inbound {
    pub(super) from: identity::PeerId,
    pub(super) connection: ConnectionId,
    pub(super) kind: Kind,
    pub(super) stream: Stream,
}

/// A command to the handler of one connection.
#[derive(Debug)]
pub(super) enum Word {
    Open {
        kind: Kind,
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
    pub(super) fn open(
        &mut self,
        peer: identity::PeerId,
        over: ConnectionId,
        kind: Kind,
        reply: Reply,
    ) {
        self.say(peer, over, Word::Open { kind, reply });
    }

    /// Accepts the peer's control and bulk streams on a connection.
    pub(super) fn hear(
        &mut self,
        peer: identity::PeerId,
        at: ConnectionId,
        done: oneshot::Sender<()>,
    ) {
        self.say(peer, at, Word::Hear(done));
    }

    /// Lets a connection close after its last stream.
    pub(super) fn release(&mut self, peer: identity::PeerId, connection: ConnectionId) {
        self.say(peer, connection, Word::Release);
    }

    fn say(&mut self, peer: identity::PeerId, connection: ConnectionId, word: Word) {
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
        _: identity::PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(Handler::default())
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: identity::PeerId,
        _: &Multiaddr,
        _: Role,
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
        from: identity::PeerId,
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

#[derive(Debug, Default)]
pub(super) struct Handler {
    asked: VecDeque<(Kind, Reply)>,
    /// Set once the other end is a member.
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
        let kinds = if self.hears {
            Kind::FOR_MEMBERS
        } else {
            Kind::FOR_ALL
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

/// How long opening a stream may take, which is libp2p's own limit for the negotiation.
const OPEN_WAIT: Duration = Duration::from_secs(10);

/// A message from a stream's task to the network's task.
#[derive(Debug)]
pub(super) enum Internal {
    Open {
        peer: identity::PeerId,
        kind: Kind,
        reply: Reply,
    },
    /// The outbound control stream of a link is open.
    ControlUp {
        peer: PeerId,
        /// The link's number, so that a late message does not affect a newer link.
        link: u64,
    },
    /// The name in an address to join was looked up.
    Resolved {
        address: Multiaddr,
        /// The addresses to dial, or why there are none.
        found: Result<Vec<Multiaddr>, String>,
    },
    /// It is this end's turn to dial the peer of a record.
    Turn(PeerRecord),
    /// A handshake at the gate went on or ended.
    Gate(Passed),
    /// A member told something new.
    Learned {
        from: PeerId,
        /// The new part of its news.
        learned: Learned,
    },
    /// All that a member had to tell was read.
    NewsRead { from: PeerId },
    /// A bulk connection is open. Either end may have dialled it.
    Bulk {
        connection: BulkConnection,
        /// Set at the second look, because the peer was not linked at the first.
        again: bool,
    },
    /// A bulk connection over TLS and TCP is open. Either end may have dialled it.
    Tcp { connection: tcp::Connection },
    /// All frames of this link were written, so its connections can be closed.
    Close { peer: PeerId, link: u64 },
}

#[derive(Clone, Debug)]
pub(super) struct Opener {
    /// The queue of the network's task.
    pub(super) network: mpsc::Sender<Internal>,
}

impl Opener {
    /// Opens a stream on an existing link. Never dials.
    pub(super) async fn open(&self, peer: identity::PeerId, kind: Kind) -> io::Result<Stream> {
        let (reply, opened) = oneshot::channel();
        let gone = |_| io::Error::from(io::ErrorKind::NotConnected);
        let asked = async {
            let ask = Internal::Open { peer, kind, reply };
            self.network
                .send(ask)
                .await
                .map_err(|_| io::ErrorKind::NotConnected)?;
            opened.await.unwrap_or_else(|error| Err(gone(error)))
        };
        timeout(OPEN_WAIT, asked)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

pub(super) async fn accept_bulk(quic: Endpoint, opener: Opener) {
    while let Some(connection) = quic.accept_bulk().await {
        let word = Internal::Bulk {
            connection,
            again: false,
        };
        if opener.network.send(word).await.is_err() {
            return;
        }
    }
}
