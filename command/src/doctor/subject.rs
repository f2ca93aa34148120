//! The subject of all checks: a daemon's directory, configuration and invite.

use crate::commands::daemon_http;
use libp2p::Multiaddr;
use murmurate_node::config::Config;
use murmurate_node::events::unix_s;
use murmurate_node::store::{DirectoryLock, Identity, StoreError};
use murmurate_protocol::PeerId;
use murmurate_trust::Invite;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A daemon that runs, or is to run.
pub(super) struct Subject {
    /// Its directory.
    pub(super) dir: PathBuf,
    /// Its configuration, if it can be used.
    pub(super) config: Option<Config>,
    /// The invite that it is to enter with.
    pub(super) invite: Option<Invite>,
    pub(super) runs: bool,
    /// The time, in seconds since 1970.
    pub(super) now_s: u64,
}

impl Subject {
    /// The daemon of this directory.
    pub(super) fn new(dir: PathBuf, config: Option<Config>, invite: Option<Invite>) -> Self {
        Self {
            runs: runs_in(&dir),
            now_s: unix_s() as u64,
            dir,
            config,
            invite,
        }
    }

    /// Its id, if it has one already. None is made.
    pub(super) fn me(&self) -> Option<PeerId> {
        let file = self.dir.join("identity.key");
        let identity = || Identity::load_or_create(&self.dir).ok();
        file.exists()
            .then(identity)?
            .map(|identity| identity.peer())
    }

    /// Its status; null if it does not run or does not answer.
    pub(super) fn status(&self) -> Value {
        let asked = self.runs.then(|| daemon_http::get(&self.dir, "/status"));
        let answer = asked.and_then(Result::ok).map(|answer| answer.content);
        let status = answer.and_then(|content| serde_json::from_str(&content).ok());
        status.unwrap_or_default()
    }

    /// The addresses that it joins through: those of its configuration, and of the invite.
    pub(super) fn joins(&self) -> Vec<Multiaddr> {
        let configured = self
            .config
            .iter()
            .flat_map(|config| config.network.join.clone());
        let invited = self
            .invite
            .iter()
            .flat_map(|invite| invite.addresses().to_vec());
        let invited = invited.filter_map(|bytes| Multiaddr::try_from(bytes).ok());
        configured.chain(invited).collect()
    }
}

/// Returns `true` if a daemon holds the lock of a directory.
fn runs_in(dir: &Path) -> bool {
    dir.join("lock").exists()
        && matches!(DirectoryLock::acquire(dir), Err(StoreError::InUse { .. }))
}
