//! The network's task. Only it uses the swarm, and it owns the tasks of all streams.

use super::event::Pending;
use super::streams::{Internal, Opener};
use super::unproven::Unproven;
use crate::bulk::{Bulk, BulkLimits, BulkStore, Core};
use crate::net::behaviour::{self, Behaviour, BehaviourEvent, MembersOnlyEvent};
use crate::net::bootstrap::Bootstrap;
use crate::net::gate::{Gate, Members};
use crate::net::links::{Links, Outboxes};
use crate::net::listen::{accepting, listen};
use crate::net::nat::Traversal;
use crate::net::paths::Paths;
use crate::net::record::{OwnRecord, REFRESH, from_libp2p, is_relayed};
use crate::net::view::Views;
use crate::net::vitals::{GOSSIP_EVERY, VitalsBoard};
use crate::net::ways::Ways;
use crate::net::{NetConfig, NetError, NetEvent, quic};
use crate::traffic::{Counters, LinkMeters};
use futures::StreamExt;
use libp2p::swarm::{ConnectionId, Swarm, SwarmEvent};
use libp2p::{Multiaddr, identity};
use murmurate_protocol::limits::OUTPUTS_MAX;
use murmurate_protocol::{PeerId, SortedMap, SortedSet};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, sleep_until};

/// Pending events above which the task handles nothing else. Each stands for a connection or a
/// command, so a running driver keeps far below this number.
const PENDING_MAX: usize = 1024;

/// Events that may wait for the driver. The largest is a frame of 64 KiB: 16 MiB at most.
const EVENTS_WAITING_MAX: usize = 256;

/// Messages from stream tasks to the network's task that may wait.
const INTERNAL_MAX: usize = 1024;

/// A command from the handle to the network's task.
pub(super) enum Command {
    /// Work that does not wait.
    Do(Box<dyn FnOnce(&mut Network) + Send>),
    /// The end, at the latest at the deadline.
    Shutdown {
        deadline: Instant,
        done: oneshot::Sender<()>,
    },
}

pub(super) struct Network {
    /// The QUIC endpoint, the paths of bulk streams, and the meters of links.
    pub(super) views: Views,
    pub(super) swarm: Swarm<Behaviour>,
    pub(super) links: Links,
    /// Lets in members only.
    pub(super) gate: Gate,
    pub(super) bootstrap: Bootstrap,
    pub(super) me: identity::PeerId,
    /// Addresses to try if a dial fails.
    pub(super) fallbacks: SortedMap<ConnectionId, (identity::PeerId, VecDeque<Vec<Multiaddr>>)>,
    /// Peers that discovery does not dial, and until when.
    pub(super) avoided: SortedMap<identity::PeerId, Instant>,
    /// Peers that are cut off on request.
    pub(super) blocked: SortedSet<PeerId>,
    pub(super) pending: VecDeque<Pending>,
    pub(super) outboxes: Arc<Outboxes>,
    pub(super) bulk: Bulk,
    pub(super) counters: Arc<Counters>,
    /// State about routers, for this daemon and its peers.
    pub(super) nat: Traversal,
    pub(super) record: OwnRecord,
    /// Addresses to announce instead of the listening addresses.
    pub(super) announce: Option<Vec<Multiaddr>>,
    /// What the swarm's daemons say of themselves.
    pub(super) vitals: VitalsBoard,
    pub(super) relays: bool,
    pub(super) opener: Opener,
    pub(super) events: mpsc::Sender<NetEvent>,
    commands: mpsc::Receiver<Command>,
    pub(super) internal: mpsc::Receiver<Internal>,
    pub(super) tasks: JoinSet<()>,
}

