//! Address translation by a router in front of a daemon: mappings and filters, without sockets and
//! clocks.

use super::error::SpecError;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;
use std::time::Duration;

/// Lifetime of a mapping and of a permission after the last outgoing datagram (RFC 4787, REQ-5: at
/// least 2 min).
pub const MAPPING_LIFETIME: Duration = Duration::from_secs(120);

/// Mappings of one router. The least recently used one is replaced.
const MAPPINGS_MAX: usize = 1024;

/// Remotes that one mapping admits. The least recently used one is replaced.
const PERMISSIONS_MAX: usize = 1024;

const PORT_TRIES: usize = 32;

/// First port of translated mappings (RFC 6335: dynamic ports).
const PORTS_FROM: u16 = 49_152;

/// The kind of a router, in the terms of RFC 4787.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NatKind {
    /// No translation of ports and no filter: the daemon is reachable at its published ports.
    #[default]
    None,
    /// Endpoint-independent mapping and filtering: each inner port has one outer port, which admits
    /// every sender as soon as it exists.
    FullCone,
    /// Endpoint-independent mapping, address-and-port-dependent filtering: each inner port has one
    /// outer port, which admits only remotes that the daemon has sent to.
    PortRestricted,
    /// Address-and-port-dependent mapping and filtering: each destination has its own outer port,
    /// which admits only that destination.
    Symmetric,
}

impl NatKind {
    const NAMES: [(&'static str, Self); 4] = [
        ("none", Self::None),
        ("full-cone", Self::FullCone),
        ("port-restricted", Self::PortRestricted),
        ("symmetric", Self::Symmetric),
    ];

    fn filters(self) -> bool {
        matches!(self, Self::PortRestricted | Self::Symmetric)
    }
}

impl fmt::Display for NatKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, kind)| kind == self);
        f.write_str(name.map_or("none", |(name, _)| name))
    }
}

impl FromStr for NatKind {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let kind = Self::NAMES.iter().find(|(name, _)| *name == text);
        kind.map(|(_, kind)| *kind).ok_or_else(|| {
            let expected =
                "is no kind of NAT; there are none, full-cone, port-restricted, symmetric";
            SpecError::new("NAT", text, expected)
        })
    }
}

/// Opens and closes the router's outer ports: sockets, or a table in tests.
pub trait Ports {
    /// Opens a port. Returns false if it is taken.
    fn open(&mut self, address: SocketAddrV4) -> bool;
    /// Closes an open port.
    fn close(&mut self, address: SocketAddrV4);
}

/// Why the router refuses an incoming datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The port belongs to no daemon.
    NoMapping,
    /// The daemon has not sent to this remote.
    Filtered,
}

/// An inner endpoint, and the destination if the mapping depends on it.
type Key = (SocketAddrV4, Option<SocketAddrV4>);

#[derive(Clone, Debug)]
struct Mapping {
    port: u16,
    /// Published ports never expire.
    published: bool,
    used: Duration,
    permitted: BTreeMap<SocketAddrV4, Duration>,
}

/// The router of one daemon. Times must not go back.
///
/// Only outgoing datagrams refresh a mapping (RFC 4787, REQ-6). There is no hairpinning (REQ-9): a
/// daemon cannot reach itself through its outer address.
#[derive(Debug)]
pub struct Nat {
    kind: NatKind,
    public: Ipv4Addr,
    mappings: BTreeMap<Key, Mapping>,
    by_port: BTreeMap<u16, Key>,
    rng: ChaCha8Rng,
}

