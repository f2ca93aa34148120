//! Tests with real swarms on loopback, on ports that the system chooses. Every wait is for an
//! event. This file has one end of such a link, and a peer without our checks.

mod hostile;
mod links;

pub(crate) use super::paths::PathView;
pub(crate) use super::record::{address_with_peer, to_libp2p};
pub(crate) use super::view::QuicView;

use super::behaviour::{self, Behaviour};
use super::gate::Members;
use super::gate::tests::pass;
use super::links::Busy;
use super::streams::Kind;
use super::unproven::Unproven;
use super::*;
use crate::bulk::BulkLimits;
use crate::bulk::tests::TestStore;
use crate::traffic::WireCells;
use futures::StreamExt;
use futures::io::AsyncWriteExt;
use libp2p::identity::Keypair;
use libp2p::swarm::{Swarm, SwarmEvent};
use libp2p::{Multiaddr, Stream, identity};
use murmurate_net::quic::{BulkConnection, CloseCode, Config, Endpoint, Error};
use murmurate_protocol::wire::{PeerRecord, WireError};
use murmurate_protocol::{PeerId, RunId};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Only a broken test waits this long, even on a busy machine.
pub(crate) const WAIT: Duration = Duration::from_secs(90);

const QUIC: &str = "/ip4/127.0.0.1/udp/0/quic-v1";
const TCP: &str = "/ip4/127.0.0.1/tcp/0";

pub(crate) struct Side {
    pub(crate) id: PeerId,
    pub(crate) net: Net,
    pub(crate) store: Arc<TestStore>,
    events: mpsc::Receiver<NetEvent>,
    pub(super) record: PeerRecord,
    pub(super) address: Multiaddr,
}

impl Side {
    /// The first event that `pick` accepts. Earlier events are dropped.
    pub(crate) async fn until<T>(&mut self, mut pick: impl FnMut(NetEvent) -> Option<T>) -> T {
        let picked = async {
            loop {
                let event = self.events.recv().await.expect("the network runs");
                if let Some(picked) = pick(event) {
                    return picked;
                }
            }
        };
        timeout(WAIT, picked)
            .await
            .expect("the event comes in time")
    }

    /// The addresses of a daemon that listens on two.
    pub(super) async fn both_addresses(&mut self) -> Vec<Multiaddr> {
        while self.record.addresses.len() < 2 {
            self.record = self
                .until(|event| match event {
                    NetEvent::Record(record) => Some(record),
                    _ => None,
                })
                .await;
        }
        let bytes = self.record.addresses.iter();
        bytes
            .map(|bytes| Multiaddr::try_from(bytes.clone()).unwrap())
            .collect()
    }

    pub(super) async fn up(&mut self, peer: PeerId) {
        self.until(|event| (event == NetEvent::LinkUp(peer)).then_some(()))
            .await;
    }

    pub(super) async fn down(&mut self, peer: PeerId) {
        self.until(|event| (event == NetEvent::LinkDown(peer)).then_some(()))
            .await;
    }

    /// It closes its link to a peer that is no longer a member.
    pub(super) async fn dismisses(&mut self, peer: PeerId) {
        self.until(|event| matches!(event, NetEvent::Dismissed(of, _) if of == peer).then_some(()))
            .await;
    }

    async fn frame(&mut self) -> (PeerId, Vec<u8>) {
        self.until(|event| match event {
            NetEvent::Frame { from, bytes } => Some((from, bytes)),
            _ => None,
        })
        .await
    }
}

/// A member of an open run.
pub(crate) fn open_config(identity: Keypair) -> NetConfig {
    let me = from_libp2p(&identity.public().to_peer_id()).unwrap();
    let membership = Membership::open(RunId::from_bytes([1; 32]), me);
    NetConfig::new(identity, Arc::new(membership))
}

fn config(listen: &[&str]) -> NetConfig {
    let mut config = open_config(Keypair::generate_ed25519());
    config.listen = listen.iter().map(|a| a.parse().unwrap()).collect();
    config
}

