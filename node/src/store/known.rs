//! Addresses of the peers that a daemon met, and its own ports, so that they find each other again
//! after a restart. An invalid file causes one warning and is otherwise ignored.

use crate::ports::Ports;
use crate::store::{StoreError, write_private};
use murmurate_protocol::limits::{ACTIVE_LINKS_MAX, ADDRESS_BYTES_MAX, RECORD_ADDRESSES_MAX};
use murmurate_protocol::{Digest, PeerId, RunId, SortedMap, SortedSet};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::io::Read;
use std::path::Path;

/// Name of the file in a daemon's directory.
const FILE: &str = "peers.json";

/// Number of remembered peers. A few that still run suffice to find the others.
const PEERS_MAX: usize = 64;

/// Maximum size of the file in bytes: twice what all peers with all their addresses take.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Seconds after which the file says again that a peer is still there.
const SEEN_EVERY_S: u64 = 60;

/// Peers that were there at most this many seconds before the last one were there at the end.
const COMPANIONS_S: u64 = 2 * SEEN_EVERY_S;

/// Peers with their addresses as text, and this daemon's ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownPeers {
    peers: SortedMap<PeerId, KnownPeer>,
    /// The ports on which this daemon listened.
    pub ports: Ports,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownPeer {
    addresses: Vec<String>,
    /// When it was last there, in seconds since 1970.
    #[serde(default)]
    seen: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKnown {
    run: String,
    #[serde(default, skip_serializing_if = "Ports::is_empty")]
    ports: Ports,
    peers: SortedMap<String, KnownPeer>,
}

impl KnownPeers {
    /// Takes the peers that are there at time `now`, in seconds since 1970. Returns whether the file
    /// must be written. The number of peers and of addresses is bounded: the peers that were there
    /// last stay, and of those a choice that depends on `me`, so that not all daemons remember the
    /// same ones.
    pub(crate) fn meet(
        &mut self,
        me: PeerId,
        present: impl IntoIterator<Item = (PeerId, Vec<String>)>,
        now: u64,
    ) -> bool {
        let before = self.peers.clone();
        let mut there = SortedSet::new();
        for (peer, mut addresses) in present {
            addresses.retain(|a| a.len() <= 2 * ADDRESS_BYTES_MAX);
            addresses.truncate(RECORD_ADDRESSES_MAX);
            if addresses.is_empty() {
                continue;
            }
            there.insert(peer);
            let known = self.peers.entry(peer).or_default();
            if known.addresses != addresses || now.abs_diff(known.seen) >= SEEN_EVERY_S {
                let seen = now;
                *known = KnownPeer { addresses, seen };
            }
        }
        if self.peers.len() > PEERS_MAX {
            let mut all: Vec<_> = std::mem::take(&mut self.peers).into_iter().collect();
            all.sort_by_cached_key(|(peer, known)| {
                let seen = if there.contains(peer) {
                    now
                } else {
                    known.seen
                };
                let lot = [&me.as_bytes()[..], &peer.as_bytes()[..]].concat();
                (Reverse(seen), Digest::of(&lot))
            });
            self.peers = all.into_iter().take(PEERS_MAX).collect();
        }
        self.peers != before
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (PeerId, &[String])> {
        let peers = self.peers.iter();
        peers.map(|(peer, known)| (*peer, known.addresses.as_slice()))
    }

    /// The peers that were there at the end, as many as one daemon is linked to in a large run.
    pub(crate) fn companions(&self) -> Vec<PeerId> {
        let last = self.peers.values().map(|known| known.seen).max();
        let recent = |known: &KnownPeer| Some(known.seen + COMPANIONS_S) >= last && known.seen > 0;
        let recent = self.peers.iter().filter(|(_, known)| recent(known));
        let recent = recent.map(|(peer, _)| *peer);
        recent.take(ACTIVE_LINKS_MAX - 1).collect()
    }

    /// Reads the peers of `run` from `dir`. Returns none if the file is missing or belongs to
    /// another run.
    ///
    /// # Errors
    /// If the file's content is not what [`KnownPeers::save`] writes.
    pub(crate) fn load(dir: &Path, run: &RunId) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let file = match std::fs::File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(e) => return Err(StoreError::io("open", &path, e)),
        };
        let mut text = Vec::new();
        file.take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut text)
            .map_err(|e| StoreError::io("read", &path, e))?;
        let unknown = |reason: &str| unusable(&path, reason);
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(unknown("it is too long"));
        }
        let raw: RawKnown = serde_json::from_slice(&text).map_err(|e| unknown(&e.to_string()))?;
        if raw.run != run.to_hex() {
            return Ok(Self::default());
        }
        let bounded = |known: &KnownPeer| {
            known.addresses.len() <= RECORD_ADDRESSES_MAX
                && known
                    .addresses
                    .iter()
                    .all(|a| a.len() <= 2 * ADDRESS_BYTES_MAX)
        };
        if raw.peers.len() > PEERS_MAX || !raw.peers.values().all(bounded) {
            return Err(unknown("it has too many peers or addresses"));
        }
        let peers = raw.peers.into_iter().map(|(peer, known)| {
            let peer = PeerId::from_hex(&peer).ok_or_else(|| unknown("a peer's id is invalid"))?;
            Ok((peer, known))
        });
        Ok(Self {
            peers: peers.collect::<Result<_, StoreError>>()?,
            ports: raw.ports,
        })
    }

    /// Replaces the file in `dir` atomically.
    ///
    /// # Errors
    /// If the directory cannot be written. The old file is then intact.
    pub(crate) fn save(&self, dir: &Path, run: &RunId) -> Result<(), StoreError> {
        let path = dir.join(FILE);
        let peers = self.peers.iter();
        let raw = RawKnown {
            run: run.to_hex(),
            ports: self.ports.clone(),
            peers: peers
                .map(|(id, known)| (id.to_hex(), known.clone()))
                .collect(),
        };
        let text = serde_json::to_vec_pretty(&raw).map_err(|e| unusable(&path, &e.to_string()))?;
        write_private(&path, &text)
    }
}