impl Nat {
    /// A router without mappings whose outer address is `public`. `seed` determines the outer
    /// ports.
    pub fn new(kind: NatKind, public: Ipv4Addr, seed: u64) -> Self {
        Self {
            kind,
            public,
            mappings: BTreeMap::new(),
            by_port: BTreeMap::new(),
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// The outer address.
    pub fn public(&self) -> Ipv4Addr {
        self.public
    }

    /// The router's kind.
    pub fn kind(&self) -> NatKind {
        self.kind
    }

    /// Opens the outer port with the number of an inner endpoint permanently, as on a machine
    /// without NAT or by a rule on the router. `None` if the port is taken.
    pub fn publish(&mut self, inner: SocketAddrV4, ports: &mut dyn Ports) -> Option<SocketAddrV4> {
        let outer = SocketAddrV4::new(self.public, inner.port());
        if self.by_port.contains_key(&inner.port()) || !ports.open(outer) {
            return None;
        }
        self.insert((inner, None), inner.port(), true, Duration::ZERO);
        Some(outer)
    }

    /// Handles an outgoing datagram from `inner` to `remote` and returns its outer address. `None`
    /// if no port is free.
    pub fn outbound(
        &mut self,
        now: Duration,
        inner: SocketAddrV4,
        remote: SocketAddrV4,
        ports: &mut dyn Ports,
    ) -> Option<SocketAddrV4> {
        let key = (inner, (self.kind == NatKind::Symmetric).then_some(remote));
        let live = self.mappings.get(&key).is_some_and(|m| m.lives(now));
        if !live {
            self.remove(&key, ports);
            self.make_room(now, ports);
            let port = self.open(inner, ports)?;
            self.insert(key, port, false, now);
        }
        let mapping = self.mappings.get_mut(&key)?;
        mapping.used = now;
        if self.kind.filters() {
            mapping.permit(now, remote);
        }
        Some(SocketAddrV4::new(self.public, mapping.port))
    }

    /// Handles an incoming datagram from `remote` to an outer port and returns the inner endpoint
    /// that receives it.
    ///
    /// # Errors
    /// If the router refuses it.
    pub fn inbound(
        &self,
        now: Duration,
        port: u16,
        remote: SocketAddrV4,
    ) -> Result<SocketAddrV4, Refusal> {
        let key = self.by_port.get(&port).ok_or(Refusal::NoMapping)?;
        let mapping = self.mappings.get(key).filter(|m| m.lives(now));
        let mapping = mapping.ok_or(Refusal::NoMapping)?;
        let permitted = mapping.permitted.get(&remote);
        let open = !self.kind.filters() || mapping.published;
        if open || permitted.is_some_and(|used| alive(*used, now)) {
            Ok(key.0)
        } else {
            Err(Refusal::Filtered)
        }
    }

    fn insert(&mut self, key: Key, port: u16, published: bool, now: Duration) {
        let mapping = Mapping {
            port,
            published,
            used: now,
            permitted: BTreeMap::new(),
        };
        self.by_port.insert(port, key);
        self.mappings.insert(key, mapping);
    }

    fn remove(&mut self, key: &Key, ports: &mut dyn Ports) {
        if let Some(mapping) = self.mappings.remove(key) {
            self.by_port.remove(&mapping.port);
            ports.close(SocketAddrV4::new(self.public, mapping.port));
        }
    }

    /// Drops expired mappings. If there are none, drops the least recently used one.
    fn make_room(&mut self, now: Duration, ports: &mut dyn Ports) {
        if self.mappings.len() < MAPPINGS_MAX {
            return;
        }
        let dead = self.mappings.iter().filter(|(_, m)| !m.lives(now));
        let mut gone: Vec<Key> = dead.map(|(key, _)| *key).collect();
        if gone.is_empty() {
            let all = self.mappings.iter().filter(|(_, m)| !m.published);
            gone.extend(all.min_by_key(|(_, m)| m.used).map(|(key, _)| *key));
        }
        for key in gone {
            self.remove(&key, ports);
        }
    }

    /// Opens an outer port: the same number without translation, otherwise a random one.
    fn open(&mut self, inner: SocketAddrV4, ports: &mut dyn Ports) -> Option<u16> {
        let preserved = self.kind == NatKind::None;
        for tried in 0..PORT_TRIES {
            let drawn = (self.rng.next_u32() % u32::from(u16::MAX - PORTS_FROM)) as u16;
            let port = if preserved && tried == 0 {
                inner.port()
            } else {
                PORTS_FROM + drawn
            };
            let free = !self.by_port.contains_key(&port);
            if free && ports.open(SocketAddrV4::new(self.public, port)) {
                return Some(port);
            }
        }
        None
    }
}

impl Mapping {
    fn lives(&self, now: Duration) -> bool {
        self.published || alive(self.used, now)
    }

    fn permit(&mut self, now: Duration, remote: SocketAddrV4) {
        if self.permitted.len() >= PERMISSIONS_MAX && !self.permitted.contains_key(&remote) {
            let oldest = self.permitted.iter().min_by_key(|(_, used)| **used);
            if let Some(oldest) = oldest.map(|(remote, _)| *remote) {
                self.permitted.remove(&oldest);
            }
        }
        self.permitted.insert(remote, now);
    }
}

fn alive(used: Duration, now: Duration) -> bool {
    now.saturating_sub(used) < MAPPING_LIFETIME
}

#[cfg(test)]
mod tests;
