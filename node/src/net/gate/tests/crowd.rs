//! Links of strangers by the hundred: connections that never end their handshake, and others that
//! stay silent at the gate. A member still gets in.

use super::{QUIC, TCP, birds, id_of, invite, listening, owner, owners};
use crate::bulk::tests::TestStore;
use crate::net::NetEvent;
use crate::net::gate::{Membership, now_s};
use crate::net::tests::{raw_swarm, started};
use futures::StreamExt;
use libp2p::Multiaddr;
use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::SwarmEvent;
use murmurate_trust::Register;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Links of strangers, more than there are places in the handshake and at the gate. The variable
/// `MURMURATE_STRANGERS` sets another number; 1,000 take both cores of a small machine.
const LINKS: usize = 300;

/// Pause of a stranger whose connection was closed, before it opens the next one.
const AGAIN: Duration = Duration::from_secs(1);

/// After this time the strangers hold what they can get.
const FILLED: Duration = Duration::from_secs(3);

fn links() -> usize {
    let set = std::env::var("MURMURATE_STRANGERS");
    set.map_or(LINKS, |set| set.parse().expect("a number of links"))
}

fn socket_of(address: &Multiaddr) -> SocketAddr {
    let mut parts = address.iter();
    let Some(Protocol::Ip4(ip)) = parts.next() else {
        panic!("{address}");
    };
    match parts.next() {
        Some(Protocol::Tcp(port) | Protocol::Udp(port)) => (ip, port).into(),
        _ => panic!("{address}"),
    }
}

/// Opens TCP connections without end, and never says a word.
async fn silent(to: SocketAddr, opened: Arc<AtomicUsize>) {
    loop {
        let stream = TcpStream::connect(to).await;
        opened.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut stream) = stream {
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
        }
        sleep(AGAIN).await;
    }
}

/// Completes handshakes without end, and is silent at the gate.
async fn at_the_gate(to: Multiaddr, opened: Arc<AtomicUsize>) {
    loop {
        let mut swarm = raw_swarm();
        swarm.dial(to.clone()).unwrap();
        opened.fetch_add(1, Ordering::Relaxed);
        loop {
            if let SwarmEvent::ConnectionClosed { .. }
            | SwarmEvent::OutgoingConnectionError { .. } = swarm.select_next_some().await
            {
                break;
            }
        }
        sleep(AGAIN).await;
    }
}

/// An address from which packets go to `to`, and to which none come back: handshakes through it
/// never end.
async fn one_way(to: SocketAddr, tasks: &mut JoinSet<()>) -> Multiaddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let at = murmurate_net::quic::multiaddr_of(socket.local_addr().unwrap());
    tasks.spawn(async move {
        let out = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut packet = [0; 2000];
        while let Ok((length, _)) = socket.recv_from(&mut packet).await {
            let _ = out.send_to(&packet[..length], to).await;
        }
    });
    at
}

/// Begins the attack on a daemon that listens at these addresses, and waits until it is in full
/// swing: a quarter of the links is of each kind.
async fn attack(links: usize, quic: &Multiaddr, tcp: &Multiaddr) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let opened = Arc::new(AtomicUsize::new(0));
    let hole = one_way(socket_of(quic), &mut tasks).await;
    for number in 0..links {
        let opened = Arc::clone(&opened);
        match number % 4 {
            0 => drop(tasks.spawn(silent(socket_of(tcp), opened))),
            1 => drop(tasks.spawn(at_the_gate(tcp.clone(), opened))),
            2 => drop(tasks.spawn(at_the_gate(quic.clone(), opened))),
            _ => drop(tasks.spawn(at_the_gate(hole.clone(), opened))),
        }
    }
    while opened.load(Ordering::Relaxed) < links {
        sleep(Duration::from_millis(10)).await;
    }
    // Handshakes over TCP end only when they had their time, so the silent ones fill all places.
    sleep(FILLED).await;
    tasks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_joins_while_strangers_hold_all_places() {
    let key = birds();
    let mut config = owners(&key, QUIC);
    config.listen.push(TCP.parse().unwrap());
    let mut a = started(config, TestStore::default()).await;
    let addresses = a.both_addresses().await;
    // An earlier member keeps its link.
    let friend = owner(&key, QUIC).await;
    friend.net.dial(a.record.clone()).unwrap();
    a.up(friend.id).await;
    let of = |udp: bool| {
        let fits = |at: &&Multiaddr| at.iter().any(|p| matches!(p, Protocol::Udp(_))) == udp;
        addresses.iter().find(fits).unwrap().clone()
    };
    let (quic, tcp) = (of(true), of(false));
    let links = links();
    let _strangers = attack(links, &quic, &tcp).await;
    let invite = invite(&key, 2);
    for (joins, over) in [
        (vec![quic.clone(), tcp.clone()], "both"),
        (vec![tcp], "TCP"),
    ] {
        let keys = Keypair::generate_ed25519();
        let me = id_of(&keys);
        let chain = invite.accept(me, now_s()).unwrap();
        let membership = Membership::new(me, chain, Register::new(invite.run()));
        let mut config = listening(keys, membership, QUIC);
        config.join = joins;
        let began = Instant::now();
        let mut joiner = started(config, TestStore::default()).await;
        joiner.up(a.id).await;
        let took = began.elapsed();
        println!("joined over {over} after {took:?}, among {links} links of strangers");
        a.until(|event| match event {
            NetEvent::LinkUp(peer) if peer == me => Some(()),
            NetEvent::LinkDown(peer) if peer == friend.id => panic!("the friend is lost"),
            _ => None,
        })
        .await;
    }
}
