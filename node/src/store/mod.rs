//! A daemon's directory: its identity, its lock and its checkpoint. It depends neither on the
//! network nor on the peer's state machine, and treats a checkpoint's content as data.

pub mod checkpoint;
pub mod tensors;

mod best;
mod error;
mod files;
mod identity;
mod known;
mod lock;

pub use best::Best;
pub use checkpoint::{
    Checkpoint, CheckpointWriter, Expected, LaneFile, LaneSink, Manifest, Progress,
};
pub use error::StoreError;
pub use files::write_atomically;
pub use identity::Identity;
pub use known::KnownPeers;
pub use lock::DirectoryLock;

use std::path::{Path, PathBuf};

/// An open and locked directory of a daemon.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    identity: Identity,
    _lock: DirectoryLock,
}

impl Store {
    /// Opens `dir`. Creates the directory and an identity if they are missing.
    ///
    /// # Errors
    /// If another daemon uses the directory, or if it cannot be read or written.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        std::fs::create_dir_all(dir).map_err(|e| StoreError::io("create", dir, e))?;
        let lock = DirectoryLock::acquire(dir)?;
        let identity = Identity::load_or_create(dir)?;
        Ok(Self {
            dir: dir.to_owned(),
            identity,
            _lock: lock,
        })
    }

    /// The directory's path.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The daemon's identity.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The last committed checkpoint, verified byte by byte; `None` in a fresh directory.
    ///
    /// # Errors
    /// If the checkpoint is damaged or belongs to another run, plan or model. It is kept, and the
    /// caller must not continue in this directory.
    pub fn resume(&self, expected: &Expected) -> Result<Option<Checkpoint>, StoreError> {
        let Some(checkpoint) = Checkpoint::open(&self.dir)? else {
            return Ok(None);
        };
        checkpoint.require(expected)?;
        checkpoint.verify()?;
        Ok(Some(checkpoint))
    }

    /// Writes the address of the HTTP server to `http.addr`, for people and scripts.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub fn note_http(&self, address: std::net::SocketAddr) -> Result<(), StoreError> {
        let path = self.dir.join("http.addr");
        write_atomically(&path, format!("{address}\n").as_bytes())
    }
}
