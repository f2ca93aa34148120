//! Bulk connections over TLS and TCP: who may connect, and what happens to the others.

#![allow(clippy::unwrap_used, reason = "tests")]

use bytes::Bytes;
use libp2p::PeerId;
use libp2p::identity::Keypair;
use murmurate_net::mux::MuxError;
use murmurate_net::quic::Config;
use murmurate_net::tcp::{Connection, Endpoint, Error, OFFER_BYTES, Offer};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

struct Node {
    endpoint: Endpoint,
    peer: PeerId,
    at: SocketAddr,
}

fn node_with(config: &Config) -> Node {
    let identity = Keypair::generate_ed25519();
    let admit = |_: &PeerId, _| true;
    let endpoint = Endpoint::new(config, &identity, Arc::new(admit)).unwrap();
    let at = endpoint.listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let peer = identity.public().to_peer_id();
    Node { endpoint, peer, at }
}

fn node() -> Node {
    node_with(&Config::default())
}

async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what)
        .await
        .expect("the test hangs")
}

async fn linked(near: &Node, far: &Node) -> (Connection, Connection) {
    let offer = far.endpoint.offer(near.peer, near.at).unwrap();
    let (dialed, accepted) = tokio::join!(
        near.endpoint.dial(far.peer, far.at, offer),
        far.endpoint.accept()
    );
    (dialed.unwrap(), accepted.unwrap())
}

#[tokio::test]
async fn bytes_pass_both_ways_and_are_counted() {
    within(async {
        let (near, far) = (node(), node());
        let (a, b) = linked(&near, &far).await;
        assert_eq!((a.peer(), b.peer()), (far.peer, near.peer));
        let sent: Bytes = (0..30_000_000u32).map(|i| (i % 251) as u8).collect();
        for (from, to) in [(&a, &b), (&b, &a)] {
            let send = async {
                let (mut send, _) = from.session().open_bi().unwrap();
                send.write(sent.clone()).await.unwrap();
                send.finish().unwrap();
            };
            let receive = async {
                let (_, mut receive) = to.session().accept_bi().await.unwrap();
                let mut all = Vec::new();
                loop {
                    let bytes = receive.read(usize::MAX).await.unwrap();
                    if bytes.is_empty() {
                        break all;
                    }
                    all.extend_from_slice(&bytes);
                }
            };
            let ((), got) = tokio::join!(send, receive);
            assert!(got == sent, "other bytes arrived");
        }
        if cfg!(target_os = "linux") {
            let info = a.info().unwrap();
            assert!(info.sent > 400 && info.min_rtt <= info.rtt, "{info:?}");
        }
        let volume = near.endpoint.volumes()[&far.peer];
        assert!(volume.sent > 30_000_000 && volume.received > 30_000_000);
        drop(a);
        b.session().closed().await;
        let past = near.endpoint.volumes()[&far.peer];
        assert!(past.sent >= volume.sent, "closed connections still count");
    })
    .await;
}

#[tokio::test]
async fn a_token_is_for_one_peer() {
    within(async {
        let (near, far, thief) = (node(), node(), node());
        let offer = far.endpoint.offer(near.peer, near.at).unwrap();
        let stolen = thief.endpoint.dial(far.peer, far.at, offer).await;
        assert!(matches!(stolen, Err(Error::Token)), "{stolen:?}");
        let mut other = offer.encode();
        other[OFFER_BYTES - 1] ^= 1;
        let other = Offer::decode(&other).unwrap();
        let guessed = near.endpoint.dial(far.peer, far.at, other).await;
        assert!(matches!(guessed, Err(Error::Token)), "{guessed:?}");
        far.endpoint.forget(&near.peer);
        let late = near.endpoint.dial(far.peer, far.at, offer).await;
        assert!(matches!(late, Err(Error::Token)), "{late:?}");
    })
    .await;
}

#[tokio::test]
async fn a_peer_that_is_not_who_it_claims_is_refused() {
    within(async {
        let (near, far) = (node(), node());
        let offer = far.endpoint.offer(near.peer, near.at).unwrap();
        let meant = PeerId::random();
        let refused = near.endpoint.dial(meant, far.at, offer).await;
        assert!(
            matches!(&refused, Err(Error::WrongPeer(mismatch))
                if mismatch.expected == meant && mismatch.found == far.peer),
            "{refused:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_peer_has_two_connections_at_most_and_none_after_it_is_forgotten() {
    within(async {
        let (near, far) = (node(), node());
        let (first, _far_first) = linked(&near, &far).await;
        let (_second, _far_second) = linked(&near, &far).await;
        let offer = far.endpoint.offer(near.peer, near.at).unwrap();
        let third = near.endpoint.dial(far.peer, far.at, offer).await;
        assert!(matches!(third, Err(Error::Token)), "{third:?}");
        far.endpoint.forget(&near.peer);
        first.session().closed().await;
        assert!(matches!(first.session().ended(), Some(MuxError::Ended)));
    })
    .await;
}

#[tokio::test]
async fn a_taken_a_closed_and_a_silent_port_are_told_apart() {
    within(async {
        let config = Config {
            handshake_timeout: Duration::from_millis(300),
            ..Config::default()
        };
        let (near, far) = (node_with(&config), node_with(&config));
        let taken = near.endpoint.listen(far.at).unwrap_err().to_string();
        assert!(
            taken.starts_with(&format!("cannot listen on tcp {}", far.at)),
            "{taken}"
        );

        let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let at = silent.local_addr().unwrap();
        let mut offer = far.endpoint.offer(near.peer, near.at).unwrap().encode();
        offer[1..3].copy_from_slice(&at.port().to_le_bytes());
        let offer = Offer::decode(&offer).unwrap();
        let waited = near.endpoint.dial(far.peer, far.at, offer).await;
        assert!(
            matches!(waited, Err(Error::Timeout { addr, .. }) if addr == at),
            "{waited:?}"
        );
        drop(silent);
        let closed = near.endpoint.dial(far.peer, far.at, offer).await;
        assert!(
            matches!(closed, Err(Error::Unreachable { .. })),
            "{closed:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_stranger_that_says_nothing_or_nonsense_is_dropped() {
    within(async {
        let config = Config {
            handshake_timeout: Duration::from_millis(300),
            ..Config::default()
        };
        let far = node_with(&config);
        let mut silent = TcpStream::connect(far.at).await.unwrap();
        assert_eq!(silent.read(&mut [0; 8]).await.unwrap(), 0, "it was closed");
        let mut loud = TcpStream::connect(far.at).await.unwrap();
        loud.write_all(&[b'x'; 4096]).await.unwrap();
        let mut answer = Vec::new();
        // An alert of TLS, or a reset.
        let _ = loud.read_to_end(&mut answer).await;
        assert!(answer.len() < 64, "{answer:?}");
        let near = node();
        linked(&near, &far).await;
    })
    .await;
}
