//! Addresses of the peers that a daemon met, so that it finds them again after a restart. An
//! invalid file causes one warning and is otherwise ignored.

use crate::store::{StoreError, write_atomically};
use murmurate_protocol::limits::{ADDRESS_BYTES_MAX, RECORD_ADDRESSES_MAX};
use murmurate_protocol::{PeerId, RunId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// Name of the file in a daemon's directory.
const FILE: &str = "peers.json";

/// Number of remembered peers. A few that still run suffice to find the others.
const PEERS_MAX: usize = 64;

/// Maximum size of the file in bytes: twice what all peers with all their addresses take.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Peers with their addresses as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownPeers(BTreeMap<PeerId, Vec<String>>);

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKnown {
    run: String,
    peers: BTreeMap<String, Vec<String>>,
}

impl KnownPeers {
    /// Keeps at most the number of peers and of addresses that the bounds allow.
    pub fn new(peers: impl IntoIterator<Item = (PeerId, Vec<String>)>) -> Self {
        let bounded = |(peer, mut addresses): (PeerId, Vec<String>)| {
            addresses.retain(|a| a.len() <= 2 * ADDRESS_BYTES_MAX);
            addresses.truncate(RECORD_ADDRESSES_MAX);
            (!addresses.is_empty()).then_some((peer, addresses))
        };
        let peers = peers.into_iter().filter_map(bounded);
        Self(peers.take(PEERS_MAX).collect())
    }

    /// All peers with their addresses.
    pub fn iter(&self) -> impl Iterator<Item = (PeerId, &[String])> {
        self.0.iter().map(|(peer, list)| (*peer, list.as_slice()))
    }

    /// Whether no peer is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the peers of `run` from `dir`. Returns none if the file is missing or belongs to
    /// another run.
    ///
    /// # Errors
    /// If the file's content is not what [`KnownPeers::save`] writes.
    pub fn load(dir: &Path, run: &RunId) -> Result<Self, StoreError> {
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
        let peers = raw.peers.into_iter().map(|(peer, addresses)| {
            let peer = PeerId::from_hex(&peer).ok_or_else(|| unknown("a peer's id is invalid"))?;
            Ok((peer, addresses))
        });
        Ok(Self::new(peers.collect::<Result<Vec<_>, StoreError>>()?))
    }

    /// Replaces the file in `dir` atomically.
    ///
    /// # Errors
    /// If the directory cannot be written. The old file is then intact.
    pub fn save(&self, dir: &Path, run: &RunId) -> Result<(), StoreError> {
        let path = dir.join(FILE);
        let peers = self.0.iter();
        let raw = RawKnown {
            run: run.to_hex(),
            peers: peers
                .map(|(id, list)| (id.to_hex(), list.clone()))
                .collect(),
        };
        let text = serde_json::to_vec_pretty(&raw).map_err(|e| unusable(&path, &e.to_string()))?;
        write_atomically(&path, &text)
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

    fn some() -> KnownPeers {
        let address = "/ip4/127.0.0.1/udp/9/quic-v1".to_owned();
        KnownPeers::new([(PeerId::from_bytes([7; 32]), vec![address])])
    }

    #[test]
    fn what_is_saved_is_loaded_by_the_same_run_only() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunId::from_bytes([1; 32]);
        assert!(KnownPeers::load(dir.path(), &run).unwrap().is_empty());
        some().save(dir.path(), &run).unwrap();
        assert_eq!(KnownPeers::load(dir.path(), &run).unwrap(), some());
        let other = RunId::from_bytes([2; 32]);
        assert!(KnownPeers::load(dir.path(), &other).unwrap().is_empty());
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
    fn what_is_remembered_is_bounded() {
        let address = "/ip4/127.0.0.1/udp/9/quic-v1".to_owned();
        let many = (0..=255).map(|id| (PeerId::from_bytes([id; 32]), vec![address.clone(); 99]));
        let known = KnownPeers::new(many);
        assert_eq!(known.iter().count(), PEERS_MAX);
        assert!(
            known
                .iter()
                .all(|(_, list)| list.len() == RECORD_ADDRESSES_MAX)
        );
    }
}
