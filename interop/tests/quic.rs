//! The QUIC endpoint with libp2p's own QUIC, over loopback only.

#![allow(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

#[path = "../../net/tests/quic/echo.rs"]
mod echo;
#[allow(dead_code, reason = "the tests of net use the rest")]
#[path = "../../net/tests/quic/support.rs"]
mod support;

use libp2p::Swarm;
use libp2p::core::Transport as _;
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::identity::Keypair;
use libp2p::swarm::SwarmEvent;
use murmurate_net::quic::{Config, Error};
use support::{Behaviour, node, our_swarm, swarm_address, swarm_over, talk, within};

/// A swarm over libp2p's own QUIC.
fn stock_swarm() -> Swarm<Behaviour> {
    let identity = Keypair::generate_ed25519();
    let boxed = libp2p::quic::tokio::Transport::new(libp2p::quic::Config::new(&identity))
        .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)))
        .boxed();
    swarm_over(&identity, boxed)
}

#[tokio::test]
async fn we_dial_stock_libp2p() {
    within(talk(
        our_swarm(),
        stock_swarm(),
        "/ip4/127.0.0.1/udp/0/quic-v1",
    ))
    .await;
}

#[tokio::test]
async fn stock_libp2p_dials_us() {
    within(talk(
        stock_swarm(),
        our_swarm(),
        "/ip4/127.0.0.1/udp/0/quic-v1",
    ))
    .await;
}

#[tokio::test]
async fn stock_libp2p_dials_a_wildcard_listener() {
    within(talk(
        stock_swarm(),
        our_swarm(),
        "/ip4/0.0.0.0/udp/0/quic-v1",
    ))
    .await;
}

#[tokio::test]
async fn a_stock_peer_speaks_no_bulk() {
    within(async {
        use futures::StreamExt;
        let mut stock = stock_swarm();
        let at = swarm_address(&mut stock, "/ip4/127.0.0.1/udp/0/quic-v1").await;
        let peer = *stock.local_peer_id();
        let here = node(Config::default());
        let dial = here.endpoint.dial_bulk(&at, peer);
        tokio::pin!(dial);
        let refused = loop {
            tokio::select! {
                dialed = &mut dial => break dialed.unwrap_err(),
                event = stock.select_next_some() => {
                    assert!(!matches!(event, SwarmEvent::ConnectionEstablished { .. }));
                }
            }
        };
        assert!(
            matches!(refused, Error::Unsupported("murmurate-bulk/1")),
            "{refused}"
        );
    })
    .await;
}
