//! Our QUIC over emulated links and routers: its sockets' counters, and which daemons can reach
//! each other.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

use libp2p::core::transport::{DialOpts, PortUse};
use libp2p::core::{Endpoint as Role, Transport as _};
use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId};
use murmurate_net::emulate::{NatKind, Relay, Seat};
use murmurate_net::quic::{BulkConnection, Config, Endpoint, Kind, Transport, multiaddr_of};
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Ends a test that hangs.
const PATIENCE: Duration = Duration::from_secs(60);

struct Daemon {
    seat: Seat,
    endpoint: Endpoint,
    transport: Transport,
    peer: PeerId,
    public: SocketAddr,
}

fn daemon(relay: &mut Relay, nat: NatKind, link: &str, config: Config) -> Daemon {
    let seat = relay.add(nat, link.parse().unwrap()).unwrap();
    let port = 4_000 + relay.seats().len() as u16;
    let admit_all = |_: &PeerId, _: Kind| true;
    let identity = Keypair::generate_ed25519();
    let (endpoint, transport) = Endpoint::new(config, &identity, Arc::new(admit_all)).unwrap();
    let inner = SocketAddrV4::new(seat.inner, port);
    endpoint.listen(inner.into()).unwrap();
    if nat == NatKind::None {
        relay.publish_udp(seat, port).unwrap();
    }
    Daemon {
        seat,
        peer: endpoint.local_peer_id(),
        endpoint,
        transport,
        public: SocketAddrV4::new(seat.public, port).into(),
    }
}

/// A bulk connection, from the view of the dialler and of the listener.
async fn bulk(from: &Daemon, to: &Daemon) -> (BulkConnection, BulkConnection) {
    let address = multiaddr_of(to.public);
    let both = async {
        tokio::join!(
            from.endpoint.dial_bulk(&address, to.peer),
            to.endpoint.accept_bulk()
        )
    };
    let (ours, theirs) = timeout(PATIENCE, both).await.expect("the test hangs");
    (ours.unwrap(), theirs.unwrap())
}

async fn transfer(from: &BulkConnection, to: &BulkConnection, bytes: usize) {
    let sending = async {
        let mut stream = from.open_uni().await.unwrap();
        stream.write_all(&vec![7; bytes]).await.unwrap();
        stream.finish().unwrap();
        stream.stopped().await.unwrap();
    };
    let receiving = async {
        let mut stream = to.accept_uni().await.unwrap();
        assert_eq!(stream.read_to_end(bytes).await.unwrap().len(), bytes);
    };
    let both = async { tokio::join!(sending, receiving) };
    timeout(PATIENCE, both).await.expect("the test hangs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_links_count_the_bytes_that_the_sockets_count() {
    let mut relay = Relay::start(1).unwrap();
    let link = "100mbit/8ms/0.5%";
    let a = daemon(&mut relay, NatKind::None, link, Config::default());
    let b = daemon(&mut relay, NatKind::None, link, Config::default());
    let (ours, theirs) = bulk(&a, &b).await;
    assert_eq!(
        (ours.remote_address(), theirs.remote_address()),
        (b.public, a.public)
    );
    transfer(&ours, &theirs, 1_000_000).await;
    // The last acknowledgements may be in transit. Once none is, all four counters agree. A listener's connection
    // also counts what its socket keeps back of the first flight, and its endpoint does not.
    let agreed = async {
        loop {
            let (up_a, up_b) = (relay.counters(a.seat).up, relay.counters(b.seat).up);
            let counted = (up_a.offered.bytes, up_b.offered.bytes);
            if counted == (ours.stats().sent_bytes, b.endpoint.traffic().sent) {
                return (up_a, up_b);
            }
            tokio::task::yield_now().await;
        }
    };
    let (up, _) = timeout(PATIENCE, agreed)
        .await
        .expect("the counts never agree");
    assert!(
        up.offered.bytes > 1_000_000 && up.dropped_loss.packets > 0,
        "{up:?}"
    );
    assert_eq!((relay.strangers().packets, relay.unsent().packets), (0, 0));
}

/// A public third daemon knows the outer addresses of both, and both begin at the same time.
async fn punched(nat: NatKind) -> Result<(), String> {
    let mut relay = Relay::start(1).unwrap();
    let config = || Config {
        handshake_timeout: match nat {
            NatKind::PortRestricted => Duration::from_secs(20),
            // How long the test waits for a connection that cannot be made.
            _ => Duration::from_secs(1),
        },
        ..Config::default()
    };
    let link = "100mbit/10ms/0%";
    let meeting = daemon(&mut relay, NatKind::None, link, config());
    let mut a = daemon(&mut relay, nat, link, config());
    let mut b = daemon(&mut relay, nat, link, config());
    let (_keep_a, seen_a) = bulk(&a, &meeting).await;
    let (_keep_b, seen_b) = bulk(&b, &meeting).await;
    let to = |seen: &BulkConnection, peer| -> Multiaddr {
        multiaddr_of(seen.remote_address()).with(Protocol::P2p(peer))
    };
    let options = |role| DialOpts {
        role,
        port_use: PortUse::Reuse,
    };
    let dial = a
        .transport
        .dial(to(&seen_b, b.peer), options(Role::Dialer))
        .unwrap();
    let punch = b
        .transport
        .dial(to(&seen_a, a.peer), options(Role::Listener))
        .unwrap();
    let (dialed, came) = tokio::join!(dial, punch);
    let _dialed = dialed.map_err(|e| e.to_string())?;
    let _came = came.map_err(|e| e.to_string())?;
    // Bulk connections use the same hole directly.
    let before = relay.counters(meeting.seat);
    let both = async {
        tokio::join!(
            a.endpoint.dial_bulk_beside(b.peer),
            b.endpoint.accept_bulk()
        )
    };
    let (ours, theirs) = timeout(PATIENCE, both).await.expect("the test hangs");
    let (ours, theirs) = (ours.map_err(|e| e.to_string())?, theirs.unwrap());
    transfer(&ours, &theirs, 300_000).await;
    let passed = relay.counters(meeting.seat).down.offered.bytes - before.down.offered.bytes;
    assert!(passed < 10_000, "{passed} bytes went to the meeting place");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulk_goes_directly_between_two_port_restricted_routers() {
    punched(NatKind::PortRestricted).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_hole_can_be_punched_between_two_symmetric_routers() {
    assert!(punched(NatKind::Symmetric).await.is_err());
}
