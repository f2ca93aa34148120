//! Stores the addresses of the daemon's peers and its own ports, and dials the peers at the next
//! start, so that restarted daemons find each other without an address.

use crate::net::Net;
use crate::ports::Ports;
use crate::store::KnownPeers;
use libp2p::Multiaddr;
use murmurate_protocol::limits::ACTIVE_LINKS_MAX;
use murmurate_protocol::wire::{PeerRecord, RecordFields};
use murmurate_protocol::{PeerId, RunId, Time, View};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinHandle;

/// Time between two reads of the view.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks, one minute of them, at each of which the peers of an earlier life are dialled that are
/// not there.
const EAGER_LOOKS: u32 = 60;

/// After that, the number of looks between two dials.
const PATIENT_LOOKS: u32 = 30;

/// The peers met so far, with their addresses.
#[derive(Debug)]
pub(super) struct Acquaintances {
    dir: PathBuf,
    run: RunId,
    me: PeerId,
    known: KnownPeers,
    /// The ports of the earlier life.
    ports: Ports,
    /// Those of whom the file said that they were there at the end of the earlier life.
    companions: Vec<PeerId>,
    looks: u32,
    looked: Option<Instant>,
    /// Whether the file lacks what is known.
    stale: bool,
    saving: Option<JoinHandle<()>>,
}

impl Acquaintances {
    /// Loads the peers of an earlier life from `dir`. Returns a warning if the file cannot be read.
    pub(super) fn load(dir: PathBuf, run: RunId, me: PeerId) -> (Self, Option<String>) {
        let (mut known, warning) = match KnownPeers::load(&dir, &run) {
            Ok(known) => (known, None),
            Err(error) => (KnownPeers::default(), Some(error.to_string())),
        };
        let acquaintances = Self {
            dir,
            run,
            me,
            companions: known.companions(),
            ports: std::mem::take(&mut known.ports),
            known,
            looks: 0,
            looked: None,
            stale: false,
            saving: None,
        };
        (acquaintances, warning)
    }

    /// The ports on which this daemon listened in its earlier life.
    pub(super) fn ports(&self) -> &Ports {
        &self.ports
    }

    /// The peers that were there at the end of the earlier life.
    pub(super) fn companions(&self) -> &[PeerId] {
        &self.companions
    }

    /// Remembers the port of an address on which this daemon listens.
    pub(super) fn listening(&mut self, address: &Multiaddr) {
        self.stale |= self.known.ports.remember(address);
    }

    /// Dials the peers of an earlier life that are not there. Writes changes of the view to the disk,
    /// on another thread.
    pub(super) fn look(&mut self, net: &Net, view: &View) {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return;
        }
        self.looked = Some(Instant::now());
        self.looks = self.looks.saturating_add(1);
        if self.looks <= EAGER_LOOKS || self.looks.is_multiple_of(PATIENT_LOOKS) {
            self.dial(net, view);
        }
        self.learn(view);
        let busy = self.saving.as_ref().is_some_and(|task| !task.is_finished());
        if !self.stale || busy {
            return;
        }
        self.stale = false;
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
        self.learn(view);
        if self.stale {
            tell(tokio::task::block_in_place(|| {
                self.known.save(&self.dir, &self.run)
            }));
        }
    }

    /// Takes the peers of the view. Peers that left it stay known.
    fn learn(&mut self, view: &View) {
        let present = view.greeted().filter_map(|(peer, remote)| {
            let texts = remote.record()?.addresses.iter().filter_map(|bytes| {
                let address = Multiaddr::try_from(bytes.clone()).ok()?;
                Some(address.to_string())
            });
            Some((peer, texts.collect()))
        });
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map(|since| since.as_secs()).unwrap_or_default();
        self.stale |= self.known.meet(self.me, present, now);
    }

    /// Dials known peers without a link. A link to one of them does not end this: each of two halves
    /// of a restarted run knows the other half's old addresses only.
    fn dial(&self, net: &Net, view: &View) {
        let room = ACTIVE_LINKS_MAX.saturating_sub(view.greeted().count());
        let away = |peer: &PeerId| view.get(*peer).is_none_or(|r| !r.linked && !r.banned);
        let away = self.known.iter().filter(|(peer, _)| away(peer));
        for (peer, addresses) in away.take(room) {
            let parsed = addresses.iter().filter_map(|a| a.parse::<Multiaddr>().ok());
            let record = PeerRecord::from(RecordFields {
                peer,
                run: self.run,
                sequence: 0,
                expires: Time::ZERO,
                addresses: parsed.map(|address| address.to_vec()).collect(),
                locality: murmurate_protocol::Locality::default(),
                // Only this daemon's network uses the record, and the handshake checks the peer's
                // key.
                signature: Vec::new(),
            });
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
