//! The emulated network as a value: links and routers of all daemons, and the datagrams in transit.
//! It takes datagrams and times and returns datagrams. It uses neither sockets nor a clock.

use super::counters::LinkCounters;
use super::nat::{Nat, NatKind, Ports};
use super::seats::{Cuts, SeatId};
use super::shaper::Shaper;
use super::spec::{Direction, LinkSpec};
use bytes::Bytes;
use quinn::udp::EcnCodepoint;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

/// Size of the IPv4 and UDP headers in bytes, which a link carries with every datagram.
pub(super) const UDP_HEADERS: usize = 28;

/// Payload of a TCP segment in bytes, and size of its IPv4 and TCP headers with timestamps.
const SEGMENT_BYTES: usize = 1448;
const TCP_HEADERS: usize = 52;

/// Bytes in transit from one daemon, so that a link without a limit cannot use up the memory. More
/// count as dropped by the queue. This suffices for 10 Gbit/s over 200 ms.
const UNDER_WAY_MAX: u64 = 256 << 20;

/// A unit in transit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// A datagram with its congestion mark.
    Datagram(Bytes, Option<EcnCodepoint>),
    /// Bytes of one direction of a TCP connection. No bytes mean the end of the stream.
    Chunk(u64, Bytes),
}

impl Load {
    fn len(&self) -> usize {
        match self {
            Self::Datagram(bytes, _) | Self::Chunk(_, bytes) => bytes.len(),
        }
    }
}

/// A unit that is due at a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// The apparent source: an outer address.
    pub(super) from: SocketAddrV4,
    /// The daemon's endpoint. For a chunk only the address counts, not the port.
    pub(super) to: SocketAddrV4,
    /// The datagram or chunk.
    pub(super) load: Load,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It leaves the sender's link.
    Between,
    /// It leaves the receiver's link.
    Arrived,
}

#[derive(Debug)]
struct Event {
    at: Duration,
    order: u64,
    stage: Stage,
    sender: usize,
    receiver: usize,
    from: SocketAddrV4,
    to: SocketAddrV4,
    load: Load,
}

