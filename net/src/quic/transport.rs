//! The endpoint as a libp2p transport: /quic-v1 addresses, listeners, dials and hole punches.
//!
//! It wraps the control connections; bulk connections never reach the swarm. As for every transport
//! that reuses its ports, identify translates the addresses that others observe.

use crate::quic::addr::{QuicAddr, bare, multiaddr_of};
use crate::quic::admission::Kind;
use crate::quic::error::Error;
use crate::quic::inbound;
use crate::quic::listener::Listener;
use crate::quic::muxer::{Arrival, Event, Muxer, Upgrade};
use crate::quic::shared::Shared;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use libp2p::core::Endpoint as Role;
use libp2p::core::transport::{DialOpts, ListenerId, PortUse, TransportError, TransportEvent};
use libp2p::{Multiaddr, PeerId};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::sync::mpsc;

/// libp2p's transport on an [`Endpoint`](super::Endpoint). Use it in one swarm only.
pub struct Transport {
    shared: Arc<Shared>,
    arrived: mpsc::Receiver<Arrival>,
    listeners: Vec<Listener>,
    pending: VecDeque<Event>,
    waker: Option<Waker>,
}

impl Transport {
    pub(super) fn new(shared: Arc<Shared>, arrived: mpsc::Receiver<Arrival>) -> Self {
        Self {
            shared,
            arrived,
            listeners: Vec::new(),
            pending: VecDeque::new(),
            waker: None,
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn end(&mut self, id: ListenerId, reason: Result<(), Error>) -> bool {
        self.shared.unlisten(id);
        let Some(at) = self.listeners.iter().position(|l| l.id == id) else {
            return false;
        };
        let listener = self.listeners.remove(at);
        self.pending.extend(listener.end(reason));
        self.wake();
        true
    }

    fn arrival(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Control {
                listener,
                local,
                remote,
                peer,
                muxer,
            } => self.pending.push_back(TransportEvent::Incoming {
                listener_id: listener,
                upgrade: ready(Ok((peer, *muxer))),
                local_addr: multiaddr_of(local),
                send_back_addr: multiaddr_of(remote),
            }),
            Arrival::Stopped { listener } => {
                self.end(listener, Err(Error::Closed));
            }
        }
    }

    /// Opens our NAT for a peer that dials us at the same time.
    fn punch(&self, quic: QuicAddr, addr: Multiaddr) -> Result<Dial, Error> {
        let peer = quic.peer.ok_or(Error::PunchNeedsPeer(addr))?;
        let to = bare(quic.socket);
        let port = self.shared.listening_port(to).ok_or(Error::NoListener)?;
        self.shared.may(peer, Kind::Control)?;
        let punch = self.shared.punches.begin(to, peer)?;
        let wait = self.shared.config.handshake_timeout;
        Ok(punch.keep_open(port, wait).boxed())
    }
}

type Dial = BoxFuture<'static, Result<(PeerId, Muxer), Error>>;

fn ours(addr: &Multiaddr) -> Result<QuicAddr, TransportError<Error>> {
    QuicAddr::parse(addr).ok_or_else(|| TransportError::MultiaddrNotSupported(addr.clone()))
}

impl libp2p::core::Transport for Transport {
    type Output = (PeerId, Muxer);
    type Error = Error;
    type ListenerUpgrade = Upgrade;
    type Dial = Dial;

    fn listen_on(
        &mut self,
        id: ListenerId,
        addr: Multiaddr,
    ) -> Result<(), TransportError<Self::Error>> {
        let quic = ours(&addr)?;
        let port = inbound::listen(&self.shared, id, quic.socket);
        let port = port.map_err(TransportError::Other)?;
        match Listener::new(id, &port) {
            Ok(listener) => self.listeners.push(listener),
            Err(error) => {
                self.shared.unlisten(id);
                return Err(TransportError::Other(error));
            }
        }
        self.wake();
        Ok(())
    }

    /// Stops accepting connections there. Existing connections continue.
    fn remove_listener(&mut self, id: ListenerId) -> bool {
        self.end(id, Ok(()))
    }

    fn dial(
        &mut self,
        addr: Multiaddr,
        opts: DialOpts,
    ) -> Result<Self::Dial, TransportError<Self::Error>> {
        let quic = ours(&addr)?;
        if !quic.is_dialable() {
            return Err(TransportError::MultiaddrNotSupported(addr));
        }
        if opts.role == Role::Listener {
            return self.punch(quic, addr).map_err(TransportError::Other);
        }
        let reuse = opts.port_use == PortUse::Reuse;
        let port = self.shared.dialing_port(quic.socket, reuse);
        let port = port.map_err(TransportError::Other)?;
        let shared = Arc::clone(&self.shared);
        let dial = async move {
            let dialed = shared
                .dial(&port, quic.socket, quic.peer, Kind::Control)
                .await?;
            let (peer, connection, hold) = dialed;
            Ok((peer, Muxer::new(connection, hold)))
        };
        Ok(dial.boxed())
    }

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Event> {
        let this = self.get_mut();
        loop {
            if let Some(event) = this.pending.pop_front() {
                return Poll::Ready(event);
            }
            for listener in &mut this.listeners {
                if let Poll::Ready(event) = listener.poll(cx) {
                    return Poll::Ready(event);
                }
            }
            // The shared state owns the sender, so the channel is never closed.
            let Poll::Ready(Some(arrival)) = this.arrived.poll_recv(cx) else {
                this.waker = Some(cx.waker().clone());
                return Poll::Pending;
            };
            this.arrival(arrival);
        }
    }
}
