//! Peer records: signs this peer's record, and verifies those of others. Converts peer ids (32-byte Ed25519
//! keys) to libp2p's ids and back, and tells addresses apart.

use libp2p::Multiaddr;
use libp2p::identity::{self, Keypair, PublicKey, ed25519};
use libp2p::multiaddr::Protocol;
use murmurate_protocol::limits::{ADDRESS_BYTES_MAX, RECORD_ADDRESSES_MAX, RECORD_LIFETIME};
use murmurate_protocol::wire::{PeerRecord, RecordFields};
use murmurate_protocol::{Locality, PeerId, RunId, SortedSet, Time};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, SystemTime};

/// Time between new signatures of an unchanged record. Three records may get lost before the first
/// one expires.
pub(super) const REFRESH: Duration = Duration::from_secs(RECORD_LIFETIME.as_secs() / 4);

/// Checks that the record's lengths are within bounds and its signature belongs to the peer that it
/// names.
///
/// Does not check the run or the expiry, which is the `Peer`'s task.
pub fn verify(record: &PeerRecord) -> bool {
    record.check().is_ok()
        && public_key(&record.peer)
            .is_some_and(|key| key.verify(&record.signed_bytes(), &record.signature))
}

/// This peer's own record and its addresses.
#[derive(Debug)]
pub(super) struct OwnRecord {
    identity: Keypair,
    me: PeerId,
    run: RunId,
    sequence: u64,
    addresses: SortedSet<Multiaddr>,
    locality: Locality,
}

impl OwnRecord {
    /// Starts without addresses.
    pub(super) fn new(identity: Keypair, me: PeerId, run: RunId) -> Self {
        Self {
            identity,
            me,
            run,
            sequence: 0,
            addresses: SortedSet::new(),
            locality: Locality::default(),
        }
    }

    /// Where in the network the peer is.
    pub(super) fn at(self, locality: Locality) -> Self {
        Self { locality, ..self }
    }

