//! Keeps the register of members on the disk, and carries the operator's orders to the network: news that a command
//! leaves in the directory and the daemon passes on, also if it was not running then.

use super::MembershipError;
use crate::net::{Membership, Net, now_s};
use crate::store::{StoreError, note_addresses, write_private};
use murmurate_protocol::{Digest, Directives, PeerId, Proof};
use murmurate_trust::gate::Message;
use murmurate_trust::limits::{NEWS_BYTES_MAX, REGISTER_BYTES_MAX};
use murmurate_trust::{News, Register, Run, Unreadable};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Time between two looks for orders, and between two writes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

fn path_of(dir: &Path) -> PathBuf {
    dir.join("register")
}

/// Reads the register of a directory; `None` if there is none.
///
/// # Errors
/// If it cannot be read. It says who was revoked, so no one goes on without it, and no one writes another one
/// in its place.
pub(super) fn find_register(dir: &Path, run: &Run) -> Result<Option<Register>, MembershipError> {
    let path = path_of(dir);
    let failed = |e| MembershipError::from(StoreError::io("read", &path, e));
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(e)),
    };
    let flawed = |flaw| MembershipError::Register {
        path: path.clone(),
        flaw,
    };
    let bytes = file.metadata().map_err(failed)?.len();
    if bytes > REGISTER_BYTES_MAX as u64 {
        return Err(flawed(Unreadable::TooLong { bytes }));
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content).map_err(failed)?;
    let read = Register::from_bytes(run.clone(), &content);
    read.map(Some).map_err(flawed)
}

/// The same, and an empty register if there is none.
pub(super) fn read_register(dir: &Path, run: &Run) -> Result<Register, MembershipError> {
    let found = find_register(dir, run)?;
    Ok(found.unwrap_or_else(|| Register::new(run.clone())))
}

pub(super) fn write_register(dir: &Path, register: &Register) -> Result<(), StoreError> {
    write_private(&path_of(dir), &register.to_bytes())
}

/// The register of a running daemon.
#[derive(Debug)]
pub(crate) struct Roll {
    dir: PathBuf,
    membership: Arc<Membership>,
    changed: bool,
    looked: Instant,
    /// The addresses at which others can join, as they are on the disk.
    noted: Vec<String>,
    saving: Option<JoinHandle<()>>,
}

impl Roll {
    pub(crate) fn new(dir: PathBuf, membership: Arc<Membership>) -> Self {
        Self {
            dir,
            membership,
            changed: true,
            looked: Instant::now(),
            noted: Vec::new(),
            saving: None,
        }
    }

    pub(crate) fn me(&self) -> PeerId {
        self.membership.me()
    }

    /// True where everyone is a member, so that nothing is remembered of any.
    pub(crate) fn in_open_run(&self) -> bool {
        self.membership.run().open
    }

    /// The owner's directives that count.
    pub(crate) fn directives(&self) -> Directives {
        self.membership.register().directives()
    }

    pub(crate) fn is_member(&self, peer: &PeerId) -> bool {
        self.membership.register().is_member(peer, now_s())
    }

    /// A proof that a member lies: it is banned, and the others are told.
    pub(crate) fn ban(net: &Net, proof: Proof) {
        let news = News {
            bans: vec![proof],
            ..News::default()
        };
        // If the queue is full, another member that saw the same tells this one.
        if net.learn(news).is_err() {
            tracing::debug!(peer = %proof.by(), "a ban was dropped: the network is busy");
        }
    }

    pub(crate) fn changed(&mut self) {
        self.changed = true;
    }

    /// Passes orders on, and writes what has changed, on another thread: the register, and the
    /// addresses for `murmurate invite`. An order is removed once it is in the register on the disk, so
    /// that a crash loses none, and a command that looks for orders and then reads the register misses
    /// none.
    pub(crate) fn look(&mut self, net: &Net, addresses: &[String]) {
        if self.looked.elapsed() < LOOK_EVERY || self.membership.run().open {
            return;
        }
        self.looked = Instant::now();
        let mut carried_out = Vec::new();
        for (path, news) in find_orders(&self.dir) {
            let me = self.me();
            if self.membership.register().knows(&news, &me, now_s()) {
                carried_out.push(path);
            } else if net.learn(news).is_err() {
                tracing::debug!("an order waits: the network is busy");
            }
        }
        if self.saving.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let moved = self.noted != addresses;
        if std::mem::take(&mut self.changed) || moved || !carried_out.is_empty() {
            self.noted = addresses.to_vec();
            let (dir, membership) = (self.dir.clone(), Arc::clone(&self.membership));
            let addresses = addresses.to_vec();
            self.saving = Some(tokio::task::spawn_blocking(move || {
                told(save(&dir, &membership).map(|()| remove(&carried_out)));
                told(note_addresses(&dir, &addresses));
            }));
        }
    }

    /// Writes what has changed since. May wait for the disk.
    pub(crate) async fn finish(mut self) {
        if let Some(saving) = self.saving.take() {
            // A panic of the writer has printed its own message.
            let _ = saving.await;
        }
        if self.changed && !self.membership.run().open {
            told(tokio::task::block_in_place(|| {
                save(&self.dir, &self.membership)
            }));
        }
    }
}

fn save(dir: &Path, membership: &Membership) -> Result<(), StoreError> {
    // A copy, so that no handshake waits for the disk.
    let register = membership.register().clone();
    write_register(dir, &register)
}

/// Removes orders whose news are in the register on the disk. Before that nothing but the file has them.
fn remove(orders: &[PathBuf]) {
    for path in orders {
        let _ = std::fs::remove_file(path);
    }
}

fn told(saved: Result<(), StoreError>) {
    if let Err(error) = saved {
        tracing::warn!(%error, "the register of members and the addresses could not be stored");
    }
}

const FILES_MAX: usize = 64;

fn folder(dir: &Path) -> PathBuf {
    dir.join("orders")
}

pub(super) fn leave_order(dir: &Path, news: News) -> Result<(), StoreError> {
    let folder = folder(dir);
    std::fs::create_dir_all(&folder).map_err(|e| StoreError::io("create", &folder, e))?;
    for message in news.messages() {
        let bytes = message.encode();
        let name = format!("{}.news", Digest::of(&bytes));
        write_private(&folder.join(name), &bytes)?;
    }
    Ok(())
}

/// The news that were left, with their files. Files that are none are removed.
pub(super) fn find_orders(dir: &Path) -> Vec<(PathBuf, News)> {
    let Ok(entries) = std::fs::read_dir(folder(dir)) else {
        return Vec::new();
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let paths = paths.filter(|path| path.extension().is_some_and(|e| e == "news"));
    let mut found = Vec::new();
    for path in paths.take(FILES_MAX) {
        let small = path
            .metadata()
            .is_ok_and(|m| m.len() <= NEWS_BYTES_MAX as u64);
        let bytes = small.then(|| std::fs::read(&path).ok()).flatten();
        let message = bytes.and_then(|bytes| Message::decode(&bytes).ok());
        match message.and_then(Message::news) {
            Some(news) => found.push((path, news)),
            None => {
                tracing::warn!(path = %path.display(), "this is no order; it is removed");
                let _ = std::fs::remove_file(&path);
            }
        }
    }
    found
}
