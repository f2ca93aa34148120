//! Real sockets behind emulated links and routers: which datagrams arrive, from which address, and
//! which are counted. The links' decisions are tested in virtual time; these tests cover the
//! sockets.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

use murmurate_net::emulate::{LinkCounters, LinkSpec, NatKind, Relay, Seat};
use std::net::{SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// Time for an event that must happen, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

struct World {
    relay: Relay,
    sockets: Vec<UdpSocket>,
}

impl World {
    async fn new(links: &[&str], kinds: &[NatKind]) -> Self {
        let mut relay = Relay::start(1).unwrap();
        let mut sockets = Vec::new();
        for (index, kind) in kinds.iter().enumerate() {
            let link = links[index % links.len()].parse().unwrap();
            let seat = relay.add(*kind, link).unwrap();
            let port = 4_000 + index as u16;
            sockets.push(UdpSocket::bind((seat.inner, port)).await.unwrap());
            if *kind == NatKind::None {
                relay.publish_udp(seat, port).unwrap();
            }
        }
        Self { relay, sockets }
    }

    fn seat(&self, index: usize) -> Seat {
        self.relay.seats()[index]
    }

    fn public(&self, index: usize) -> SocketAddr {
        SocketAddrV4::new(self.seat(index).public, 4_000 + index as u16).into()
    }

    async fn send(&self, from: usize, to: SocketAddr, payload: &[u8]) {
        let sent = self.sockets[from].send_to(payload, to).await.unwrap();
        assert_eq!(sent, payload.len());
    }

    async fn receive(&self, at: usize) -> (Vec<u8>, SocketAddr) {
        let mut buffer = vec![0; 2_000];
        let received = timeout(PATIENCE, self.sockets[at].recv_from(&mut buffer));
        let (len, from) = received.await.expect("nothing came").unwrap();
        buffer.truncate(len);
        (buffer, from)
    }

    fn counters(&self, index: usize) -> LinkCounters {
        self.relay.counters(self.seat(index))
    }

    /// Waits until `what` holds for the relay's counters.
    async fn until(&self, what: impl Fn(&Self) -> bool) {
        let since = Instant::now();
        while !what(self) {
            assert!(since.elapsed() < PATIENCE, "it never came");
            tokio::task::yield_now().await;
        }
    }

    /// The address of daemon `from` as the public daemon 0 sees it.
    async fn seen(&self, from: usize) -> SocketAddr {
        self.send(from, self.public(0), b"who am I").await;
        self.receive(0).await.1
    }
}

#[tokio::test]
async fn public_daemons_see_each_others_public_addresses() {
    let world = World::new(&["unlimited/0ms/0%"], &[NatKind::None; 2]).await;
    world.send(0, world.public(1), b"ask").await;
    assert_eq!(world.receive(1).await, (b"ask".to_vec(), world.public(0)));
    world.send(1, world.public(0), b"").await;
    assert_eq!(world.receive(0).await, (Vec::new(), world.public(1)));
}

#[tokio::test]
async fn another_port_of_a_daemon_is_another_outer_port() {
    // As when a QUIC connection moves to another socket.
    let world = World::new(
        &["unlimited/0ms/0%"],
        &[NatKind::None, NatKind::PortRestricted],
    )
    .await;
    let first = world.seen(1).await;
    let other = UdpSocket::bind((world.seat(1).inner, 0)).await.unwrap();
    other.send_to(b"moved", world.public(0)).await.unwrap();
    let (_, second) = world.receive(0).await;
    assert_eq!(first.ip(), second.ip());
    assert_ne!(first.port(), second.port());
    world.send(0, second, b"found").await;
    let mut buffer = [0; 16];
    let answer = timeout(PATIENCE, other.recv_from(&mut buffer)).await;
    assert_eq!(answer.expect("nothing came").unwrap(), (5, world.public(0)));
}

#[tokio::test]
async fn the_routers_table_holds_for_real_sockets() {
    use NatKind::{FullCone, None, PortRestricted, Symmetric};
    for (kind, stranger_comes_in, same_port) in [
        (FullCone, true, true),
        (PortRestricted, false, true),
        (Symmetric, false, false),
    ] {
        let world = World::new(&["unlimited/0ms/0%"], &[None, kind, None]).await;
        let seen = world.seen(1).await;
        world.send(0, seen, b"answer").await;
        assert_eq!(
            world.receive(1).await,
            (b"answer".to_vec(), world.public(0)),
            "{kind}"
        );
        world.send(2, seen, b"stranger").await;
        if stranger_comes_in {
            assert_eq!(
                world.receive(1).await,
                (b"stranger".to_vec(), world.public(2))
            );
        } else {
            world
                .until(|w| w.counters(1).down.dropped_nat.packets == 1)
                .await;
        }
        world.send(1, world.public(2), b"to another").await;
        assert_eq!(world.receive(2).await.1 == seen, same_port, "{kind}");
    }
}

#[tokio::test]
async fn holes_are_punched_between_port_restricted_routers_and_not_between_symmetric_ones() {
    for (kind, works) in [(NatKind::PortRestricted, true), (NatKind::Symmetric, false)] {
        let world = World::new(&["unlimited/2ms/0%"], &[NatKind::None, kind, kind]).await;
        let (seen_1, seen_2) = (world.seen(1).await, world.seen(2).await);
        for _ in 0..3 {
            tokio::join!(
                world.send(1, seen_2, b"punch"),
                world.send(2, seen_1, b"punch")
            );
            let handled = |w: &World, i| {
                let down = w.counters(i).down;
                down.under_way().packets == 0 && w.counters(i).up.under_way().packets == 0
            };
            world.until(|w| handled(w, 1) && handled(w, 2)).await;
        }
        if works {
            assert_eq!(world.receive(1).await, (b"punch".to_vec(), seen_2));
            assert_eq!(world.receive(2).await, (b"punch".to_vec(), seen_1));
        } else {
            let delivered = |i| world.counters(i).down.delivered.packets;
            world
                .until(|w| w.counters(1).down.dropped_nat.packets == 3)
                .await;
            world
                .until(|w| w.counters(2).down.dropped_nat.packets == 3)
                .await;
            assert_eq!((delivered(1), delivered(2)), (0, 0));
        }
    }
}

#[tokio::test]
async fn counters_equal_what_the_sockets_sent_and_received() {
    let links = ["40mbit/4ms/5%/queue=20ms", "unlimited/0ms/0%"];
    let world = World::new(&links, &[NatKind::None; 2]).await;
    let (mut sent, mut received, count) = (0, 0, 600);
    let sending = async {
        for index in 0..count {
            let payload = vec![7; 100 + index % 1_100];
            world.send(0, world.public(1), &payload).await;
            sent += payload.len() as u64;
            // Few packets at a time: on a busy machine more would overflow the receiver's buffer.
            if index % 30 == 29 {
                world
                    .until(|w| w.counters(0).up.offered.packets == index as u64 + 1)
                    .await;
                world
                    .until(|w| w.counters(0).up.under_way().packets == 0)
                    .await;
                world
                    .until(|w| w.counters(1).down.under_way().packets == 0)
                    .await;
            }
        }
    };
    // Receives meanwhile, so that no socket's buffer overflows.
    let receiving = async {
        loop {
            received += world.receive(1).await.0.len() as u64;
        }
    };
    tokio::select! {
        () = sending => {}
        () = receiving => {}
    }
    let (up, down) = (world.counters(0).up, world.counters(1).down);
    assert_eq!(up.offered.bytes, sent);
    assert_eq!(down.offered, up.delivered);
    assert!(up.dropped_loss.packets > 0, "{up:?}");
    while received < down.delivered.bytes {
        received += world.receive(1).await.0.len() as u64;
    }
    assert_eq!(received, down.delivered.bytes);
    assert_eq!(world.relay.unsent().packets, 0);
    let drops = world.relay.kernel_drops();
    assert_eq!((drops.relay, drops.daemons), (0, 0));
}

#[tokio::test]
async fn the_rate_holds_over_a_transfer() {
    // 20 Mbit/s with datagrams of 1000 bytes on the wire: 2500 per second, and no more.
    let world = World::new(&["20mbit/0ms/0%/queue=50ms"], &[NatKind::None; 2]).await;
    let since = Instant::now();
    let (to, payload) = (world.public(1), [0; 972]);
    while since.elapsed() < Duration::from_secs(2) {
        // The queue is never empty, so the output has the link's rate.
        for _ in 0..50 {
            world.send(0, to, &payload).await;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let span = since.elapsed().as_secs_f64();
    let up = world.counters(0).up;
    let rate = 8.0 * 1_000.0 * (up.delivered.packets + up.under_way().packets) as f64 / span;
    assert!(up.dropped_queue.packets > 0);
    // At most the queue of 50 ms is in transit.
    assert!((0.9..1.1).contains(&(rate / 20e6)), "{rate}");
}

#[tokio::test]
async fn a_link_can_change_while_it_is_used() {
    let world = World::new(&["unlimited/0ms/0%"], &[NatKind::None; 2]).await;
    world.send(0, world.public(1), b"before").await;
    world.receive(1).await;
    let blackout: LinkSpec = "unlimited/0ms/100%".parse().unwrap();
    world.relay.reshape(world.seat(0), blackout);
    world.send(0, world.public(1), b"lost").await;
    world
        .until(|w| w.counters(0).up.dropped_loss.packets == 1)
        .await;
    world.relay.reshape(world.seat(0), LinkSpec::default());
    world.send(0, world.public(1), b"after").await;
    assert_eq!(world.receive(1).await.0, b"after");
}

#[tokio::test]
async fn strangers_are_counted_and_not_carried() {
    let world = World::new(&["unlimited/0ms/0%"], &[NatKind::None; 2]).await;
    let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    stranger.send_to(b"hello", world.public(0)).await.unwrap();
    world.until(|w| w.relay.strangers().packets == 1).await;
    assert_eq!(world.counters(0).down.offered.packets, 0);
}
