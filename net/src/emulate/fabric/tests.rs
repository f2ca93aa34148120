//! Routers and links together, in virtual time.

use super::*;
use std::collections::BTreeSet;

const MS: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Table(BTreeSet<SocketAddrV4>);

impl Ports for Table {
    fn open(&mut self, address: SocketAddrV4) -> bool {
        self.0.insert(address)
    }
    fn close(&mut self, address: SocketAddrV4) {
        self.0.remove(&address);
    }
}

/// A network whose daemon `i` has the inner address `127.1.0.i:9` and the outer address
/// `127.2.0.i`.
struct World {
    fabric: Fabric,
    ports: Table,
    now: Duration,
}

impl World {
    fn new(link: &str, kinds: &[NatKind]) -> Self {
        let (mut fabric, mut ports) = (Fabric::default(), Table::default());
        for (index, kind) in kinds.iter().enumerate() {
            let (inner, public) = (*inner(index).ip(), public(index));
            let seat = fabric.add(inner, public, *kind, link.parse().unwrap(), 7);
            if *kind == NatKind::None {
                fabric.publish(seat, 9, &mut ports).unwrap();
            }
        }
        let now = Duration::ZERO;
        Self { fabric, ports, now }
    }

    fn send(&mut self, from: usize, to: SocketAddrV4, payload: &'static [u8]) -> bool {
        let payload = Bytes::from_static(payload);
        let from = inner(from);
        self.fabric
            .offer(self.now, from, to, payload, None, &mut self.ports)
    }

    /// Everything that arrives within `time`.
    fn wait(&mut self, time: Duration) -> Vec<Arrival> {
        self.now += time;
        let mut out = Vec::new();
        self.fabric.advance(self.now, &mut out);
        out
    }

    /// The address of daemon `from` as daemon `rendezvous`, a public one, sees it.
    fn seen_by(&mut self, rendezvous: usize, from: usize) -> SocketAddrV4 {
        self.send(from, SocketAddrV4::new(public(rendezvous), 9), b"hello");
        self.wait(LONG)[0].from
    }
}

fn inner(index: usize) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(127, 1, 0, index as u8), 9)
}

fn public(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 2, 0, index as u8)
}

#[test]
fn a_datagram_takes_half_the_round_trip_and_answers_find_the_way_back() {
    let mut world = World::new("8mbit/100ms/0%", &[NatKind::None, NatKind::PortRestricted]);
    assert!(world.send(1, SocketAddrV4::new(public(0), 9), &[0; 972]));
    // Twice 1000 bytes at one byte per microsecond, plus 50 ms.
    assert_eq!(world.fabric.next_at(), Some(26 * MS));
    assert!(world.wait(52 * MS - Duration::from_nanos(1)).is_empty());
    let [arrival] = world.wait(Duration::from_nanos(1)).try_into().unwrap();
    assert_eq!((arrival.to, *arrival.from.ip()), (inner(0), public(1)));
    assert!(world.send(0, arrival.from, b"answer"));
    let [answer] = world.wait(LONG).try_into().unwrap();
    assert_eq!(
        (answer.from, answer.to),
        (SocketAddrV4::new(public(0), 9), inner(1))
    );
}

#[test]
fn strangers_and_unknown_addresses_are_not_carried() {
    let mut world = World::new("unlimited/0ms/0%", &[NatKind::None, NatKind::None]);
    assert!(!world.send(7, SocketAddrV4::new(public(0), 9), b"x"));
    assert!(!world.send(0, SocketAddrV4::new(public(7), 9), b"x"));
    // The daemon's own outer address is known, but datagrams to it are dropped.
    assert!(world.send(0, SocketAddrV4::new(public(0), 9), b"x"));
    assert!(world.wait(LONG).is_empty());
    assert_eq!(world.fabric.counters(SeatId(0)).up.dropped_nat.packets, 1);
}

