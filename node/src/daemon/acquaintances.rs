//! Stores the addresses of the daemon's peers and dials them at the next start, so that a restarted
//! daemon finds the swarm without an address.

use crate::daemon::records::RecordChecks;
use crate::net::Net;
use crate::store::KnownPeers;
use libp2p::Multiaddr;
use murmurate_protocol::wire::PeerRecord;
use murmurate_protocol::{RunId, Time, View};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Time between two reads of the view, and between two dials while no peer is linked.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Attempts to dial the peers of an earlier life: one minute of them.
const DIALS_MAX: u32 = 30;

/// The peers met so far, with their addresses.
#[derive(Debug)]
pub(super) struct Acquaintances {
    dir: PathBuf,
    run: RunId,
    known: KnownPeers,
    dials_left: u32,
    looked: Option<Instant>,
    saving: Option<JoinHandle<()>>,
    /// Which records were checked.
    pub(super) records: RecordChecks,
}

impl Acquaintances {
    /// Loads the peers of an earlier life from `dir`. Returns a warning if the file cannot be read.
    pub(super) fn load(dir: PathBuf, run: RunId) -> (Self, Option<String>) {
        let (known, warning) = match KnownPeers::load(&dir, &run) {
            Ok(known) => (known, None),
            Err(error) => (KnownPeers::default(), Some(error.to_string())),
        };
        let acquaintances = Self {
            dir,
            run,
            known,
            dials_left: DIALS_MAX,
            looked: None,
            saving: None,
            records: RecordChecks::default(),
        };
        (acquaintances, warning)
    }

    /// Dials the peers of an earlier life while no peer is linked. Otherwise writes changes of the
    /// view to the disk, on another thread.
    pub(super) fn look(&mut self, net: &Net, view: &View) {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return;
        }
        self.looked = Some(Instant::now());
        if view.greeted().next().is_none() {
            self.dial(net);
            return;
        }
        // From now on the peer itself dials the peers that it knows.
        self.dials_left = 0;
        if self.saving.as_ref().is_some_and(|task| !task.is_finished()) || !self.learn(view) {
            return;
        }
        let (known, dir, run) = (self.known.clone(), self.dir.clone(), self.run);
        self.saving = Some(tokio::task::spawn_blocking(move || {
            tell(known.save(&dir, &run));
        }));
    }

    /// Writes what changed since the last call of [`Self::look`]. May wait for the disk.
    pub(super) async fn finish(mut self, view: &View) {
        if let Some(saving) = self.saving.take() {
            // A panic of the writer has printed its own message.
            let _ = saving.await;
        }
        if self.learn(view) {
            tell(tokio::task::block_in_place(|| {
                self.known.save(&self.dir, &self.run)
            }));
        }
    }

    /// Takes the peers of the view and returns whether anything changed. An empty view keeps the
    /// last known peers.
    fn learn(&mut self, view: &View) -> bool {
        let seen = KnownPeers::new(view.greeted().filter_map(|(peer, remote)| {
            let texts = remote.record()?.addresses.iter().filter_map(|bytes| {
                let address = Multiaddr::try_from(bytes.clone()).ok()?;
                Some(address.to_string())
            });
            Some((peer, texts.collect()))
        }));
        if seen.is_empty() || seen == self.known {
            return false;
        }
        self.known = seen;
        true
    }

    fn dial(&mut self, net: &Net) {
        if self.dials_left == 0 || self.known.is_empty() {
            return;
        }
        self.dials_left -= 1;
        for (peer, addresses) in self.known.iter() {
            let parsed = addresses.iter().filter_map(|a| a.parse::<Multiaddr>().ok());
            let record = PeerRecord {
                peer,
                run: self.run,
                sequence: 0,
                expires: Time::ZERO,
                addresses: parsed.map(|address| address.to_vec()).collect(),
                // Only this daemon's network uses the record, and the handshake checks the peer's
                // key.
                signature: Vec::new(),
            };
            if let Err(busy) = net.dial(record) {
                tracing::debug!(%peer, %busy, "a peer of an earlier life was not dialled");
            }
        }
    }
}

fn tell(saved: Result<(), crate::store::StoreError>) {
    if let Err(error) = saved {
        tracing::warn!(%error, "the addresses of the peers could not be stored");
    }
}
