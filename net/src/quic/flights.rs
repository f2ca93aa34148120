//! Bounds the bytes to an address that may be forged, to three times those that came from there (RFC 9000,
//! section 8.1).
//!
//! quinn counts the same, and then sends one more packet as long as a byte is left. So a stranger could have
//! four packets sent to a victim for one of its own.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many times the received bytes are sent at most.
const FACTOR: u64 = 3;

/// Bytes of the smallest first packet that quinn does not ignore.
const FIRST_BYTES: u64 = 1200;

/// First packets that are remembered until quinn says that they begin a connection, which is at once.
const SEEN_MAX: usize = 256;

type Key = (IpAddr, u16);

fn key(addr: SocketAddr) -> Key {
    (addr.ip(), addr.port())
}

/// First bytes of packets that may begin a connection: a long header of version 1 with
/// the type Initial.
const fn is_initial(first: u8) -> bool {
    first & 0xf0 == 0xc0
}

#[derive(Debug, Default)]
struct Flight {
    received: u64,
    sent: u64,
    handshakes: usize,
    /// Set once a handshake from there was completed: the address is no forged one.
    proven: bool,
}

#[derive(Debug, Default)]
struct Counted {
    seen: VecDeque<(Key, u64)>,
    open: BTreeMap<Key, Flight>,
}

/// The addresses of one socket's inbound handshakes that have not shown that they receive anything.
#[derive(Debug, Default)]
pub(super) struct Flights {
    /// The number of those, to be read for each packet.
    watched: AtomicUsize,
    counted: Mutex<Counted>,
    /// Bytes that quinn counts as sent and that were kept back, of all sockets of an endpoint.
    kept_back: Arc<AtomicU64>,
}

impl Flights {
    /// Of a socket of an endpoint that counts the bytes that are kept back.
    pub(super) fn new(kept_back: Arc<AtomicU64>) -> Self {
        Self {
            kept_back,
            ..Self::default()
        }
    }

    pub(super) fn keep_back(&self, bytes: usize) {
        self.kept_back.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        // Each change is complete before the lock is released.
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection begins from an address that has shown nothing. It is watched until the value is dropped.
    pub(super) fn watch(self: &Arc<Self>, from: SocketAddr) -> Watched {
        let key = key(from);
        let mut counted = self.counted();
        let first = counted.seen.iter().filter(|(from, _)| *from == key);
        let first: u64 = first.map(|(_, bytes)| *bytes).sum();
        counted.seen.retain(|(from, _)| *from != key);
        let flight = counted.open.entry(key).or_default();
        flight.received += first.max(FIRST_BYTES);
        flight.handshakes += 1;
        self.watched.fetch_add(1, Ordering::Relaxed);
        drop(counted);
        let flights = Arc::clone(self);
        Watched { flights, key }
    }

    /// A handshake with this address was completed: what else begins there must not hold that connection up.
    pub(super) fn prove(&self, at: SocketAddr) {
        if let Some(flight) = self.counted().open.get_mut(&key(at)) {
            flight.proven = true;
        }
    }

    /// Counts received bytes, the first of which is `first`.
    pub(super) fn received(&self, from: SocketAddr, first: u8, bytes: usize) {
        let watches = self.watched.load(Ordering::Relaxed) > 0;
        if !watches && !is_initial(first) {
            return;
        }
        let (key, bytes) = (key(from), bytes as u64);
        let mut counted = self.counted();
        if let Some(flight) = counted.open.get_mut(&key) {
            flight.received += bytes;
        } else if is_initial(first) {
            if counted.seen.len() >= SEEN_MAX {
                counted.seen.pop_front();
            }
            counted.seen.push_back((key, bytes));
        }
    }

    /// How many of these bytes, in whole packets of `segment`, may be sent to an address.
    pub(super) fn may_send(&self, to: SocketAddr, bytes: usize, segment: usize) -> usize {
        if self.watched.load(Ordering::Relaxed) == 0 {
            return bytes;
        }
        let counted = self.counted();
        let Some(flight) = counted.open.get(&key(to)).filter(|flight| !flight.proven) else {
            return bytes;
        };
        let left = (FACTOR * flight.received).saturating_sub(flight.sent);
        match usize::try_from(left) {
            Ok(left) if left < bytes => left - left % segment.max(1),
            _ => bytes,
        }
    }

    pub(super) fn sent(&self, to: SocketAddr, bytes: usize) {
        if self.watched.load(Ordering::Relaxed) > 0
            && let Some(flight) = self.counted().open.get_mut(&key(to))
        {
            flight.sent += bytes as u64;
        }
    }
}

/// An address that is watched until this is dropped.
#[derive(Debug)]
pub(super) struct Watched {
    flights: Arc<Flights>,
    key: Key,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut counted = self.flights.counted();
        if let Some(flight) = counted.open.get_mut(&self.key) {
            flight.handshakes -= 1;
            if flight.handshakes == 0 {
                counted.open.remove(&self.key);
            }
        }
        self.flights.watched.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watched_address_gets_three_times_what_it_sent_in_whole_packets() {
        let flights = Arc::new(Flights::default());
        let from: SocketAddr = ([192, 0, 2, 1], 9).into();
        let other: SocketAddr = ([192, 0, 2, 1], 10).into();
        // Two packets of one hello, the second before the connection is known.
        flights.received(from, 0xc3, 1200);
        flights.received(from, 0xcf, 1300);
        let watched = flights.watch(from);
        assert_eq!(flights.may_send(from, 3600, 1200), 3600);
        flights.sent(from, 7000);
        assert_eq!(flights.may_send(from, 3600, 250), 500);
        assert_eq!(flights.may_send(from, 501, 501), 0);
        assert_eq!(flights.may_send(other, 3600, 1200), 3600);
        flights.received(from, 0xe0, 100);
        assert_eq!(flights.may_send(from, 3600, 800), 800);
        flights.prove(other);
        assert_eq!(flights.may_send(from, 3600, 800), 800);
        flights.prove(from);
        assert_eq!(flights.may_send(from, 3600, 800), 3600);
        drop(watched);
        assert_eq!(flights.may_send(from, 3600, 1200), 3600);
        assert!(flights.counted().open.is_empty());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let flights = Arc::new(Flights::default());
        for port in 1..10_000 {
            flights.received(([192, 0, 2, 1], port).into(), 0xc0, 1200);
            flights.received(([192, 0, 2, 1], port).into(), 0x40, 1200);
        }
        assert_eq!(flights.counted().seen.len(), SEEN_MAX);
    }
}