fn unusable(path: &Path, reason: &str) -> StoreError {
    StoreError::KnownPeers {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: PeerId = PeerId::from_bytes([0; 32]);

    fn peer(id: u8) -> PeerId {
        PeerId::from_bytes([id; 32])
    }

    fn at(port: u16) -> Vec<String> {
        vec![format!("/ip4/127.0.0.1/udp/{port}/quic-v1")]
    }

    fn some() -> KnownPeers {
        let mut known = KnownPeers::default();
        assert!(known.meet(ME, [(peer(7), at(9))], 1000));
        known.ports.remember(&at(77)[0].parse().unwrap());
        known
    }

    #[test]
    fn what_is_saved_is_loaded_by_the_same_run_only() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunId::from_bytes([1; 32]);
        let none = KnownPeers::default();
        assert_eq!(KnownPeers::load(dir.path(), &run).unwrap(), none);
        some().save(dir.path(), &run).unwrap();
        assert_eq!(KnownPeers::load(dir.path(), &run).unwrap(), some());
        let other = RunId::from_bytes([2; 32]);
        assert_eq!(KnownPeers::load(dir.path(), &other).unwrap(), none);
    }

    #[test]
    fn a_damaged_or_endless_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunId::from_bytes([1; 32]);
        let long = vec![b' '; FILE_BYTES_MAX as usize + 1];
        for bytes in [&b"{"[..], b"{\"run\":\"\",\"peers\":[]}", &long] {
            std::fs::write(dir.path().join(FILE), bytes).unwrap();
            let error = KnownPeers::load(dir.path(), &run).unwrap_err().to_string();
            assert!(error.contains("peers.json is ignored"), "{error}");
        }
    }

    #[test]
    fn a_peer_that_is_away_is_remembered_until_many_came_after_it() {
        let mut known = some();
        assert!(known.meet(ME, [(peer(8), at(1))], 1010));
        assert!(!known.meet(ME, [(peer(8), at(1))], 1020), "nothing new");
        assert!(known.meet(ME, [(peer(8), at(2))], 1020), "it moved");
        assert!(known.meet(ME, [(peer(8), at(2))], 1090), "still there");
        assert_eq!(known.companions(), [peer(7), peer(8)]);
        assert!(known.meet(ME, [(peer(8), at(2))], 2000));
        assert_eq!(known.companions(), [peer(8)], "the other left long ago");
        let many = (10..10 + PEERS_MAX as u8 - 1).map(|id| (peer(id), at(1)));
        assert!(known.meet(ME, many, 3000));
        assert_eq!(known.iter().count(), PEERS_MAX);
        assert!(known.iter().all(|(id, _)| id != peer(7)), "the oldest goes");
        assert!(known.iter().any(|(id, _)| id == peer(8)));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_differs_among_daemons() {
        let long: Vec<String> = at(9).into_iter().cycle().take(99).collect();
        let of = |me: PeerId| {
            let mut known = KnownPeers::default();
            let many = (0..=255).map(|id| (peer(id), long.clone()));
            assert!(known.meet(me, many.clone(), 5));
            assert!(!known.meet(me, many, 6), "the same choice again");
            known
        };
        let known = of(ME);
        assert_eq!(known.iter().count(), PEERS_MAX);
        assert_eq!(known.companions().len(), ACTIVE_LINKS_MAX - 1);
        let mut lists = known.iter().map(|(_, list)| list.len());
        assert!(lists.all(|len| len == RECORD_ADDRESSES_MAX));
        let ids = |known: &KnownPeers| known.iter().map(|(id, _)| id).collect::<Vec<_>>();
        assert_ne!(ids(&known), ids(&of(peer(1))));
    }
}
