//! The handle to the network: commands that do not wait, and counters.

use crate::bulk::{BulkLimits, BulkStore, PushJob};
use crate::net::links::{Busy, Outboxes};
use crate::net::swarm::{Command, Network};
use crate::net::view::{LinkView, Views};
use crate::net::vitals::VitalsBoard;
use crate::net::{NetConfig, NetError, NetEvent};
use crate::traffic::{CounterSnapshot, Counters};
use murmurate_net::congestion::MaxRate;
use murmurate_protocol::limits::FRAME_BYTES_MAX;
use murmurate_protocol::wire::{self, Message, PeerRecord, WireVersion, WireVersions};
use murmurate_protocol::{FetchId, Locality, PeerId, SliceId, SliceMeta, SortedMap, SortedSet};
use murmurate_trust::News;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument;

/// A clonable handle to the network. The network ends when the last clone is dropped.
#[derive(Clone)]
pub struct Net {
    commands: mpsc::Sender<Command>,
    outboxes: Arc<Outboxes>,
    counters: Arc<Counters>,
    views: Views,
    vitals: VitalsBoard,
    max_rate: MaxRate,
    wire: WireVersions,
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Net").finish_non_exhaustive()
    }
}

/// Starts the network inside the current tokio runtime.
///
/// The ports are bound when this returns. All event queues are bounded: a driver that stops reading
/// events only slows down its remotes.
///
/// # Errors
/// If the identity is not an Ed25519 key, no address can be listened on, or a transport cannot be
/// set up.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn start(
    config: NetConfig,
    store: Arc<dyn BulkStore>,
    limits: BulkLimits,
) -> Result<(Net, mpsc::Receiver<NetEvent>), NetError> {
    let (max_rate, wire) = (config.max_rate.clone(), config.wire);
    let (network, commands, events) = Network::new(config, store, limits)?;
    let net = Net {
        commands,
        outboxes: Arc::clone(&network.outboxes),
        counters: Arc::clone(&network.counters),
        views: network.views.clone(),
        vitals: network.vitals.clone(),
        max_rate,
        wire,
    };
    tokio::spawn(network.run().in_current_span());
    Ok((net, events))
}

impl Net {
    /// Queues a message, in the version of the wire that is used with the peer. What that version cannot
    /// say is not sent.
    ///
    /// # Errors
    /// As [`Net::try_send`].
    pub fn say(&self, to: PeerId, message: &Message) -> Result<(), Busy> {
        let version = self.outboxes.wire(&to).ok_or(Busy::NotLinked)?;
        match wire::encode_for(message, version) {
            Some(frame) => self.try_send(to, frame),
            None => Ok(()),
        }
    }

    /// The versions of the wire that this daemon speaks.
    pub fn wire(&self) -> WireVersions {
        self.wire
    }

    /// The version of the wire that is used with a linked peer.
    pub fn wire_with(&self, peer: &PeerId) -> Option<WireVersion> {
        self.outboxes.wire(peer)
    }

    /// Queues a control frame.
    ///
    /// # Errors
    /// If the frame cannot be queued. A full queue counts as a dropped frame.
    pub fn try_send(&self, to: PeerId, frame: Vec<u8>) -> Result<(), Busy> {
        if frame.len() > FRAME_BYTES_MAX {
            return Err(Busy::TooLong(frame.len()));
        }
        self.outboxes.try_send(&to, frame)
    }

    /// Dials a peer at the addresses of its record: over QUIC first, then over TCP if that fails. A
    /// linked peer is not dialled again.
    ///
    /// # Errors
    /// If too many commands wait.
    pub fn dial(&self, record: PeerRecord) -> Result<(), Busy> {
        self.command(move |network| network.dial_record(&record))
    }

    /// Dials a peer that has learned of this one at the same time: as [`dial`](Self::dial), but of the two the one
    /// with the lower id dials first.
    ///
    /// # Errors
    /// If too many commands wait.
    pub fn dial_in_turn(&self, record: PeerRecord) -> Result<(), Busy> {
        self.command(move |network| network.dial_in_turn(record))
    }

    /// Ends the link to a peer after its queued frames were read, at the latest after a second.
    /// Discovery does not dial the peer again for a while.
    ///
    /// # Errors
    /// If too many commands wait.
    pub fn disconnect(&self, peer: PeerId) -> Result<(), Busy> {
        self.command(move |network| network.disconnect(peer))
    }

