//! A daemon's directory: its identity, its lock and its checkpoint. It depends neither on the
//! network nor on the peer's state machine, and treats a checkpoint's content as data.

pub mod checkpoint;
pub mod tensors;

mod best;
mod error;
mod files;
mod identity;
mod known;

pub use best::Best;
pub(crate) use checkpoint::LaneFile;
pub(crate) use checkpoint::MANIFEST;
pub use checkpoint::{Checkpoint, CheckpointWriter, Expected, Manifest, Progress};
pub use error::StoreError;
pub use files::{DirectoryLock, write_private};
pub(crate) use files::{append_private, check_permissions, create_private, write_atomically};
pub use identity::Identity;
pub(crate) use identity::random_bytes;
pub(crate) use known::KnownPeers;
pub use murmurate_attach::{Buffer, buffers_of};

use murmurate_protocol::PlanHash;
use std::path::{Path, PathBuf};

/// An open and locked directory of a daemon.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    identity: Identity,
    /// Files of another identity that were here before this one.
    left_by_another: Vec<&'static str>,
    _lock: DirectoryLock,
}

/// Files that a daemon writes only once it has an identity.
const WRITTEN_BY_A_PEER: [&str; 5] = [
    "checkpoint.json",
    "membership.toml",
    "peers.json",
    "votes",
    "openings",
];

impl Store {
    /// Opens `dir`. Creates the directory and an identity if they are missing.
    ///
    /// # Errors
    /// If another daemon uses the directory, or if it cannot be read or written.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        create_private(dir).map_err(|e| StoreError::io("create", dir, e))?;
        let lock = DirectoryLock::acquire(dir)?;
        let fresh = !Identity::path(dir).exists();
        let written = WRITTEN_BY_A_PEER.into_iter();
        let left_by_another = written.filter(|file| fresh && dir.join(file).exists());
        let left_by_another = left_by_another.collect();
        let identity = Identity::load_or_create(dir)?;
        Ok(Self {
            dir: dir.to_owned(),
            identity,
            left_by_another,
            _lock: lock,
        })
    }

    /// The identity of `dir`. Creates both if they are missing, and locks nothing: a daemon may be
    /// running there.
    ///
    /// # Errors
    /// If the directory cannot be read or written.
    pub fn identity_of(dir: &Path) -> Result<Identity, StoreError> {
        create_private(dir).map_err(|e| StoreError::io("create", dir, e))?;
        Identity::load_or_create(dir)
    }

    /// The directory's path.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The daemon's identity.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The files of another peer, if they were here and no key was: its key is gone, and this daemon has a new
    /// one.
    pub fn left_by_another(&self) -> Option<String> {
        let (last, others) = self.left_by_another.split_last()?;
        Some(match others {
            [] => (*last).to_owned(),
            others => format!("{} and {last}", others.join(", ")),
        })
    }

    /// The last committed checkpoint, verified byte by byte; `None` in a fresh directory. It may belong
    /// to a plan that differs only in the number of rounds: `plan_of` gives the hash of the plan with
    /// another number. So a run that is complete can go on.
    ///
    /// # Errors
    /// If the checkpoint is damaged or belongs to another run, plan or model. It is kept, and the
    /// caller must not continue in this directory.
    pub fn resume(
        &self,
        expected: &Expected,
        plan_of: &dyn Fn(u64) -> Option<PlanHash>,
    ) -> Result<Option<Checkpoint>, StoreError> {
        let Some(checkpoint) = Checkpoint::open(&self.dir)? else {
            return Ok(None);
        };
        let manifest = checkpoint.manifest();
        let before = manifest.rounds().and_then(plan_of);
        let plan = before
            .filter(|plan| plan.to_hex() == manifest.plan)
            .unwrap_or(expected.plan);
        checkpoint.require(&Expected { plan, ..*expected })?;
        checkpoint.verify()?;
        Ok(Some(checkpoint))
    }

    /// Writes a secret to a file that only this user may read.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub fn note_secret(&self, file: &str, secret: &str) -> Result<(), StoreError> {
        write_private(&self.dir.join(file), format!("{secret}\n").as_bytes())
    }

    /// Writes the address of the HTTP server to `http.addr`, for people and scripts.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub fn note_http(&self, address: std::net::SocketAddr) -> Result<(), StoreError> {
        let path = self.dir.join(crate::api::ADDRESS_FILE);
        write_atomically(&path, format!("{address}\n").as_bytes())
    }
}

/// Writes the addresses at which others can join a daemon to `addresses`, one in a line.
///
/// # Errors
/// If the directory cannot be written.
pub(crate) fn note_addresses(dir: &Path, addresses: &[String]) -> Result<(), StoreError> {
    let text: String = addresses.iter().map(|a| format!("{a}\n")).collect();
    write_atomically(&dir.join("addresses"), text.as_bytes())
}

/// The addresses that a daemon has noted in its directory.
pub(crate) fn read_addresses(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join("addresses")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_new_directory_is_private_and_an_old_one_keeps_its_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let fresh = dir.path().join("a/b");
        Store::open(&fresh).unwrap();
        assert_eq!(mode(&fresh), 0o700);
        let store = Store::open(&dir.path().join("c")).unwrap();
        store.note_secret("secret", "word").unwrap();
        assert_eq!(mode(&store.dir().join("secret")), 0o600);
        assert_eq!(store.left_by_another(), None);
        let old = dir.path().join("old");
        std::fs::create_dir(&old).unwrap();
        std::fs::set_permissions(&old, PermissionsExt::from_mode(0o750)).unwrap();
        Store::open(&old).unwrap();
        assert_eq!(mode(&old), 0o750);
    }

    #[test]
    fn files_of_an_identity_that_is_gone_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let first = Store::open(dir.path()).unwrap().identity().peer();
        assert_eq!(Store::open(dir.path()).unwrap().left_by_another(), None);
        for file in ["peers.json", "checkpoint.json", "votes"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        assert_eq!(Store::open(dir.path()).unwrap().left_by_another(), None);
        std::fs::remove_file(dir.path().join("identity.key")).unwrap();
        let store = Store::open(dir.path()).unwrap();
        assert_ne!(store.identity().peer(), first);
        let left = store.left_by_another().unwrap();
        assert_eq!(left, "checkpoint.json, peers.json and votes");
    }
}
