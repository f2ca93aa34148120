//! The transport's contract with libp2p. `interop/` has the tests with libp2p's own QUIC.

use crate::support::{listen_on, node, our_swarm, swarm_address, talk, within};
use futures::StreamExt;
use futures::future::poll_fn;
use libp2p::Multiaddr;
use libp2p::core::transport::{ListenerId, TransportError, TransportEvent};
use libp2p::core::{Endpoint as Role, Transport as _};
use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::{DialError, SwarmEvent};
use murmurate_net::quic::{Config, Error, QuicAddr};
use std::pin::Pin;

/// Always over IPv4, and over IPv6 if the machine has it.
#[tokio::test]
async fn we_dial_ourselves_over_both_ip_versions() {
    within(talk(
        our_swarm(),
        our_swarm(),
        "/ip4/127.0.0.1/udp/0/quic-v1",
    ))
    .await;
    if let Err(error) = std::net::UdpSocket::bind("[::1]:0") {
        println!("NOT TESTED over IPv6: no socket on ::1 ({error})");
        return;
    }
    within(talk(our_swarm(), our_swarm(), "/ip6/::1/udp/0/quic-v1")).await;
}

#[tokio::test]
async fn another_peer_than_the_address_names_is_refused() {
    within(async {
        let mut there = our_swarm();
        let address = swarm_address(&mut there, "/ip4/127.0.0.1/udp/0/quic-v1").await;
        let somebody = Keypair::generate_ed25519().public().to_peer_id();
        let mut here = our_swarm();
        here.dial(address.with(Protocol::P2p(somebody))).unwrap();
        let error = loop {
            tokio::select! {
                event = here.select_next_some() => {
                    if let SwarmEvent::OutgoingConnectionError { error, .. } = event {
                        break error;
                    }
                    assert!(!matches!(event, SwarmEvent::ConnectionEstablished { .. }));
                }
                _ = there.select_next_some() => {}
            }
        };
        let DialError::Transport(errors) = error else {
            panic!("{error:?}");
        };
        let [(_, TransportError::Other(error))] = &errors[..] else {
            panic!("{errors:?}");
        };
        let found = there.local_peer_id();
        let expected = format!("{found} answers where {somebody} was expected");
        assert!(error.to_string().starts_with(&expected), "{error}");
    })
    .await;
}

#[tokio::test]
async fn two_listeners_tell_their_connections_apart() {
    within(async {
        let mut here = node(Config::default());
        let (first, first_at) =
            listen_on(&mut here.transport, "/ip4/127.0.0.1/udp/0/quic-v1").await;
        let (second, second_at) =
            listen_on(&mut here.transport, "/ip4/127.0.0.1/udp/0/quic-v1").await;
        assert_ne!(first_at, second_at);
        for (id, at) in [(second, second_at), (first, first_at)] {
            let mut there = node(Config::default());
            let dial = tokio::spawn(there.dial(&at, Role::Dialer));
            let event = here.event().await;
            let TransportEvent::Incoming {
                listener_id,
                upgrade,
                local_addr,
                ..
            } = event
            else {
                panic!("{event:?}");
            };
            assert_eq!((listener_id, local_addr), (id, at));
            assert_eq!(upgrade.await.unwrap().0, there.peer);
            assert_eq!(dial.await.unwrap().unwrap().0, here.peer);
        }
    })
    .await;
}