/// A swarm without our checks, whose key is new.
pub(super) fn raw_swarm() -> Swarm<Behaviour> {
    raw(&config(&[]), None).1
}

/// An endpoint without our checks, which opens bulk connections to one peer, and its swarm.
fn raw(config: &NetConfig, to: Option<identity::PeerId>) -> (Endpoint, Swarm<Behaviour>) {
    let members = Members::default();
    to.into_iter().for_each(|to| members.add(to));
    let (quic, transport) = quic::endpoint(config, members).unwrap();
    let cells = Arc::new(WireCells::default());
    let bounds = (&Members::default(), &Unproven::new().unwrap());
    let swarm = behaviour::swarm(config, transport, &cells, bounds).unwrap();
    (quic, swarm)
}

pub(crate) async fn started(config: NetConfig, store: TestStore) -> Side {
    started_within(config, store, BulkLimits::default()).await
}

async fn started_within(config: NetConfig, store: TestStore, limits: BulkLimits) -> Side {
    let id = from_libp2p(&config.identity.public().to_peer_id()).unwrap();
    let store = Arc::new(store);
    let (net, mut events) = start(config, store.clone(), limits).unwrap();
    let mut address = None;
    let record = timeout(WAIT, async {
        loop {
            match events.recv().await.unwrap() {
                NetEvent::Listening(listening) => address = Some(listening),
                NetEvent::Record(record) => return record,
                _ => {}
            }
        }
    });
    let record = record.await.unwrap();
    Side {
        id,
        net,
        store,
        events,
        record,
        address: address.unwrap(),
    }
}

pub(crate) async fn side() -> Side {
    side_with(TestStore::default()).await
}

pub(crate) async fn side_with(store: TestStore) -> Side {
    started(config(&[QUIC]), store).await
}

pub(crate) async fn side_within(limits: BulkLimits) -> Side {
    started_within(config(&[QUIC]), TestStore::default(), limits).await
}

pub(crate) async fn tcp_side() -> Side {
    started(config(&[TCP]), TestStore::default()).await
}

pub(crate) async fn link(a: &mut Side, b: &mut Side) {
    a.net.dial(b.record.clone()).unwrap();
    a.up(b.id).await;
    b.up(a.id).await;
}

/// A peer without our checks that holds a control connection. The test makes its bulk connections.
pub(crate) struct Raw {
    pub(crate) id: PeerId,
    pub(crate) quic: Endpoint,
    to: identity::PeerId,
}

impl Raw {
    pub(crate) async fn beside(to: &Side) -> Self {
        let config = config(&[]);
        let id = from_libp2p(&config.identity.public().to_peer_id()).unwrap();
        let theirs = to_libp2p(&to.id).unwrap();
        let (quic, mut swarm) = raw(&config, Some(theirs));
        swarm.dial(to.address.clone()).unwrap();
        let (reply, gate) = oneshot::channel();
        tokio::spawn(async move {
            let mut reply = Some(reply);
            loop {
                if let SwarmEvent::ConnectionEstablished {
                    peer_id,
                    connection_id,
                    ..
                } = swarm.select_next_some().await
                    && let Some(reply) = reply.take()
                {
                    let streams = &mut swarm.behaviour_mut().streams;
                    streams.hear(peer_id, connection_id, oneshot::channel().0);
                    streams.open(peer_id, connection_id, Kind::Gate, reply);
                }
            }
        });
        let mut gate = timeout(WAIT, gate).await.unwrap().unwrap().unwrap();
        quic.prove(theirs);
        pass(&mut gate, &config.membership, to.id).await;
        Self {
            id,
            quic,
            to: theirs,
        }
    }

    pub(crate) async fn bulk(&self) -> Result<BulkConnection, Error> {
        self.quic.dial_bulk_beside(self.to).await
    }
}
