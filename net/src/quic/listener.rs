//! An address that the swarm listens on, and the machine's addresses that it covers.

use crate::quic::addr::multiaddr_of;
use crate::quic::error::Error;
use crate::quic::muxer::Event;
use crate::quic::port::{Family, Port};
use if_watch::IfEvent;
use if_watch::tokio::IfWatcher;
use libp2p::core::transport::{ListenerId, TransportEvent};
use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

/// Follows the network interfaces for a wildcard address. A particular address never changes.
pub(super) struct Listener {
    pub(super) id: ListenerId,
    local: SocketAddr,
    watcher: Option<IfWatcher>,
    announced: BTreeSet<IpAddr>,
    pending: VecDeque<Event>,
}

impl Listener {
    pub(super) fn new(id: ListenerId, port: &Arc<Port>) -> Result<Self, Error> {
        let mut listener = Self {
            id,
            local: port.local,
            watcher: None,
            announced: BTreeSet::new(),
            pending: VecDeque::new(),
        };
        if port.local.ip().is_unspecified() {
            listener.watcher = Some(IfWatcher::new().map_err(Error::Interfaces)?);
        } else {
            listener.appear(port.local.ip());
        }
        Ok(listener)
    }

    /// Returns the next change of the addresses.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Poll::Ready(event);
            }
            let Some(watcher) = &mut self.watcher else {
                return Poll::Pending;
            };
            match std::task::ready!(watcher.poll_if_event(cx)) {
                Ok(IfEvent::Up(net)) => self.appear(net.addr()),
                Ok(IfEvent::Down(net)) => self.vanish(net.addr()),
                Err(error) => {
                    return Poll::Ready(TransportEvent::ListenerError {
                        listener_id: self.id,
                        error: Error::Interfaces(error),
                    });
                }
            }
        }
    }

    /// The listener's last events: an expiry of each announced address, then its end.
    pub(super) fn end(mut self, reason: Result<(), Error>) -> VecDeque<Event> {
        for ip in std::mem::take(&mut self.announced) {
            let event = self.expired(ip);
            self.pending.push_back(event);
        }
        self.pending.push_back(TransportEvent::ListenerClosed {
            listener_id: self.id,
            reason,
        });
        self.pending
    }

    fn appear(&mut self, ip: IpAddr) {
        let addr = SocketAddr::new(ip, self.local.port());
        if Family::of(addr) == Family::of(self.local) && self.announced.insert(ip) {
            self.pending.push_back(TransportEvent::NewAddress {
                listener_id: self.id,
                listen_addr: multiaddr_of(addr),
            });
        }
    }

    fn vanish(&mut self, ip: IpAddr) {
        if self.announced.remove(&ip) {
            let event = self.expired(ip);
            self.pending.push_back(event);
        }
    }

    fn expired(&self, ip: IpAddr) -> Event {
        TransportEvent::AddressExpired {
            listener_id: self.id,
            listen_addr: multiaddr_of(SocketAddr::new(ip, self.local.port())),
        }
    }
}
