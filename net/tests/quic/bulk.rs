//! Bulk connections: beside control connections on one port, opened by either end, and after a
//! crash.

use crate::support::{node, node_of, within};
use libp2p::core::Endpoint as Role;
use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use murmurate_net::quic::{
    BulkConnection, CloseCode, Config, ConnectionError, Error, Kind, Mismatch, QuicAddr,
    multiaddr_of,
};
use std::time::Duration;

/// Sends bytes in one direction and receives them back.
async fn there_and_back(here: &BulkConnection, there: &BulkConnection) {
    let sent: Vec<u8> = (0..1_000_003u32).map(|i| (i % 253) as u8).collect();
    for (from, to) in [(here, there), (there, here)] {
        let push = async {
            let mut stream = from.open_uni().await.unwrap();
            stream.set_priority(1).unwrap();
            stream.write_all(&sent).await.unwrap();
            stream.finish().unwrap();
        };
        let pull = async {
            let mut stream = to.accept_uni().await.unwrap();
            stream.read_to_end(sent.len()).await.unwrap()
        };
        let ((), got) = tokio::join!(push, pull);
        assert!(got == sent, "other bytes arrived");
    }
}

#[tokio::test]
async fn control_and_bulk_share_one_port_at_both_ends() {
    within(async {
        let (mut here, mut there) = (node(Config::default()), node(Config::default()));
        let at = here.listen();
        let from = QuicAddr::parse(&there.listen()).unwrap().socket;
        let dial = tokio::spawn(there.dial(&at, Role::Dialer));
        let (peer, _muxer) = here.incoming().await;
        assert_eq!(peer, there.peer);
        let _other_end = dial.await.unwrap().unwrap();

        // Either end may open a bulk connection beside the control connection, whichever end
        // dialled that.
        for (a, b) in [(&there, &here), (&here, &there)] {
            let (dialed, arrived) = tokio::join!(
                a.endpoint.dial_bulk_beside(b.peer),
                b.endpoint.accept_bulk()
            );
            let (dialed, arrived) = (dialed.unwrap(), arrived.unwrap());
            assert_eq!((dialed.peer(), arrived.peer()), (b.peer, a.peer));
            assert!(dialed.is_dialer() && !arrived.is_dialer());
            there_and_back(&dialed, &arrived).await;
            let links = here.endpoint.links();
            let kinds: Vec<Kind> = links.iter().map(|link| link.kind).collect();
            assert_eq!(kinds, [Kind::Control, Kind::Bulk]);
            assert!(links.iter().all(|link| link.remote == from), "{links:?}");
            let path = dialed.stats();
            assert!(path.sent_bytes > 1_000_003 && path.received_bytes > 1_000_003);
            assert!(path.min_rtt > Duration::ZERO && path.min_rtt <= path.rtt * 2);
            assert!(path.congestion_window > 0 && path.lost_share() < 1.0);
        }
        assert_eq!(
            here.endpoint.links().len(),
            1,
            "dropped connections are forgotten"
        );
        // The traffic of closed connections is kept: 1 MB in each direction on each of both.
        let past = here.endpoint.past()[&there.peer];
        assert!(
            past.sent > 2_000_006 && past.received > 2_000_006,
            "{past:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_bulk_dial_knows_whom_it_means() {
    within(async {
        let (here, there) = (node(Config::default()), node(Config::default()));
        let at = here.listen();
        let somebody = Keypair::generate_ed25519().public().to_peer_id();
        let refused = there.endpoint.dial_bulk(&at, somebody).await.unwrap_err();
        let Error::WrongPeer(mismatch) = refused else {
            panic!("{refused}");
        };
        let (expected, found) = (somebody, here.peer);
        assert_eq!(*mismatch, Mismatch { expected, found });
        let named = at.clone().with(Protocol::P2p(here.peer));
        let refused = there.endpoint.dial_bulk(&named, somebody).await;
        assert!(matches!(refused, Err(Error::WrongPeer(_))));
        let beside = there.endpoint.dial_bulk_beside(here.peer).await;
        assert!(matches!(beside, Err(Error::NoPath(peer)) if peer == here.peer));
        let tcp = "/ip4/127.0.0.1/tcp/1".parse().unwrap();
        let refused = there.endpoint.dial_bulk(&tcp, here.peer).await;
        assert!(matches!(refused, Err(Error::Address(addr)) if addr == tcp));
        assert!(there.endpoint.dial_bulk(&named, here.peer).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn a_full_queue_turns_bulk_away() {
    within(async {
        let mut config = Config::default();
        config.limits.bulk_queue = 1;
        config.limits.bulk_per_peer = 9;
        let here = node(config.clone());
        let there = node(config);
        let at = here.listen();
        let first = there.endpoint.dial_bulk(&at, here.peer).await.unwrap();
        let second = there.endpoint.dial_bulk(&at, here.peer).await.unwrap();
        let reason = second.closed().await;
        assert_eq!(CloseCode::of(&reason), Some(CloseCode::TooMany), "{reason}");
        let taken = here.endpoint.accept_bulk().await.unwrap();
        there_and_back(&first, &taken).await;
        here.endpoint.close().await;
        assert!(here.endpoint.accept_bulk().await.is_none());
    })
    .await;
}

/// A daemon that was killed and restarts on its port tells its peers by a stateless reset.
#[test]
fn a_restarted_peer_is_noticed_before_the_idle_timeout() {
    let config = Config {
        idle_timeout: Duration::from_secs(600),
        keep_alive: Duration::from_millis(100),
        ..Config::default()
    };
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let ours = runtime();
    let identity = Keypair::generate_ed25519();
    // On one thread, so that nothing runs between its end and that of its parts. Connections that
    // are dropped while others still run would tell their peers that they close.
    let (tell, told) = std::sync::mpsc::channel();
    let (kill, killed) = tokio::sync::oneshot::channel::<()>();
    let theirs = {
        let (identity, config) = (identity.clone(), config.clone());
        std::thread::spawn(move || {
            let alone = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let there = alone.block_on(async {
                let there = node_of(&identity, config);
                tell.send((there.peer, there.listen())).unwrap();
                let bulk = there.endpoint.accept_bulk().await.unwrap();
                let mut stream = bulk.open_uni().await.unwrap();
                stream.write_all(b"hello").await.unwrap();
                let _ = killed.await;
                (there, bulk, stream)
            });
            drop(alone);
            drop(there);
        })
    };
    let (peer, at) = told.recv().unwrap();
    let here = {
        let _inside = ours.enter();
        node(config.clone())
    };
    let bulk = ours
        .block_on(within(here.endpoint.dial_bulk(&at, peer)))
        .unwrap();
    // Until the handshake is confirmed, a client sends packets of the handshake alone, and those are
    // answered by no reset. Then only the idle timeout tells.
    ours.block_on(within(async {
        let mut stream = bulk.accept_uni().await.unwrap();
        stream.read_exact(&mut [0; 5]).await.unwrap();
    }));
    // The daemon is killed: it sends nothing more, and its socket is gone.
    kill.send(()).unwrap();
    theirs.join().unwrap();

    let again = runtime();
    let _inside = again.enter();
    let back = node_of(&identity, config);
    let socket = QuicAddr::parse(&at).unwrap().socket;
    // The system may need a moment to release the port.
    let bound = loop {
        match back.endpoint.listen(socket) {
            Err(Error::PortBusy(_)) => std::thread::yield_now(),
            other => break other.unwrap(),
        }
    };
    assert_eq!(multiaddr_of(bound), at);
    let reason = ours.block_on(within(bulk.closed()));
    assert!(matches!(reason, ConnectionError::Reset), "{reason}");
}
