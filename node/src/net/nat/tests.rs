//! The networks of three daemons on an emulated network: a public one that relays, and two behind
//! routers. Every wait is for an event.
#![cfg(target_os = "linux")]

use crate::bulk::tests::TestStore;
use crate::bulk::{BulkEvent, BulkLimits, BulkStore};
use crate::net::tests::{WAIT, open_config};
use crate::net::{NatReport, Net, NetConfig, NetEvent, Path, Reachability, from_libp2p, start};
use bytes::Bytes;
use libp2p::Multiaddr;
use libp2p::identity::Keypair;
use murmurate_net::emulate::{LinkSpec, NatKind, Relay, Seat};
use murmurate_protocol::wire::PeerRecord;
use murmurate_protocol::{
    FragmentId, Part, PeerId, PushOutcome, Round, SliceId, SliceMeta, SortedMap, SortedSet, Tag,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{timeout, timeout_at};

/// Size of the slice between the two daemons behind routers: far more than all other traffic.
const SLICE_BYTES: usize = 8 << 20;

struct Daemon {
    id: PeerId,
    net: Net,
    store: Arc<TestStore>,
    events: mpsc::Receiver<NetEvent>,
    seat: Seat,
    address: Multiaddr,
    record: Option<PeerRecord>,
    nat: NatReport,
    paths: SortedMap<PeerId, Path>,
}

impl Daemon {
    /// The first event that `pick` accepts. Records and reports on the way are stored.
    async fn until<T>(&mut self, what: &str, mut pick: impl FnMut(&NetEvent) -> Option<T>) -> T {
        let picked = async {
            loop {
                let event = self.events.recv().await.expect("the network runs");
                match &event {
                    NetEvent::Record(record) => self.record = Some(record.clone()),
                    NetEvent::Nat(report) => self.nat = report.clone(),
                    NetEvent::Path { peer, path, .. } => {
                        self.paths.insert(*peer, *path);
                    }
                    _ => {}
                }
                if let Some(picked) = pick(&event) {
                    return picked;
                }
            }
        };
        timeout(WAIT, picked)
            .await
            .unwrap_or_else(|_| panic!("no {what} in time; {:?}", self.nat))
    }

    /// Waits until the link to `peer` has this path.
    async fn path(&mut self, peer: PeerId, wanted: Path) {
        if self.paths.get(&peer) == Some(&wanted) {
            return;
        }
        self.until("path", |event| match event {
            NetEvent::Path { peer: of, path, .. } => (*of == peer && *path == wanted).then_some(()),
            _ => None,
        })
        .await;
    }

    /// Waits until the link to `peer` goes through another daemon, and says which.
    async fn relayed(&mut self, peer: PeerId) -> PeerId {
        if let Some(Path::Relayed(Some(relay))) = self.paths.get(&peer) {
            return *relay;
        }
        self.until("relayed link", |event| match event {
            NetEvent::Path {
                peer: of,
                path: Path::Relayed(Some(relay)),
                ..
            } if *of == peer => Some(*relay),
            _ => None,
        })
        .await
    }

    /// Waits for a record with an address that goes through a relay.
    async fn reserved(&mut self) -> PeerRecord {
        self.until("reservation", |event| match event {
            NetEvent::Record(record) if !record.addresses.is_empty() => Some(record.clone()),
            _ => None,
        })
        .await
    }
}

/// A daemon behind a router of this kind. One without a router relays for all.
fn daemon(network: &mut Relay, nat: NatKind, port: u16, join: &[Multiaddr]) -> Daemon {
    seated(network, nat, port, |config| {
        config.relay = nat == NatKind::None;
        config.join = join.to_vec();
    })
}

/// A daemon behind a router of this kind, whose configuration is changed by `set`.
fn seated(
    network: &mut Relay,
    nat: NatKind,
    port: u16,
    set: impl FnOnce(&mut NetConfig),
) -> Daemon {
    let seat = network.add(nat, LinkSpec::default()).unwrap();
    let identity = Keypair::generate_ed25519();
    let id = from_libp2p(&identity.public().to_peer_id()).unwrap();
    let at = |ip| -> Multiaddr { format!("/ip4/{ip}/udp/{port}/quic-v1").parse().unwrap() };
    let mut config = open_config(identity);
    config.listen = vec![at(seat.inner)];
    set(&mut config);
    config.announce = Some(Vec::new());
    if nat == NatKind::None {
        network.publish_udp(seat, port).unwrap();
        config.announce = Some(vec![at(seat.public)]);
    }
    let store = Arc::new(TestStore::default());
    let (net, events) = start(config, store.clone(), BulkLimits::default()).unwrap();
    Daemon {
        id,
        net,
        store,
        events,
        seat,
        address: at(seat.public),
        record: None,
        nat: NatReport::default(),
        paths: SortedMap::new(),
    }
}

/// A daemon that relays, and two behind such routers, of which the second has dialled the first.
async fn three(network: &mut Relay, nat: NatKind) -> [Daemon; 3] {
    let middle = daemon(network, NatKind::None, 4001, &[]);
    let join = [middle.address.clone()];
    let mut one = daemon(network, nat, 4002, &join);
    let record = one.reserved().await;
    let mut two = daemon(network, nat, 4003, &join);
    let (middle_id, one_id) = (middle.id, one.id);
    two.until("link", |event| {
        (*event == NetEvent::LinkUp(middle_id)).then_some(())
    })
    .await;
    two.net.dial(record).unwrap();
    two.until("link", |event| {
        (*event == NetEvent::LinkUp(one_id)).then_some(())
    })
    .await;
    [middle, one, two]
}

/// Pushes a slice from one daemon to another. Returns the bytes that the relay received meanwhile.
async fn push(network: &Relay, middle: &Daemon, from: &mut Daemon, to: PeerId) -> u64 {
    let id = SliceId {
        round: Round(3),
        fragment: FragmentId(1),
        shard: 0,
        part: Part::Contribution,
        origin: from.id,
        attempt: murmurate_protocol::Attempt(0),
    };
    let meta = SliceMeta {
        of: 1,
        bytes: SLICE_BYTES as u64,
        tag: Tag::Mass { weight: 1.0 },
    };
    from.store
        .put(from.id, id, meta, Bytes::from(vec![7; SLICE_BYTES]));
    let before = network.counters(middle.seat).down.delivered.bytes;
    from.net
        .push(to, id, meta, 0, Instant::now() + WAIT)
        .unwrap();
    let outcome = from.until("outcome", |event| match event {
        NetEvent::Bulk(BulkEvent::Pushed { outcome, .. }) => Some(*outcome),
        _ => None,
    });
    assert_eq!(outcome.await, PushOutcome::Delivered);
    network.counters(middle.seat).down.delivered.bytes - before
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_port_restricted_routers_a_hole_is_punched_and_bulk_goes_through_it() {
    let mut network = Relay::start(1).unwrap();
    let [middle, mut one, mut two] = three(&mut network, NatKind::PortRestricted).await;
    // The link moves during this loop, and its frames stay in order.
    for n in 0..100u8 {
        two.net.try_send(one.id, vec![n]).unwrap();
    }
    two.path(one.id, Path::Punched).await;
    for n in 100..200u8 {
        two.net.try_send(one.id, vec![n]).unwrap();
    }
    let from = two.id;
    for n in 0..200u8 {
        let frame = |event: &NetEvent| match event {
            NetEvent::Frame { from: of, bytes } if *of == from => Some(bytes.clone()),
            _ => None,
        };
        assert_eq!(one.until("frame", frame).await, [n]);
    }
    one.path(two.id, Path::Punched).await;
    let relayed = push(&network, &middle, &mut two, one.id).await;
    assert!(
        relayed < SLICE_BYTES as u64 / 4,
        "{relayed} bytes over the relay"
    );
    assert_eq!(one.nat.reach.state, Reachability::Private);
    assert_eq!(one.nat.relays, [middle.id]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_symmetric_routers_the_relay_carries_bulk() {
    let mut network = Relay::start(1).unwrap();
    let [middle, mut one, mut two] = three(&mut network, NatKind::Symmetric).await;
    let relayed = push(&network, &middle, &mut two, one.id).await;
    assert!(
        relayed > SLICE_BYTES as u64,
        "{relayed} bytes over the relay"
    );
    // Both ends report the reason.
    let (first, second) = (one.id, two.id);
    for (end, other) in [(&mut two, first), (&mut one, second)] {
        let failed = |event: &NetEvent| match event {
            NetEvent::Path {
                peer, path, reason, ..
            } if *peer == other && reason.contains("no direct") => Some(*path),
            _ => None,
        };
        let path = end.until("failure", failed).await;
        assert_eq!(path, Path::Relayed(Some(middle.id)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_full_cone_router_a_daemon_learns_that_it_can_be_dialled() {
    let mut network = Relay::start(1).unwrap();
    let middle = daemon(&mut network, NatKind::None, 4001, &[]);
    let join = [middle.address.clone()];
    let mut one = daemon(&mut network, NatKind::FullCone, 4002, &join);
    let public = one.until("verdict", |event| match event {
        NetEvent::Nat(report) if report.reach.state == Reachability::Public => {
            Some(report.reach.clone())
        }
        _ => None,
    });
    let reach = public.await;
    assert!(reach.reason.contains("AutoNAT"), "{}", reach.reason);
    let address = reach.address.unwrap();
    let outer = format!("/ip4/{}/udp/", one.seat.public);
    assert!(address.to_string().starts_with(&outer), "{address}");
    let announced = one.until("record", |event| match event {
        NetEvent::Record(record) => record.addresses.contains(&address.to_vec()).then_some(()),
        _ => None,
    });
    announced.await;
    let mut two = daemon(&mut network, NatKind::Symmetric, 4003, &join);
    two.net.dial(one.record.clone().unwrap()).unwrap();
    two.path(one.id, Path::Direct).await;
    drop(middle);
}

/// A daemon that everyone can dial, as any member is that does nothing for others by request.
fn member(network: &mut Relay, port: u16, join: &[Multiaddr]) -> Daemon {
    seated(network, NatKind::None, port, |config| {
        config.join = join.to_vec();
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_link_goes_through_a_common_member_then_another_and_is_direct_when_it_is_there_again()
 {
    let mut network = Relay::start(1).unwrap();
    let first = member(&mut network, 4001, &[]);
    let second = member(&mut network, 4002, &[]);
    let join = [first.address.clone(), second.address.clone()];
    let mut one = member(&mut network, 4003, &join);
    let mut two = member(&mut network, 4004, &join);
    network.cut(one.seat, two.seat, Duration::ZERO..Duration::MAX);
    for end in [&mut one, &mut two] {
        let mut there = SortedSet::from([first.id, second.id]);
        end.until("links", |event| match event {
            NetEvent::LinkUp(peer) => (there.remove(peer) && there.is_empty()).then_some(()),
            _ => None,
        })
        .await;
    }
    let records = [one.record.clone().unwrap(), two.record.clone().unwrap()];
    let (of_one, of_two) = (one.id, two.id);
    let [to_one, to_two] = records;
    one.net.dial(to_two.clone()).unwrap();
    two.net.dial(to_one).unwrap();
    // Where both ends dial at once there may be two circuits, and each end uses one of them.
    two.relayed(of_one).await;
    let relay = one.relayed(of_two).await;
    let (carrier, other) = if relay == first.id {
        (first, second)
    } else {
        (second, first)
    };
    assert_eq!(relay, carrier.id);
    let carried = push(&network, &carrier, &mut one, of_two).await;
    assert!(carried > SLICE_BYTES as u64, "{carried} bytes carried");
    // The member that carries it goes away.
    drop(carrier);
    one.path(of_two, Path::Relayed(Some(other.id))).await;
    two.path(of_one, Path::Relayed(Some(other.id))).await;
    // The two can reach each other again.
    network.mend();
    one.path(of_two, Path::Direct).await;
    two.path(of_one, Path::Direct).await;
    for end in [&mut one, &mut two] {
        if !end.nat.relays.is_empty() {
            end.until("end of reservations", |event| match event {
                NetEvent::Nat(report) => report.relays.is_empty().then_some(()),
                _ => None,
            })
            .await;
        }
        assert_eq!(end.nat.reach.state, Reachability::Public);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_member_carries_links_none_is_made_and_nothing_is_reserved() {
    let mut network = Relay::start(1).unwrap();
    let unwilling = |config: &mut NetConfig| config.carry_links = false;
    let mut middle = seated(&mut network, NatKind::None, 4001, unwilling);
    let report = |event: &NetEvent| match event {
        NetEvent::Nat(report) => Some(report.clone()),
        _ => None,
    };
    assert_eq!(middle.until("report", report).await.serving, None);
    let join = [middle.address.clone()];
    let mut one = member(&mut network, 4002, &join);
    let mut two = member(&mut network, 4003, &join);
    network.cut(one.seat, two.seat, Duration::ZERO..Duration::MAX);
    for end in [&mut one, &mut two] {
        let up = |event: &NetEvent| matches!(event, NetEvent::LinkUp(_)).then_some(());
        end.until("link", up).await;
    }
    one.net.dial(two.record.clone().unwrap()).unwrap();
    two.net.dial(one.record.clone().unwrap()).unwrap();
    // Longer than a link through a willing member takes.
    let deadline = Instant::now() + Duration::from_secs(8);
    for end in [&mut one, &mut two] {
        while let Ok(event) = timeout_at(deadline.into(), end.events.recv()).await {
            match event.expect("the network runs") {
                NetEvent::LinkUp(peer) => panic!("{peer} is linked"),
                NetEvent::Nat(report) => assert!(report.relays.is_empty(), "{report:?}"),
                _ => {}
            }
        }
    }
    drop(middle);
}