impl Network {
    /// Binds the ports and builds all parts. Returns the ends of the queues of commands and events too.
    pub(super) fn new(
        config: NetConfig,
        store: Arc<dyn BulkStore>,
        limits: BulkLimits,
    ) -> Result<(Self, mpsc::Sender<Command>, mpsc::Receiver<NetEvent>), NetError> {
        let (events, received) = mpsc::channel(EVENTS_WAITING_MAX);
        let (commander, commands) = mpsc::channel(OUTPUTS_MAX);
        let (words, internal) = mpsc::channel(INTERNAL_MAX);
        let counters = Arc::new(Counters::default());
        let (unproven, members) = (Unproven::new()?, Members::default());
        let (quic, transport) = quic::endpoint(&config, members.clone())?;
        let tcp = quic::tcp_endpoint(&config, unproven.places)?;
        let ways = Ways::new(config.bulk, tcp, words.clone());
        let opener = Opener { network: words };
        let paths = Paths::new(quic.clone(), opener.clone(), ways);
        let meters = Arc::<LinkMeters>::default();
        let me = config.identity.public().to_peer_id();
        let ours = from_libp2p(&me).ok_or(NetError::Identity)?;
        let bounds = (&members, &unproven);
        let mut swarm = behaviour::swarm(&config, transport, &counters.wire(), bounds)?;
        let mut pending = listen(&mut swarm, &config.listen, &config.ports)?;
        if let Some(cap) = quic.buffers().cap() {
            pending.push_back(Pending::Event(NetEvent::Notice(cap.to_string())));
        }
        for address in config.announce.iter().flatten() {
            swarm.add_external_address(address.clone());
        }
        let bulk = Bulk::new(Core {
            store,
            transport: Arc::new(paths.clone()),
            rate: config.max_rate.clone(),
            limits,
            events: Box::new(events.clone()),
            counters: Arc::clone(&counters),
            meters: Arc::clone(&meters),
        });
        let network = Self {
            nat: Traversal::new(&config, members),
            swarm,
            vitals: VitalsBoard::new(config.identity.clone(), Arc::clone(&config.membership)),
            relays: config.relay,
            links: Links::new(),
            gate: Gate::new(Arc::clone(&config.membership), config.wire, unproven),
            bootstrap: Bootstrap::new(config.join, Instant::now()),
            me,
            fallbacks: SortedMap::new(),
            avoided: SortedMap::new(),
            blocked: SortedSet::new(),
            pending,
            outboxes: Arc::default(),
            bulk,
            counters,
            record: OwnRecord::new(config.identity, ours, config.run).at(config.locality),
            announce: config.announce,
            tasks: accepting(&quic, &paths, &opener),
            views: Views {
                quic,
                paths,
                meters,
            },
            opener,
            events,
            commands,
            internal,
        };
        Ok((network, commander, received))
    }

