//! Real TCP connections over emulated links.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

use murmurate_net::emulate::{NatKind, Relay, Seat};
use std::net::{SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);

/// Two daemons with this link. The first one listens.
async fn pair(link: &str) -> (Relay, [Seat; 2], TcpListener, SocketAddrV4) {
    let mut relay = Relay::start(1).unwrap();
    let link = link.parse().unwrap();
    let seats = [(); 2].map(|()| relay.add(NatKind::None, link).unwrap());
    let listener = TcpListener::bind((seats[0].inner, 4_000)).await.unwrap();
    let public = relay.publish_tcp(seats[0], 4_000).unwrap();
    relay.publish_tcp(seats[1], 4_001).unwrap();
    (relay, seats, listener, public)
}

async fn connect(from: SocketAddr, to: SocketAddrV4) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.set_reuseport(true).unwrap();
    socket.bind(from).unwrap();
    timeout(PATIENCE, socket.connect(to.into()))
        .await
        .unwrap()
        .unwrap()
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    timeout(PATIENCE, listener.accept()).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_connection_carries_both_ways_and_ends_each_way_by_itself() {
    let (relay, seats, listener, public) = pair("100mbit/4ms/0%").await;
    let mut dialer = connect((seats[1].inner, 0).into(), public).await;
    let (mut listening, from) = accept(&listener).await;
    assert_eq!(from.ip(), seats[1].public);
    let asked: Vec<u8> = (0..300_000u32).map(|i| i as u8).collect();
    let both = async {
        let ask = async {
            dialer.write_all(&asked).await.unwrap();
            dialer.shutdown().await.unwrap();
            let mut answer = Vec::new();
            dialer.read_to_end(&mut answer).await.unwrap();
            answer
        };
        let answer = async {
            let mut got = Vec::new();
            listening.read_to_end(&mut got).await.unwrap();
            listening.write_all(b"answer").await.unwrap();
            listening.shutdown().await.unwrap();
            got
        };
        tokio::join!(ask, answer)
    };
    let (answer, got) = timeout(PATIENCE, both).await.unwrap();
    assert!(got == asked && answer == b"answer");
    let (a, b) = (relay.counters(seats[0]), relay.counters(seats[1]));
    assert_eq!(
        (b.up.delivered.bytes, a.down.delivered.bytes),
        (300_000, 300_000)
    );
    assert_eq!((a.up.delivered.bytes, b.down.delivered.bytes), (6, 6));
}

#[tokio::test]
async fn a_daemon_that_dials_from_its_port_of_all_addresses_is_known_by_it() {
    let (relay, seats, listener, public) = pair("unlimited/0ms/0%").await;
    let mut dialer = connect("0.0.0.0:4001".parse().unwrap(), public).await;
    let (mut listening, from) = accept(&listener).await;
    assert_eq!(from.ip(), seats[1].public);
    dialer.write_all(b"x").await.unwrap();
    assert_eq!(
        timeout(PATIENCE, listening.read_u8())
            .await
            .unwrap()
            .unwrap(),
        b'x'
    );
    assert_eq!(relay.strangers().packets, 0);
}

#[tokio::test]
async fn a_stranger_is_closed_and_counted() {
    let (relay, _, _listener, public) = pair("unlimited/0ms/0%").await;
    let mut stranger = connect("127.0.0.1:0".parse().unwrap(), public).await;
    let mut rest = Vec::new();
    // It ends with an end of stream or a reset, but soon.
    let _ = timeout(PATIENCE, stranger.read_to_end(&mut rest))
        .await
        .unwrap();
    assert!(rest.is_empty());
    assert_eq!(relay.strangers().packets, 1);
}

#[tokio::test]
async fn the_link_takes_its_time() {
    let (_relay, seats, listener, public) = pair("16mbit/80ms/0%").await;
    let since = Instant::now();
    let mut dialer = connect((seats[1].inner, 0).into(), public).await;
    let (mut listening, _) = accept(&listener).await;
    let sent = vec![0; 1_000_000];
    let received = async {
        let mut got = vec![0; sent.len()];
        listening.read_exact(&mut got).await.unwrap();
    };
    let both = async { tokio::join!(dialer.write_all(&sent), received) };
    timeout(PATIENCE, both).await.unwrap().0.unwrap();
    // Never faster than a round trip to connect, half a round trip of delay, and half a second at
    // the rate.
    assert!(since.elapsed() >= Duration::from_millis(80 + 40 + 500));
}

#[tokio::test]
async fn when_the_receiver_is_gone_the_sender_hears_of_it() {
    let (_relay, seats, listener, public) = pair("unlimited/0ms/0%").await;
    let mut dialer = connect((seats[1].inner, 0).into(), public).await;
    let (listening, _) = accept(&listener).await;
    drop(listening);
    let chunk = vec![0; 1 << 16];
    let sending = async { while dialer.write_all(&chunk).await.is_ok() {} };
    timeout(PATIENCE, sending).await.expect("it must end");
}

#[tokio::test]
async fn between_daemons_without_a_link_no_connection_gets_an_answer() {
    let (relay, seats, listener, public) = pair("unlimited/0ms/0%").await;
    let mut open = connect((seats[1].inner, 0).into(), public).await;
    let (mut listening, _) = accept(&listener).await;
    relay.cut(seats[1], seats[0], Duration::ZERO..Duration::MAX);
    open.write_all(b"lost").await.unwrap();
    let mut got = Vec::new();
    let ended = timeout(PATIENCE, listening.read_to_end(&mut got)).await;
    assert_eq!((ended.unwrap().unwrap(), got.len()), (0, 0));
    let _unanswered = connect((seats[1].inner, 0).into(), public).await;
    let silence = timeout(Duration::from_millis(300), listener.accept()).await;
    assert!(silence.is_err(), "it was accepted");
}