impl Event {
    fn key(&self) -> Reverse<(Duration, u64)> {
        Reverse((self.at, self.order))
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[derive(Debug)]
struct Seat {
    inner: Ipv4Addr,
    nat: Nat,
    link: LinkSpec,
    up: Shaper,
    down: Shaper,
    counters: LinkCounters,
    under_way: u64,
}

/// The links and routers of all daemons.
#[derive(Debug, Default)]
pub(super) struct Fabric {
    seats: Vec<Seat>,
    by_inner: BTreeMap<Ipv4Addr, usize>,
    by_public: BTreeMap<Ipv4Addr, usize>,
    events: BinaryHeap<Event>,
    order: u64,
    /// The links that are missing.
    pub(super) cuts: Cuts,
    /// For each direction of a connection, the time before which no chunk may leave each of the two
    /// links.
    floors: BTreeMap<u64, [Duration; 2]>,
}

impl Fabric {
    /// Adds a daemon with the inner address `inner` and the outer address `public`.
    pub(super) fn add(
        &mut self,
        inner: Ipv4Addr,
        public: Ipv4Addr,
        nat: NatKind,
        link: LinkSpec,
        seed: u64,
    ) -> SeatId {
        let place = self.seats.len();
        // Each daemon has three random streams of its own.
        let seed = |part: u64| seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (3 * place as u64 + part);
        self.seats.push(Seat {
            inner,
            nat: Nat::new(nat, public, seed(0)),
            link,
            up: Shaper::new(link.half(Direction::Up), seed(1)),
            down: Shaper::new(link.half(Direction::Down), seed(2)),
            counters: LinkCounters::default(),
            under_way: 0,
        });
        self.by_inner.insert(inner, place);
        self.by_public.insert(public, place);
        SeatId(place)
    }

    /// The daemon's outer address.
    pub(super) fn public(&self, seat: SeatId) -> Ipv4Addr {
        self.seats[seat.0].nat.public()
    }

    pub(super) fn sender(&self, inner: Ipv4Addr) -> Option<SeatId> {
        self.by_inner.get(&inner).copied().map(SeatId)
    }

    /// Opens an outer port with the same number as the daemon's `port`.
    pub(super) fn publish(
        &mut self,
        seat: SeatId,
        port: u16,
        ports: &mut dyn Ports,
    ) -> Option<SocketAddrV4> {
        let seat = &mut self.seats[seat.0];
        seat.nat.publish(SocketAddrV4::new(seat.inner, port), ports)
    }

    pub(super) fn reshape(&mut self, seat: SeatId, link: LinkSpec) {
        let seat = &mut self.seats[seat.0];
        seat.link = link;
        seat.up.reshape(link.half(Direction::Up));
        seat.down.reshape(link.half(Direction::Down));
    }

    pub(super) fn counters(&self, seat: SeatId) -> LinkCounters {
        self.seats[seat.0].counters
    }

    /// The round-trip time between two daemons without queueing.
    pub(super) fn rtt(&self, a: SeatId, b: SeatId) -> Duration {
        (self.seats[a.0].link.rtt + self.seats[b.0].link.rtt) / 2
    }

    /// How long the sender of a stream must wait until its link's queue has room.
    pub(super) fn congestion(&self, now: Duration, sender: SeatId, receiver: SeatId) -> Duration {
        let (up, down) = (&self.seats[sender.0].up, &self.seats[receiver.0].down);
        let over = |shaper: &Shaper| shaper.backlog(now).saturating_sub(shaper.queue());
        over(up).max(over(down))
    }

    /// Takes a datagram from a daemon's endpoint to an outer address. Returns false if no daemon
    /// has the sender's or the receiver's address.
    pub(super) fn offer(
        &mut self,
        now: Duration,
        from: SocketAddrV4,
        to: SocketAddrV4,
        payload: Bytes,
        mark: Option<EcnCodepoint>,
        ports: &mut dyn Ports,
    ) -> bool {
        let (Some(&sender), Some(&receiver)) =
            (self.by_inner.get(from.ip()), self.by_public.get(to.ip()))
        else {
            return false;
        };
        let seat = &mut self.seats[sender];
        let bytes = payload.len();
        let flow = &mut seat.counters.up;
        flow.offered.add(bytes);
        if self.cuts.parts(SeatId(sender), SeatId(receiver), now) {
            flow.dropped_loss.add(bytes);
            return true;
        }
        // There is no hairpinning: a datagram to the daemon's own outer address is dropped.
        let outer = (sender != receiver).then(|| seat.nat.outbound(now, from, to, ports));
        let Some(outer) = outer.flatten() else {
            flow.dropped_nat.add(bytes);
            return true;
        };
        if seat.under_way + bytes as u64 > UNDER_WAY_MAX {
            flow.dropped_queue.add(bytes);
            return true;
        }
        let fate = seat.up.offer(now, bytes + UDP_HEADERS);
        if let Some(at) = flow.count(fate, bytes) {
            seat.under_way += bytes as u64;
            self.push(Event {
                at,
                order: 0,
                stage: Stage::Between,
                sender,
                receiver,
                from: outer,
                to,
                load: Load::Datagram(payload, mark),
            });
        }
        true
    }

    /// Takes bytes of a connection between two daemons. `from` is the address that the receiver
    /// sees.
    pub(super) fn offer_chunk(
        &mut self,
        now: Duration,
        sender: SeatId,
        receiver: SeatId,
        from: SocketAddrV4,
        chunk: (u64, Bytes),
    ) {
        let (pipe, bytes) = chunk;
        let to = SocketAddrV4::new(self.seats[receiver.0].inner, 0);
        let seat = &mut self.seats[sender.0];
        seat.counters.up.offered.add(bytes.len());
        seat.under_way += bytes.len() as u64;
        let at = self.carry_chunk(now, sender.0, receiver.0, pipe, bytes.len(), Stage::Between);
        self.push(Event {
            at,
            order: 0,
            stage: Stage::Between,
            sender: sender.0,
            receiver: receiver.0,
            from,
            to,
            load: Load::Chunk(pipe, bytes),
        });
    }

    /// Starts one direction of a connection, whose chunks stay in order.
    pub(super) fn open_pipe(&mut self, pipe: u64) {
        self.floors.insert(pipe, [Duration::ZERO; 2]);
    }

    /// Ends one direction of a connection.
    pub(super) fn close_pipe(&mut self, pipe: u64) {
        self.floors.remove(&pipe);
    }

    pub(super) fn next_at(&self) -> Option<Duration> {
        self.events.peek().map(|event| event.at)
    }

    /// Moves everything that is due at `now`. Appends the units that reach daemons to `out`, in
    /// order.
    ///
    /// Each stage begins at the time at which the previous one ended, not at `now`. A late call
    /// therefore delays only the units that it delivers, and nothing after them.
    pub(super) fn advance(&mut self, now: Duration, out: &mut Vec<Arrival>) {
        while self.next_at().is_some_and(|at| at <= now) {
            let Some(event) = self.events.pop() else {
                return;
            };
            match event.stage {
                Stage::Between => self.descend(event),
                Stage::Arrived => out.extend(self.arrive(event)),
            }
        }
    }

    fn push(&mut self, mut event: Event) {
        event.order = self.order;
        self.order += 1;
        self.events.push(event);
    }

    /// Moves a unit from the sender's link to the receiver's link.
    fn descend(&mut self, mut event: Event) {
        let bytes = event.load.len();
        self.seats[event.sender].counters.up.delivered.add(bytes);
        self.seats[event.receiver].counters.down.offered.add(bytes);
        let at = match &event.load {
            Load::Datagram(..) => {
                let seat = &mut self.seats[event.receiver];
                let fate = seat.down.offer(event.at, bytes + UDP_HEADERS);
                seat.counters.down.count(fate, bytes)
            }
            Load::Chunk(pipe, _) => {
                let (sender, receiver, stage) = (event.sender, event.receiver, Stage::Arrived);
                Some(self.carry_chunk(event.at, sender, receiver, *pipe, bytes, stage))
            }
        };
        match at {
            Some(at) => {
                (event.at, event.stage) = (at, Stage::Arrived);
                self.push(event);
            }
            None => self.seats[event.sender].under_way -= bytes as u64,
        }
    }

    /// Moves a unit from the receiver's link through the receiver's router.
    fn arrive(&mut self, event: Event) -> Option<Arrival> {
        let bytes = event.load.len();
        self.seats[event.sender].under_way -= bytes as u64;
        let seat = &mut self.seats[event.receiver];
        let to = match event.load {
            Load::Datagram(..) => seat.nat.inbound(event.at, event.to.port(), event.from).ok(),
            Load::Chunk(..) => Some(event.to),
        };
        let flow = &mut seat.counters.down;
        match to {
            Some(_) => flow.delivered.add(bytes),
            None => flow.dropped_nat.add(bytes),
        }
        Some(Arrival {
            from: event.from,
            to: to?,
            load: event.load,
        })
    }

    /// When a chunk leaves a link. A lost segment costs a round trip, for which all later chunks of
    /// the connection wait. Other connections do not wait.
    fn carry_chunk(
        &mut self,
        now: Duration,
        sender: usize,
        receiver: usize,
        pipe: u64,
        bytes: usize,
        stage: Stage,
    ) -> Duration {
        let rtt = self.rtt(SeatId(sender), SeatId(receiver));
        let shaper = match stage {
            Stage::Between => &mut self.seats[sender].up,
            Stage::Arrived => &mut self.seats[receiver].down,
        };
        let segments = bytes.div_ceil(SEGMENT_BYTES).max(1);
        let (at, lost) = shaper.offer_stream(now, bytes + segments * TCP_HEADERS, segments);
        let at = if lost { at + rtt } else { at };
        let Some(floors) = self.floors.get_mut(&pipe) else {
            return at;
        };
        let floor = &mut floors[usize::from(stage == Stage::Arrived)];
        *floor = at.max(*floor);
        *floor
    }
}

#[cfg(test)]
mod tests;