    /// Runs until it is told to end, all handles are dropped, or the driver drops the event queue.
    pub(super) async fn run(mut self) {
        let events = self.events.clone();
        let mut refresh = tokio::time::interval_at(Instant::now() + REFRESH, REFRESH);
        let mut gossip = tokio::time::interval(GOSSIP_EVERY);
        gossip.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.reconsider();
        let ending = loop {
            if !self.deliver() {
                break None;
            }
            let room = self.pending.len() < PENDING_MAX;
            let due = [
                self.bootstrap.next_at(),
                self.nat.next_at(),
                self.gate.next_at(),
            ];
            let due = due.into_iter().flatten().min();
            tokio::select! {
                // This branch only waits for room; `deliver` then sends the events in order.
                permit = events.reserve(), if !self.pending.is_empty() => drop(permit),
                event = self.swarm.select_next_some(), if room => self.on_swarm(event),
                Some(word) = self.internal.recv(), if room => self.on_internal(word),
                command = self.commands.recv(), if room => match command {
                    Some(Command::Do(work)) => work(&mut self),
                    Some(Command::Shutdown { deadline, done }) => break Some((deadline, done)),
                    None => break None,
                },
                Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => report(ended),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.join_again();
                    self.traverse();
                    self.clear_the_gate();
                    self.repeat_directives();
                    self.look_at_members();
                }
                _ = refresh.tick() => self.renew_record(),
                _ = gossip.tick() => self.vitals.gossip(),
            }
        };
        if let Some((deadline, done)) = ending {
            self.end(deadline, done).await;
        }
    }

    /// Sends pending events while there is room. Returns false if the driver has gone.
    fn deliver(&mut self) -> bool {
        while let Some(next) = self.pending.pop_front() {
            if let Pending::Read(peer, stream) = next {
                self.read(peer, stream);
                continue;
            }
            match self.events.try_reserve() {
                Ok(permit) => match next {
                    Pending::Event(event) => permit.send(event),
                    Pending::Down(peer, latch) => {
                        latch.shut();
                        permit.send(NetEvent::LinkDown(peer));
                    }
                    Pending::Read(..) => {}
                },
                Err(mpsc::error::TrySendError::Full(())) => {
                    self.pending.push_front(next);
                    return true;
                }
                Err(mpsc::error::TrySendError::Closed(())) => return false,
            }
        }
        true
    }

    pub(super) fn tell(&mut self, event: NetEvent) {
        self.pending.push_back(Pending::Event(event));
    }

    pub(super) fn on_swarm(&mut self, event: SwarmEvent<BehaviourEvent>) {
        match event {
            SwarmEvent::Behaviour(event) => self.on_behaviour(event),
            SwarmEvent::ConnectionEstablished {
                peer_id,
                connection_id,
                endpoint,
                ..
            } => {
                self.on_connected(peer_id, connection_id, &endpoint);
            }
            SwarmEvent::ConnectionClosed {
                peer_id,
                connection_id,
                cause,
                ..
            } => {
                tracing::debug!(peer = %peer_id, ?cause, "connection closed");
                self.on_disconnected(peer_id, connection_id);
            }
            SwarmEvent::OutgoingConnectionError {
                connection_id,
                peer_id,
                error,
            } => {
                if let Some(peer) = peer_id {
                    self.on_undialled(&peer);
                }
                self.on_dial_failed(connection_id, &error);
            }
            SwarmEvent::NewListenAddr { address, .. } => {
                self.on_listening(address);
            }
            SwarmEvent::ExpiredListenAddr { address, .. } => {
                if self.announce.is_none() || is_relayed(&address) {
                    self.forget_addresses(&[address]);
                }
            }
            SwarmEvent::ListenerClosed {
                listener_id,
                addresses,
                reason,
            } => {
                if !self.on_reservation_ended(listener_id, &addresses, &reason) {
                    tracing::warn!(?addresses, ?reason, "a listener closed");
                }
            }
            other => tracing::trace!(?other, "swarm"),
        }
    }

    fn on_behaviour(&mut self, event: BehaviourEvent) {
        match event {
            BehaviourEvent::Streams(inbound) => self.on_stream(inbound),
            BehaviourEvent::Ping(ping) => self.on_ping(&ping),
            BehaviourEvent::Mdns(event) => self.on_mdns(event),
            BehaviourEvent::Gated(MembersOnlyEvent::Identify(event)) => self.on_identify(event),
            BehaviourEvent::Gated(MembersOnlyEvent::Nat(event)) => self.on_nat(event),
        }
    }

    pub(super) fn on_internal(&mut self, word: Internal) {
        match word {
            Internal::Open { peer, kind, reply } => {
                let link = from_libp2p(&peer).and_then(|peer| self.links.get(&peer));
                match link.and_then(|link| link.connections.carrier()) {
                    Some(carrier) => {
                        let (streams, over) = (&mut self.swarm.behaviour_mut().streams, carrier.id);
                        streams.open(peer, over, kind, reply);
                    }
                    // The requesting task may have given up.
                    None => drop(reply.send(Err(io::ErrorKind::NotConnected.into()))),
                }
            }
            Internal::ControlUp { peer, link } => {
                if self.current(&peer, link).is_some() {
                    self.on_control_works(peer);
                }
            }
            Internal::Turn(record) => self.dial_record(&record),
            Internal::Resolved { address, found } => self.on_resolved(address, found),
            Internal::Gate(passed) => self.on_gate(passed),
            Internal::Learned { from, learned } => self.on_learned(from, &learned),
            Internal::NewsRead { from } => self.on_news_read(from),
            Internal::Bulk { connection, again } => self.on_bulk(connection, again),
            Internal::Tcp { connection } => self.on_tcp(connection),
            Internal::Close { peer, link } => {
                if let Some(theirs) = self.current(&peer, link).map(|link| link.end.theirs) {
                    // An error means that the connection is already closed.
                    let _ = self.swarm.disconnect_peer_id(theirs);
                }
            }
        }
    }

    pub(super) fn renew_record(&mut self) {
        if let Some(record) = self.record.sign(SystemTime::now()) {
            self.tell(NetEvent::Record(record));
        }
    }
}

/// Reports a task that panicked, which is a bug.
fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a task of the network panicked (please report this)");
    }
}