    /// Pushes a slice that is in the store; lower priorities go first. Exactly one
    /// `BulkEvent::Pushed` follows by the deadline.
    ///
    /// # Errors
    /// If too many commands wait. Then no event follows.
    pub fn push(
        &self,
        to: PeerId,
        slice: SliceId,
        meta: SliceMeta,
        priority: u8,
        deadline: Instant,
    ) -> Result<(), Busy> {
        let job = PushJob {
            slice,
            meta,
            priority,
            deadline: deadline.into(),
        };
        self.command(move |network| {
            if let Some(event) = network.bulk.push(to, job) {
                network.tell(NetEvent::Bulk(event));
            }
        })
    }

    /// Fetches a slice from the first of `from` that has it, or a state from all of them at once.
    /// One `BulkEvent::Fetched` or
    /// `BulkEvent::FetchFailed` follows by the deadline. A
    /// second request for the same item replaces the first.
    ///
    /// # Errors
    /// If too many commands wait. Then no event follows.
    pub fn fetch(&self, what: FetchId, from: Vec<PeerId>, deadline: Instant) -> Result<(), Busy> {
        self.command(move |network| {
            let Network { bulk, tasks, .. } = network;
            bulk.fetch(what, from, deadline.into(), tasks);
        })
    }

    /// Stops all pushes of a slice. Each of them still ends in an event.
    ///
    /// # Errors
    /// If too many commands wait.
    pub fn cancel(&self, slice: SliceId) -> Result<(), Busy> {
        self.command(move |network| network.bulk.cancel(slice))
    }

    /// Cuts the connections to these peers and refuses new ones, from either end and over every
    /// transport; all other peers may connect again. For splits on request.
    ///
    /// # Errors
    /// If too many commands wait.
    pub fn block(&self, peers: SortedSet<PeerId>) -> Result<(), Busy> {
        self.command(move |network| network.block(peers))
    }

    /// Enters what the operator says into the register of members, and passes it on.
    ///
    /// # Errors
    /// If too many commands wait.
    pub fn learn(&self, news: News) -> Result<(), Busy> {
        self.command(move |network| network.learn(news))
    }

    /// Announces where in the network this peer is.
    ///
    /// # Errors
    /// If too many commands wait.
    pub fn locate(&self, locality: Locality) -> Result<(), Busy> {
        self.command(move |network| network.locate(locality))
    }

    /// The traffic since the start.
    pub fn counters(&self) -> CounterSnapshot {
        let mut snapshot = self.counters.snapshot();
        let quic = self.views.quic.traffic();
        snapshot.wire_in += quic.received;
        snapshot.wire_out += quic.sent;
        if let Some(tcp) = self.views.paths.tcp() {
            let volume = tcp.volume();
            snapshot.wire_in += volume.received;
            snapshot.wire_out += volume.sent;
        }
        snapshot
    }

    /// The state of the link to each linked peer.
    pub fn links(&self) -> SortedMap<PeerId, LinkView> {
        let mut links = self.views.read(&self.counters);
        for (peer, link) in &mut links {
            link.wire = self.outboxes.wire(peer);
        }
        links
    }

    /// Breaks the connection over TCP to a peer, as a router that drops it would.
    #[cfg(test)]
    pub(crate) fn break_tls(&self, peer: &PeerId) {
        self.views.paths.break_tls(peer);
    }

    /// What the swarm's daemons say of themselves.
    pub fn vitals(&self) -> &VitalsBoard {
        &self.vitals
    }

    /// The limits on the sending rate. Changes apply at once.
    pub fn max_rate(&self) -> MaxRate {
        self.max_rate.clone()
    }

    /// Ends the network: writes the queued frames and closes the connections, until the deadline.
    pub async fn shutdown(self, deadline: Instant) {
        let (done, ended) = oneshot::channel();
        let deadline = tokio::time::Instant::from_std(deadline);
        let asked = async {
            let shutdown = Command::Shutdown { deadline, done };
            if self.commands.send(shutdown).await.is_ok() {
                // An error means that the network had already ended.
                let _ = ended.await;
            }
        };
        let _ = tokio::time::timeout_at(deadline, asked).await;
    }

    fn command(&self, work: impl FnOnce(&mut Network) + Send + 'static) -> Result<(), Busy> {
        self.commands
            .try_send(Command::Do(Box::new(work)))
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => Busy::Full,
                mpsc::error::TrySendError::Closed(_) => Busy::Ended,
            })
    }
}