#[tokio::test]
async fn a_dial_leaves_through_the_listening_port() {
    within(async {
        let mut here = node(Config::default());
        let mut there = node(Config::default());
        let at = here.listen();
        let (_, from) = listen_on(&mut there.transport, "/ip4/127.0.0.1/udp/0/quic-v1").await;
        let dial = tokio::spawn(there.dial(&at, Role::Dialer));
        let event = here.event().await;
        let TransportEvent::Incoming { send_back_addr, .. } = event else {
            panic!("{event:?}");
        };
        assert_eq!(send_back_addr, from);
        dial.await.unwrap().unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_removed_listener_says_so_and_takes_no_more() {
    within(async {
        let mut here = node(Config::default());
        let (id, at) = listen_on(&mut here.transport, "/ip4/127.0.0.1/udp/0/quic-v1").await;
        let mut there = node(Config::default());
        let dial = tokio::spawn(there.dial(&at, Role::Dialer));
        let (_, muxer) = here.incoming().await;
        let (_, _other_end) = dial.await.unwrap().unwrap();

        assert!(here.transport.remove_listener(id));
        assert!(!here.transport.remove_listener(id));
        let event = here.event().await;
        assert!(
            matches!(&event, TransportEvent::AddressExpired { listen_addr, .. } if *listen_addr == at),
            "{event:?}"
        );
        let event = here.event().await;
        assert!(
            matches!(event, TransportEvent::ListenerClosed { listener_id, reason: Ok(()) } if listener_id == id),
            "{event:?}"
        );
        assert!(here.endpoint.listening().is_empty());
        assert_eq!(muxer.quinn().close_reason(), None, "what was there lives on");
    })
    .await;
}

#[tokio::test]
async fn a_wildcard_listener_announces_the_interfaces() {
    within(async {
        let mut here = node(Config::default());
        let (_, at) = listen_on(&mut here.transport, "/ip4/0.0.0.0/udp/0/quic-v1").await;
        let addr = QuicAddr::parse(&at).unwrap();
        assert!(addr.is_dialable(), "{at}");
    })
    .await;
}

#[tokio::test]
async fn a_busy_port_is_one_clear_error() {
    within(async {
        let mut here = node(Config::default());
        let (_, at) = listen_on(&mut here.transport, "/ip4/127.0.0.1/udp/0/quic-v1").await;
        let mut there = node(Config::default());
        let error = there.transport.listen_on(ListenerId::next(), at.clone());
        let Err(TransportError::Other(error)) = error else {
            panic!("{error:?}");
        };
        let port = QuicAddr::parse(&at).unwrap().socket.port();
        assert!(matches!(error, Error::PortBusy(addr) if addr.port() == port));
        assert_eq!(
            error.to_string(),
            format!("udp port {port} is in use: stop the program that holds it, or listen on another port")
        );
    })
    .await;
}

#[tokio::test]
async fn addresses_of_other_transports_are_left_to_them() {
    let mut here = node(Config::default());
    for addr in [
        "/ip4/127.0.0.1/tcp/1",
        "/ip4/127.0.0.1/udp/1",
        "/dns/example.org/udp/1/quic-v1",
    ] {
        let addr: Multiaddr = addr.parse().unwrap();
        let refused = here.transport.listen_on(ListenerId::next(), addr.clone());
        assert!(matches!(refused, Err(TransportError::MultiaddrNotSupported(a)) if a == addr));
    }
}

#[tokio::test]
async fn a_shut_down_endpoint_tells_its_listeners_and_its_peers() {
    within(async {
        let mut here = node(Config::default());
        let (id, at) = listen_on(&mut here.transport, "/ip4/127.0.0.1/udp/0/quic-v1").await;
        let mut there = node(Config::default());
        let dial = tokio::spawn(there.dial(&at, Role::Dialer));
        let _muxer = here.incoming().await;
        let (_, mut other_end) = dial.await.unwrap().unwrap();
        here.endpoint.close().await;
        let ended = poll_fn(|cx| {
            libp2p::core::muxing::StreamMuxer::poll_inbound(Pin::new(&mut other_end), cx)
        })
        .await;
        assert!(ended.err().unwrap().to_string().contains("shutting down"));
        while !matches!(here.event().await, TransportEvent::ListenerClosed { listener_id, .. } if listener_id == id) {}
        let refused = here.transport.listen_on(ListenerId::next(), at);
        assert!(matches!(refused, Err(TransportError::Other(Error::Closed))));
    })
    .await;
}