#[test]
fn late_calls_do_not_add_up() {
    let run = |every: Duration| {
        let mut world = World::new("8mbit/100ms/0%", &[NatKind::None, NatKind::None]);
        for _ in 0..10 {
            world.send(1, SocketAddrV4::new(public(0), 9), &[0; 972]);
        }
        while world.fabric.next_at().is_some() {
            world.wait(every);
        }
        world.fabric.seats[0].down.backlog(Duration::ZERO)
    };
    assert_eq!(run(MS / 10), run(40 * MS));
}

/// Both daemons learn their outer address from a public third one, exchange the addresses, and send
/// at the same time.
fn punch(a: NatKind, b: NatKind) -> bool {
    let mut world = World::new("unlimited/100ms/0%", &[NatKind::None, a, b]);
    let (seen_a, seen_b) = (world.seen_by(0, 1), world.seen_by(0, 2));
    let mut met = BTreeSet::new();
    for _ in 0..3 {
        world.send(1, seen_b, b"punch");
        world.send(2, seen_a, b"punch");
        met.extend(world.wait(LONG).iter().map(|arrival| arrival.to));
    }
    met.contains(&inner(1)) && met.contains(&inner(2))
}

#[test]
fn holes_can_be_punched_between_cones_and_not_between_symmetric_ones() {
    use NatKind::{FullCone, PortRestricted, Symmetric};
    assert!(punch(PortRestricted, PortRestricted));
    assert!(punch(FullCone, FullCone));
    assert!(punch(FullCone, PortRestricted));
    assert!(!punch(Symmetric, Symmetric));
    assert!(!punch(PortRestricted, Symmetric));
    assert!(!punch(Symmetric, PortRestricted));
}

#[test]
fn a_first_datagram_is_filtered_until_both_have_sent() {
    let kinds = [
        NatKind::None,
        NatKind::PortRestricted,
        NatKind::PortRestricted,
    ];
    let mut world = World::new("unlimited/100ms/0%", &kinds);
    let (seen_1, seen_2) = (world.seen_by(0, 1), world.seen_by(0, 2));
    world.send(1, seen_2, b"early");
    assert!(world.wait(LONG).is_empty());
    assert_eq!(world.fabric.counters(SeatId(2)).down.dropped_nat.packets, 1);
    world.send(2, seen_1, b"through");
    assert_eq!(world.wait(LONG)[0].to, inner(1));
    world.send(1, seen_2, b"both ways");
    assert_eq!(world.wait(LONG)[0].to, inner(2));
}

#[test]
fn everything_offered_is_accounted_for() {
    let kinds = [NatKind::None; 3];
    let mut world = World::new("8mbit/20ms/5%/queue=10ms,burst=3,jitter=2ms", &kinds);
    let mut arrived = 0;
    for round in 0..500 {
        for sender in 1..3 {
            for _ in 0..(1 + round % 2) {
                world.send(sender, SocketAddrV4::new(public(0), 9), &[0; 700]);
            }
        }
        arrived += world.wait(MS).len();
    }
    let mid = world.fabric.counters(SeatId(1)).up;
    assert!(mid.under_way().packets > 0);
    arrived += world.wait(LONG).len();
    let [to, a, b] = [0, 1, 2].map(|seat| world.fabric.counters(SeatId(seat)));
    for flow in [to.down, a.up, b.up] {
        assert_eq!(flow.under_way().packets, 0);
        assert_eq!(flow.offered.bytes, 700 * flow.offered.packets);
        assert!(
            flow.dropped_queue.packets > 0 && flow.dropped_loss.packets > 0,
            "{flow:?}"
        );
    }
    assert_eq!(a.up.delivered + b.up.delivered, to.down.offered);
    assert_eq!(to.down.delivered.packets, arrived as u64);
    assert_eq!(world.fabric.seats[1].under_way, 0);
    // 8 Mbit/s for half a second, including headers.
    let carried = (to.down.delivered.packets + to.down.dropped_loss.packets) * 728;
    assert!(
        (0.9..1.1).contains(&(carried as f64 / 500_000.0)),
        "{carried}"
    );
}