    /// Sets where in the network the peer is. Returns whether the record changed.
    pub(super) fn locate(&mut self, locality: Locality) -> bool {
        let old = std::mem::replace(&mut self.locality, locality);
        old != self.locality
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = &Multiaddr> {
        self.addresses.iter()
    }

    /// Adds an address. Returns whether the record changed.
    pub(super) fn add(&mut self, address: Multiaddr) -> bool {
        self.addresses.insert(address)
    }

    /// Removes an address. Returns whether the record changed.
    pub(super) fn remove(&mut self, address: &Multiaddr) -> bool {
        self.addresses.remove(address)
    }

    /// Signs the record at time `now`. Sequence numbers follow the clock, so they grow across
    /// restarts; if the clock goes back, they still grow within this process.
    pub(super) fn sign(&mut self, now: SystemTime) -> Option<PeerRecord> {
        let since = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let nanos = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        self.sequence = nanos.max(self.sequence.saturating_add(1));
        let mut addresses: Vec<&Multiaddr> = self
            .addresses
            .iter()
            .filter(|a| a.len() <= ADDRESS_BYTES_MAX)
            .collect();
        addresses.sort_by_key(|a| (is_relayed(a), is_loopback(a), !is_quic(a)));
        let mut record = PeerRecord::from(RecordFields {
            peer: self.me,
            run: self.run,
            sequence: self.sequence,
            expires: Time::from_nanos(nanos) + RECORD_LIFETIME,
            addresses: addresses
                .iter()
                .take(RECORD_ADDRESSES_MAX)
                .map(|a| a.to_vec())
                .collect(),
            locality: self.locality.clone(),
            signature: Vec::new(),
        });
        // Ed25519 keys can always sign, and other kinds were refused at the start.
        record.signature = self.identity.sign(&record.signed_bytes()).ok()?;
        Some(record)
    }
}

pub(super) fn addresses(record: &PeerRecord) -> impl Iterator<Item = Multiaddr> {
    let parsed = record
        .addresses
        .iter()
        .filter(|a| a.len() <= ADDRESS_BYTES_MAX);
    let parsed = parsed.filter_map(|bytes| Multiaddr::try_from(bytes.clone()).ok());
    parsed.take(RECORD_ADDRESSES_MAX)
}

/// What daemons behind one router have in common: their public address, or its network of 48 bits with
/// IPv6. None for a record without a public address.
pub(crate) fn public_network(record: &PeerRecord) -> Option<Vec<u8>> {
    let mut direct = addresses(record).filter(|a| !is_relayed(a) && is_global(a));
    direct.find_map(|address| {
        address.iter().find_map(|part| match part {
            Protocol::Ip4(ip) => Some(ip.octets().to_vec()),
            Protocol::Ip6(ip) => Some(ip.octets()[..6].to_vec()),
            _ => None,
        })
    })
}

/// Groups addresses in the order in which they are dialled: first QUIC, then TCP, then relays.
pub(super) fn stages(addresses: impl IntoIterator<Item = Multiaddr>) -> VecDeque<Vec<Multiaddr>> {
    let mut stages = [const { Vec::new() }; 3];
    for address in addresses {
        let stage = match (is_relayed(&address), is_quic(&address)) {
            (true, _) => 2,
            (false, false) => 1,
            (false, true) => 0,
        };
        stages[stage].push(address);
    }
    stages
        .into_iter()
        .filter(|stage| !stage.is_empty())
        .collect()
}

pub(super) fn is_quic(address: &Multiaddr) -> bool {
    address.iter().any(|part| matches!(part, Protocol::QuicV1))
}

/// True for an address that goes through a relay.
pub(super) fn is_relayed(address: &Multiaddr) -> bool {
    address.iter().any(|part| part == Protocol::P2pCircuit)
}

/// True for an address that is globally unique (RFC 6890).
pub(super) fn is_global(address: &Multiaddr) -> bool {
    !is_loopback(address)
        && address.iter().all(|part| match part {
            Protocol::Ip4(ip) => is_global_4(ip),
            Protocol::Ip6(ip) => is_global_6(ip),
            _ => true,
        })
}

pub(crate) fn is_loopback(address: &Multiaddr) -> bool {
    address.iter().any(|part| match part {
        Protocol::Ip4(ip) => ip.is_loopback(),
        Protocol::Ip6(ip) => ip.is_loopback(),
        _ => false,
    })
}

fn is_global_4(ip: Ipv4Addr) -> bool {
    let [a, b, ..] = ip.octets();
    // Providers use 100.64.0.0/10 for networks shared by several customers (RFC 6598).
    let shared = a == 100 && (64..128).contains(&b);
    !(ip.is_private() || ip.is_link_local() || ip.is_unspecified() || shared)
}

fn is_global_6(ip: Ipv6Addr) -> bool {
    !(ip.is_unique_local() || ip.is_unicast_link_local() || ip.is_unspecified())
}

/// Multihash code of the identity function.
const IDENTITY_HASH: u64 = 0;

/// The id of a libp2p peer; `None` if its key is not Ed25519.
pub fn from_libp2p(peer: &identity::PeerId) -> Option<PeerId> {
    let hash = peer.as_ref();
    if hash.code() != IDENTITY_HASH {
        return None;
    }
    let key = PublicKey::try_decode_protobuf(hash.digest()).ok()?;
    Some(PeerId::from_bytes(key.try_into_ed25519().ok()?.to_bytes()))
}

/// libp2p's id of a peer; `None` if the 32 bytes are not a point of the curve.
pub(crate) fn to_libp2p(peer: &PeerId) -> Option<identity::PeerId> {
    Some(public_key(peer)?.to_peer_id())
}

/// Appends the peer's id to the address, so that others can join with it.
pub(crate) fn address_with_peer(address: Multiaddr, peer: identity::PeerId) -> Multiaddr {
    match address.iter().last() {
        Some(Protocol::P2p(_)) => address,
        _ => address.with(Protocol::P2p(peer)),
    }
}

pub(crate) fn public_key(peer: &PeerId) -> Option<PublicKey> {
    ed25519::PublicKey::try_from_bytes(peer.as_bytes())
        .ok()
        .map(PublicKey::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::from_libp2p;
    use libp2p::identity::Keypair;

    fn own() -> OwnRecord {
        let identity = Keypair::generate_ed25519();
        let me = from_libp2p(&identity.public().to_peer_id()).unwrap();
        OwnRecord::new(identity, me, RunId::from_bytes([7; 32]))
    }

    #[test]
    fn a_signed_record_verifies_and_a_changed_one_does_not() {
        let mut own = own();
        own.add("/ip4/127.0.0.1/udp/7/quic-v1".parse().unwrap());
        let record = own.sign(SystemTime::now()).unwrap();
        assert!(verify(&record));
        let moved = PeerRecord::from(RecordFields {
            addresses: vec![vec![1, 2, 3]],
            ..(*record).clone()
        });
        assert!(!verify(&moved));
        let stolen = PeerRecord::from(RecordFields {
            peer: PeerId::from_bytes([3; 32]),
            ..(*record).clone()
        });
        assert!(!verify(&stolen));
        assert!(!verify(&PeerRecord::from(RecordFields {
            signature: Vec::new(),
            ..(*record).clone()
        })));
    }

    #[test]
    fn the_public_network_of_a_record_is_found() {
        let network = |texts: &[&str]| {
            let mut own = own();
            texts.iter().for_each(|text| {
                own.add(text.parse().unwrap());
            });
            public_network(&own.sign(SystemTime::now()).unwrap())
        };
        let home = "/ip4/192.168.1.7/udp/7/quic-v1";
        assert_eq!(network(&[home, "/ip4/127.0.0.1/tcp/7"]), None);
        let public = "/ip4/198.51.100.7/udp/9/quic-v1";
        assert_eq!(network(&[home, public]), Some(vec![198, 51, 100, 7]));
        let six = "/ip6/2001:db8:1:2::3/udp/9/quic-v1";
        assert_eq!(network(&[six]), Some(vec![0x20, 0x01, 0x0d, 0xb8, 0, 1]));
        // The address of a relay says nothing of the peer behind it.
        let relayed = format!("{public}/p2p-circuit");
        assert_eq!(network(&[&relayed]), None);
    }

    #[test]
    fn a_record_says_where_the_peer_is() {
        let site = Some(murmurate_protocol::Site::new("berlin").unwrap());
        let locality = Locality { site, rate: None };
        let record = own().at(locality.clone()).sign(SystemTime::now()).unwrap();
        assert!(verify(&record));
        assert_eq!(record.locality, locality);
        let moved = PeerRecord::from(RecordFields {
            locality: Locality::default(),
            ..(*record).clone()
        });
        assert!(!verify(&moved), "the signature is over the site too");
    }

    #[test]
    fn sequences_grow_even_when_the_clock_goes_back() {
        let mut own = own();
        let now = SystemTime::now();
        let first = own.sign(now).unwrap();
        let second = own.sign(now - Duration::from_secs(100)).unwrap();
        assert!(second.sequence > first.sequence);
        let lived = first.expires.since(Time::ZERO);
        assert_eq!(
            lived,
            now.duration_since(SystemTime::UNIX_EPOCH).unwrap() + RECORD_LIFETIME
        );
    }

    #[test]
    fn public_quic_addresses_come_first_and_relayed_ones_last() {
        let mut own = own();
        for address in [
            "/ip4/10.0.0.1/udp/9/quic-v1/p2p-circuit",
            "/ip4/127.0.0.1/tcp/1",
            "/ip4/10.0.0.1/tcp/1",
            "/ip4/127.0.0.1/udp/1/quic-v1",
            "/ip4/10.0.0.1/udp/1/quic-v1",
        ] {
            own.add(address.parse().unwrap());
        }
        let record = own.sign(SystemTime::now()).unwrap();
        let stages = stages(addresses(&record));
        assert_eq!(stages[0][0].to_string(), "/ip4/10.0.0.1/udp/1/quic-v1");
        assert_eq!(stages.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 1]);
        assert!(is_relayed(&stages[2][0]));
    }

    #[test]
    fn addresses_within_networks_are_told_from_those_of_all() {
        for (text, global) in [
            ("/ip4/203.0.113.7/tcp/1", true),
            ("/ip6/2001:db8::1/tcp/1", true),
            ("/ip4/100.64.0.1/tcp/1", false),
            ("/ip4/172.16.0.1/tcp/1", false),
            ("/ip4/127.1.2.3/tcp/1", false),
            ("/ip6/fd00::1/tcp/1", false),
            ("/ip6/fe80::1/tcp/1", false),
        ] {
            assert_eq!(is_global(&text.parse().unwrap()), global, "{text}");
        }
    }

    #[test]
    fn an_ed25519_identity_converts_both_ways() {
        let key = Keypair::generate_ed25519().public();
        let theirs = key.to_peer_id();
        let ours = from_libp2p(&theirs).unwrap();
        assert_eq!(*ours.as_bytes(), key.try_into_ed25519().unwrap().to_bytes());
        assert_eq!(to_libp2p(&ours), Some(theirs));
    }

    #[test]
    fn an_identity_of_another_kind_is_refused() {
        // The id contains a hash of the key, as for RSA keys.
        assert_eq!(from_libp2p(&identity::PeerId::random()), None);
        // y = 2 is not the coordinate of any point of the curve.
        let mut bytes = [0u8; 32];
        bytes[0] = 2;
        assert_eq!(to_libp2p(&PeerId::from_bytes(bytes)), None);
    }
}
