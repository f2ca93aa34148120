//! The emulated network with sockets: it carries the datagrams that daemons send to its addresses.

use super::block::Block;
use super::counters::{LinkCounters, Tally};
use super::error::RelayError;
use super::fabric::Fabric;
use super::nat::NatKind;
use super::seats::{Cuts, Seat};
use super::shared::{OuterPorts, Pipes, Shared, State};
use super::spec::LinkSpec;
use super::{deliver, tcp};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// Datagrams that the kernel dropped before the owner of the socket read them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelDrops {
    /// Dropped before the relay read them: they are neither offered nor carried.
    pub relay: u64,
    /// Dropped before daemons read them, after they counted as delivered.
    pub daemons: u64,
}

/// An emulated network on this machine. Dropping it removes the network.
#[derive(Debug)]
pub struct Relay {
    shared: Arc<Shared>,
    block: Block,
    seats: Vec<Seat>,
    seed: u64,
    listeners: Vec<AbortHandle>,
    deliverer: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts a network without daemons. Its readers run on the current tokio runtime. The same
    /// seed loses the same datagrams of each link.
    ///
    /// # Errors
    /// If no addresses are free, or no thread can be started.
    pub fn start(seed: u64) -> Result<Self, RelayError> {
        let runtime = Handle::current();
        let shared = Arc::new_cyclic(|shared| Shared {
            state: Mutex::new(State {
                fabric: Fabric::default(),
                ports: OuterPorts::new(runtime, shared.clone()),
                pipes: Pipes::default(),
                wake: Duration::MAX,
                stop: false,
                strangers: Tally::default(),
                unsent: Tally::default(),
            }),
            due: Condvar::new(),
            began: Instant::now(),
        });
        let block = Block::claim()?;
        let theirs = Arc::clone(&shared);
        let deliverer = std::thread::Builder::new()
            .name("emulated-links".to_owned())
            .spawn(move || deliver::run(&theirs))
            .map_err(|e| RelayError::Thread {
                reason: e.to_string(),
            })?;
        Ok(Self {
            shared,
            block,
            seats: Vec::new(),
            seed,
            listeners: Vec::new(),
            deliverer: Some(deliverer),
        })
    }

    /// Adds a daemon behind a router of this kind and this link.
    ///
    /// # Errors
    /// If there are too many daemons.
    pub fn add(&mut self, nat: NatKind, link: LinkSpec) -> Result<Seat, RelayError> {
        let (inner, public) = self.block.addresses(self.seats.len())?;
        let mut state = self.shared.lock();
        let id = state.fabric.add(inner, public, nat, link, self.seed);
        drop(state);
        let seat = Seat { id, inner, public };
        self.seats.push(seat);
        Ok(seat)
    }

    /// The daemons, in the order in which they were added.
    pub fn seats(&self) -> &[Seat] {
        &self.seats
    }

    /// Makes the daemon's UDP port reachable at its outer address under the same number, as on a
    /// machine without NAT or by a rule on the router. The router chooses the outer ports for other
    /// inner ports.
    ///
    /// # Errors
    /// If the outer port is taken.
    pub fn publish_udp(&self, seat: Seat, port: u16) -> Result<SocketAddrV4, RelayError> {
        let mut state = self.shared.lock();
        let State { fabric, ports, .. } = &mut *state;
        let opened = fabric.publish(seat.id, port, ports);
        opened.ok_or_else(|| RelayError::Bind {
            address: SocketAddrV4::new(seat.public, port),
            reason: "the port is taken".to_owned(),
        })
    }

    /// The same for TCP.
    ///
    /// # Errors
    /// If the outer port is taken.
    pub fn publish_tcp(&mut self, seat: Seat, port: u16) -> Result<SocketAddrV4, RelayError> {
        let address = SocketAddrV4::new(seat.public, port);
        let failed = |e: std::io::Error| RelayError::Bind {
            address,
            reason: e.to_string(),
        };
        let listener = tcp::listen(address).map_err(failed)?;
        self.shared.lock().pipes.publish(port, seat.id);
        let accept = tcp::accept(listener, seat, port, Arc::clone(&self.shared));
        self.listeners.push(tokio::spawn(accept).abort_handle());
        Ok(address)
    }

