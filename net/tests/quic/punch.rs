//! Hole punching: the packets of the listening side, and the peers that it admits.

use crate::support::{node, within};
use libp2p::core::Endpoint as Role;
use libp2p::core::Transport as _;
use libp2p::core::transport::{DialOpts, PortUse, TransportError};
use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use murmurate_net::quic::{Config, Error, QuicAddr, multiaddr_of};
use std::time::Duration;

#[tokio::test]
async fn the_peer_one_waits_for_comes_through() {
    within(async {
        let (mut here, mut there) = (node(Config::default()), node(Config::default()));
        let (at, from) = (here.listen(), there.listen());
        let punch = here.dial(&from.with(Protocol::P2p(there.peer)), Role::Listener);
        let dial = there.dial(&at.with(Protocol::P2p(here.peer)), Role::Dialer);
        let (came, went) = tokio::join!(punch, dial);
        assert_eq!(came.unwrap().0, there.peer);
        assert_eq!(went.unwrap().0, here.peer);
    })
    .await;
}

#[tokio::test]
async fn another_peer_goes_the_usual_way() {
    within(async {
        let mut here = node(Config::default());
        let (mut there, mut somebody) = (node(Config::default()), node(Config::default()));
        let (at, from) = (here.listen(), there.listen());
        let waiting = from.with(Protocol::P2p(there.peer));
        let punch = tokio::spawn(here.dial(&waiting, Role::Listener));
        let dial = tokio::spawn(somebody.dial(&at, Role::Dialer));
        assert_eq!(here.incoming().await.0, somebody.peer);
        dial.await.unwrap().unwrap();
        let dial = tokio::spawn(there.dial(&at, Role::Dialer));
        assert_eq!(punch.await.unwrap().unwrap().0, there.peer);
        dial.await.unwrap().unwrap();
    })
    .await;
}

#[tokio::test]
async fn packets_open_the_hole_from_the_listening_port_until_the_time_is_up() {
    within(async {
        let config = Config {
            handshake_timeout: Duration::from_millis(500),
            ..Config::default()
        };
        let mut here = node(config);
        let at = QuicAddr::parse(&here.listen()).unwrap().socket;
        let nat = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let peer = Keypair::generate_ed25519().public().to_peer_id();
        let to = multiaddr_of(nat.local_addr().unwrap()).with(Protocol::P2p(peer));
        let punch = tokio::spawn(here.dial(&to, Role::Listener));
        let mut packets = [[0; 100]; 2];
        for packet in &mut packets {
            let (length, from) = nat.recv_from(packet).await.unwrap();
            assert_eq!((length, from), (64, at));
        }
        assert_ne!(packets[0], packets[1]);
        let opts = DialOpts {
            role: Role::Listener,
            port_use: PortUse::New,
        };
        let again = here.transport.dial(to.clone(), opts);
        assert!(matches!(
            again,
            Err(TransportError::Other(Error::PunchBusy(_)))
        ));
        let late = punch.await.unwrap();
        assert!(matches!(late, Err(Error::PunchTimeout { .. })));
        assert!(here.transport.dial(to, opts).is_ok(), "one may try again");
    })
    .await;
}

#[tokio::test]
async fn a_punch_needs_a_peer_and_a_port() {
    let mut here = node(Config::default());
    let opts = DialOpts {
        role: Role::Listener,
        port_use: PortUse::New,
    };
    let to = multiaddr_of(([127, 0, 0, 1], 9).into());
    let unnamed = here.transport.dial(to.clone(), opts);
    assert!(matches!(
        unnamed,
        Err(TransportError::Other(Error::PunchNeedsPeer(_)))
    ));
    let peer = Keypair::generate_ed25519().public().to_peer_id();
    let portless = here.transport.dial(to.with(Protocol::P2p(peer)), opts);
    assert!(matches!(
        portless,
        Err(TransportError::Other(Error::NoListener))
    ));
}