#[test]
fn chunks_of_a_connection_stay_in_order_and_a_loss_costs_a_round_trip() {
    let mut world = World::new("8mbit/100ms/0%", &[NatKind::None, NatKind::None]);
    let (a, b, from) = (SeatId(0), SeatId(1), SocketAddrV4::new(public(0), 1));
    world.fabric.open_pipe(4);
    world.fabric.open_pipe(5);
    world
        .fabric
        .offer_chunk(Duration::ZERO, a, b, from, (4, Bytes::from(vec![1; 948])));
    assert_eq!(world.wait(52 * MS).len(), 1);
    world.fabric.reshape(a, "8mbit/100ms/100%".parse().unwrap());
    world
        .fabric
        .offer_chunk(world.now, a, b, from, (4, Bytes::from(vec![2; 948])));
    world.fabric.reshape(a, "8mbit/100ms/0%".parse().unwrap());
    world
        .fabric
        .offer_chunk(world.now, a, b, from, (4, Bytes::from(vec![3; 948])));
    world
        .fabric
        .offer_chunk(world.now, a, b, from, (5, Bytes::from(vec![4; 948])));
    let firsts = |arrivals: Vec<Arrival>| {
        let firsts = arrivals.iter().map(|arrival| match &arrival.load {
            Load::Chunk(_, bytes) => bytes[0],
            Load::Datagram(..) => 0,
        });
        firsts.collect::<Vec<_>>()
    };
    assert_eq!(firsts(world.wait(60 * MS)), [4]);
    assert_eq!(firsts(world.wait(100 * MS)), [2, 3]);
    world.fabric.close_pipe(4);
    world.fabric.close_pipe(5);
    assert!(world.fabric.floors.is_empty());
}

#[test]
fn a_sender_of_a_stream_is_told_to_wait_while_the_queue_is_full() {
    let mut world = World::new("8mbit/0ms/0%/queue=10ms", &[NatKind::None, NatKind::None]);
    let (a, b, from) = (SeatId(0), SeatId(1), SocketAddrV4::new(public(0), 1));
    assert_eq!(
        world.fabric.congestion(Duration::ZERO, a, b),
        Duration::ZERO
    );
    let bytes = Bytes::from(vec![0; 14_480 - 10 * TCP_HEADERS]);
    world
        .fabric
        .offer_chunk(Duration::ZERO, a, b, from, (1, bytes));
    let wait = world.fabric.congestion(Duration::ZERO, a, b);
    assert_eq!(wait, Duration::from_nanos(4_480_000));
    assert_eq!(world.fabric.congestion(wait, a, b), Duration::ZERO);
}

#[test]
fn between_daemons_without_a_link_everything_is_lost_and_counted() {
    let mut world = World::new("unlimited/0ms/0%", &[NatKind::None; 3]);
    let at = |index: usize| SocketAddrV4::new(public(index), 9);
    let during = || Duration::from_secs(5)..Duration::from_secs(15);
    let cuts = &mut world.fabric.cuts;
    cuts.add(SeatId(1), SeatId(2), during());
    cuts.add(SeatId(2), SeatId(1), during());
    cuts.add(SeatId(0), SeatId(1), Duration::ZERO..Duration::MAX);
    let mut arrive = |from: usize, to: usize| {
        assert!(world.send(from, at(to), b"hello"));
        world.wait(LONG / 2).len()
    };
    assert_eq!(arrive(1, 2), 1, "at 0 s");
    assert_eq!(arrive(1, 2), 0, "at 5 s");
    assert_eq!(arrive(2, 1), 0, "at 10 s");
    assert_eq!(arrive(2, 1), 1, "at 15 s");
    assert_eq!(arrive(0, 2), 1);
    assert_eq!(
        (arrive(0, 1), arrive(1, 0)),
        (0, 1),
        "one direction is lost"
    );
    let up = world.fabric.counters(SeatId(1)).up;
    assert_eq!((up.offered.packets, up.dropped_loss.packets), (3, 1));
}