    /// Tells that the daemon dials TCP from this port of all addresses, but accepts no connections
    /// there.
    pub fn dials_from(&self, seat: Seat, port: u16) {
        self.shared.lock().pipes.publish(port, seat.id);
    }

    /// Replaces the daemon's link.
    pub fn reshape(&self, seat: Seat, link: LinkSpec) {
        self.shared.lock().fabric.reshape(seat.id, link);
    }

    /// Nothing arrives between two daemons during this time, counted from the start of the network:
    /// datagrams are lost, and connections over TCP get no answer or end.
    pub fn cut(&self, a: Seat, b: Seat, during: Range<Duration>) {
        self.mute(a, b, during.clone());
        self.mute(b, a, during);
    }

    /// As [`Self::cut`], and only what `from` sends to `to` is lost. Connections over TCP need both directions.
    pub fn mute(&self, from: Seat, to: Seat, during: Range<Duration>) {
        self.shared.lock().fabric.cuts.add(from.id, to.id, during);
    }

    /// All daemons can reach each other again.
    pub fn mend(&self) {
        self.shared.lock().fabric.cuts = Cuts::default();
    }

    /// The counters of the daemon's link.
    pub fn counters(&self, seat: Seat) -> LinkCounters {
        self.shared.lock().fabric.counters(seat.id)
    }

    /// Datagrams from or to an address that no daemon has; for TCP, connections, without bytes.
    pub fn strangers(&self) -> Tally {
        self.shared.lock().strangers
    }

    /// Datagrams that the system refused to deliver to daemons after they counted as delivered.
    pub fn unsent(&self) -> Tally {
        self.shared.lock().unsent
    }

    /// Datagrams that the kernel dropped on the way to the relay and to the daemons. Only open
    /// sockets are counted.
    pub fn kernel_drops(&self) -> KernelDrops {
        let drops = drops();
        let sum = |address: fn(&Seat) -> Ipv4Addr| {
            let of = |seat: &Seat| drops.get(&address(seat)).copied().unwrap_or(0);
            self.seats.iter().map(of).sum()
        };
        KernelDrops {
            relay: sum(|seat| seat.public),
            daemons: sum(|seat| seat.inner),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.listeners.iter().for_each(AbortHandle::abort);
        let mut state = self.shared.lock();
        state.ports.clear();
        state.stop = true;
        drop(state);
        self.shared.due.notify_one();
        if let Some(deliverer) = self.deliverer.take() {
            // An error means that the thread panicked, which needs no action here.
            let _ = deliverer.join();
        }
    }
}

/// Datagrams that the kernel dropped because the buffer of a UDP socket was full, by local address: the emulator's
/// own counters cannot see these. Empty where the kernel does not tell.
fn drops() -> BTreeMap<Ipv4Addr, u64> {
    std::fs::read_to_string("/proc/net/udp").map_or_else(|_| BTreeMap::new(), |text| parse(&text))
}

/// Parses lines of `/proc/net/udp`. The second column is the address in hexadecimal, in the
/// machine's byte order; the last column is the number of drops.
fn parse(text: &str) -> BTreeMap<Ipv4Addr, u64> {
    let mut drops = BTreeMap::new();
    for line in text.lines().skip(1) {
        let mut columns = line.split_whitespace();
        let address = columns.nth(1).and_then(|local| local.split_once(':'));
        let address = address.and_then(|(ip, _)| u32::from_str_radix(ip, 16).ok());
        let count = columns.last().and_then(|drops| drops.parse::<u64>().ok());
        if let (Some(address), Some(count)) = (address, count) {
            *drops
                .entry(Ipv4Addr::from(address.to_ne_bytes()))
                .or_default() += count;
        }
    }
    drops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_kernels_table_is_read() {
        let text = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout \
                    inode ref pointer drops\n\
                    1: 0201407F:0FA1 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 1 2 0 3\n\
                    2: 0201407F:0FA2 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 1 2 0 4\n\
                    broken\n";
        assert_eq!(
            parse(text),
            BTreeMap::from([(Ipv4Addr::new(127, 64, 1, 2), 7)])
        );
    }
}
