//! What a daemon keeps about other daemons: the peers that it met, the members of the run, and the records that it
//! has checked.

use crate::config::{Config, NetworkConfig};
use crate::events::unix_s;
use crate::membership::Roll;
use crate::net::{Membership, Net};
use crate::ports::Ports;
use crate::store::KnownPeers;
use blake3::Hash;
use libp2p::Multiaddr;
use murmurate_protocol::limits::{ACTIVE_LINKS_MAX, ROLL_PEERS_MAX};
use murmurate_protocol::wire::{MembershipMessage, PeerRecord, RecordFields};
use murmurate_protocol::{PeerId, RunId, Site, SiteFinder, SortedMap, SortedSet, Time, View};
use murmurate_trust::Role;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

#[derive(Debug)]
pub(super) struct Contacts {
    /// Peers to dial after a restart.
    pub(super) acquaintances: Acquaintances,
    /// The register of members.
    pub(super) roll: Roll,
    pub(super) records: RecordChecks,
    /// The same for messages about the places of a grid.
    pub(super) rolls: RecordChecks,
    /// Linked peers that take no part in rounds, by their certificates, and how new the records are that
    /// those that relay have from here.
    pub(super) bystanders: SortedMap<PeerId, (Role, SortedMap<PeerId, u64>)>,
    pub(super) site: SiteFinder,
}

/// Finds the site of a daemon that the configuration describes.
pub(super) fn finder(me: PeerId, config: &NetworkConfig) -> SiteFinder {
    let own = Site::measured(me.as_bytes());
    let finder = SiteFinder::new(own).fixed(config.site.clone());
    finder.sending(config.max_rate.daemon)
}

impl Contacts {
    pub(super) fn new(
        config: &Config,
        membership: Arc<Membership>,
        acquaintances: Acquaintances,
    ) -> Self {
        let dir = config.daemon.dir.clone();
        Self {
            site: finder(membership.me(), &config.network),
            acquaintances,
            roll: Roll::new(dir, membership),
            records: RecordChecks::default(),
            rolls: RecordChecks::up_to(ROLL_PEERS_MAX as f64, ROLL_PEERS_MAX),
            bystanders: SortedMap::new(),
        }
    }

    /// Dials, passes orders on and writes what has changed. May be called at any rate.
    pub(super) fn look(&mut self, net: &Net, view: &View, addresses: &[String]) {
        self.acquaintances.look(net, view);
        self.roll.look(net, addresses);
        self.tell_relays(net, view);
    }

    /// Sends the records that peers send each other to daemons that only relay: they have no peer, and newcomers that
    /// know one of them find the others by these.
    fn tell_relays(&mut self, net: &Net, view: &View) {
        let relays = self.bystanders.iter_mut();
        for (relay, (_, had)) in relays.filter(|(_, (role, _))| *role == Role::Relay) {
            had.retain(|peer, _| view.get(*peer).is_some());
            let others = view.iter().filter_map(|(_, remote)| remote.record());
            for record in view.mine().into_iter().chain(others) {
                if had.get(&record.peer) >= Some(&record.sequence) {
                    continue;
                }
                let message = MembershipMessage::Records(vec![record.clone()]);
                // A full queue takes it at the next look.
                if net.say(*relay, &message.into()).is_ok() {
                    had.insert(record.peer, record.sequence);
                }
            }
        }
    }

    /// Writes what has changed since. May wait for the disk.
    pub(super) async fn finish(self, view: &View) {
        self.acquaintances.finish(view).await;
        self.roll.finish().await;
    }
}

/// Time between two reads of the view.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks, one minute of them, at each of which the peers of an earlier life are dialled that are
/// not there.
const EAGER_LOOKS: u32 = 60;

/// After that, the number of looks between two dials.
const PATIENT_LOOKS: u32 = 30;

/// The peers met so far, with their addresses, and this daemon's own ports. They are kept in a file and dialled at
/// the next start, so that restarted daemons find each other without an address.
#[derive(Debug)]
pub(super) struct Acquaintances {
    dir: PathBuf,
    run: RunId,
    me: PeerId,
    known: KnownPeers,
    ports: Ports,
    /// Those of whom the file said that they were there at the end of the earlier life.
    companions: Vec<PeerId>,
    looks: u32,
    looked: Option<Instant>,
    /// Set while the file lacks a change of the known peers or ports.
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

    pub(super) fn ports(&self) -> &Ports {
        &self.ports
    }

    pub(super) fn companions(&self) -> &[PeerId] {
        &self.companions
    }

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
        self.stale |= self.known.meet(self.me, present, unix_s() as u64);
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

/// Records of one sender that are checked at once: eight full messages, more than an honest peer has
/// to tell when links open.
const CHECKS_MAX: f64 = 256.0;

/// Checks that a sender gains in a second. Every peer signs a new record four times an hour, so a swarm
/// of 256 peers makes fewer than one in three seconds.
const CHECKS_PER_S: f64 = 8.0;

/// Records over the budget that count as one broken rule.
const UNREAD_PER_BLAME: u32 = 256;

/// Checked records that are remembered: two of each peer of a full view.
const REMEMBERED_MAX: usize = 512;

#[derive(Debug)]
struct Budget {
    checks: f64,
    at: Time,
    unread: u32,
}

/// Budgets of the senders, and the checked records. A signature costs far more to check than to make up, so a sender
/// has a budget of checks, and a record that was checked before costs none.
#[derive(Debug)]
pub(super) struct RecordChecks {
    /// Records of one sender that are checked at once.
    most: f64,
    remembered: usize,
    budgets: SortedMap<PeerId, Budget>,
    good: SortedSet<[u8; 32]>,
    oldest: VecDeque<[u8; 32]>,
}

/// What came of a message with records.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Checked {
    pub(super) good: Vec<PeerRecord>,
    /// Set by a wrong signature.
    pub(super) forged: bool,
    /// Set where the sender has gone far over its budget.
    pub(super) floods: bool,
}

impl Default for RecordChecks {
    fn default() -> Self {
        Self::up_to(CHECKS_MAX, REMEMBERED_MAX)
    }
}

impl RecordChecks {
    const fn up_to(most: f64, remembered: usize) -> Self {
        Self {
            most,
            remembered,
            budgets: SortedMap::new(),
            good: SortedSet::new(),
            oldest: VecDeque::new(),
        }
    }

    /// Checks the records of one message. New ones over the sender's budget are dropped unread.
    pub(super) fn check(
        &mut self,
        from: PeerId,
        now: Time,
        records: Vec<PeerRecord>,
        verify: impl Fn(&PeerRecord) -> bool,
    ) -> Checked {
        let mut checked = Checked::default();
        let budget = self.budgets.entry(from).or_insert(Budget {
            checks: self.most,
            at: now,
            unread: 0,
        });
        let gained = now.since(budget.at).as_secs_f64() * CHECKS_PER_S;
        budget.checks = (budget.checks + gained).min(self.most);
        budget.at = now;
        for record in records {
            let name = name_of(&record);
            if self.good.contains(&name) {
                checked.good.push(record);
            } else if budget.checks < 1.0 {
                budget.unread += 1;
                if budget.unread >= UNREAD_PER_BLAME {
                    budget.unread = 0;
                    checked.floods = true;
                }
            } else {
                budget.checks -= 1.0;
                if verify(&record) {
                    self.good.insert(name);
                    self.oldest.push_back(name);
                    checked.good.push(record);
                } else {
                    checked.forged = true;
                }
            }
        }
        while self.oldest.len() > self.remembered {
            if let Some(oldest) = self.oldest.pop_front() {
                self.good.remove(&oldest);
            }
        }
        checked
    }

    /// A peer is gone. It comes back with a full budget, but only after a new link.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.budgets.remove(&peer);
    }
}

/// A hash of all of a record, its signature included.
fn name_of(record: &PeerRecord) -> [u8; 32] {
    let mut bytes = record.signed_bytes();
    bytes.extend_from_slice(&record.signature);
    *Hash::as_bytes(&blake3::hash(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::RunId;
    use murmurate_protocol::wire::RecordFields;
    use std::cell::Cell;
    use std::time::Duration;

    fn record(sequence: u64) -> PeerRecord {
        PeerRecord::from(RecordFields {
            peer: PeerId::from_bytes([1; 32]),
            run: RunId::from_bytes([2; 32]),
            sequence,
            expires: Time::NEVER,
            addresses: Vec::new(),
            locality: murmurate_protocol::Locality::default(),
            signature: vec![3; 64],
        })
    }

    #[test]
    fn a_record_is_verified_once() {
        let (mut checks, verified) = (RecordChecks::default(), Cell::new(0));
        let verify = |_: &PeerRecord| {
            verified.set(verified.get() + 1);
            true
        };
        for sender in 0..50 {
            let from = PeerId::from_bytes([sender; 32]);
            let records: Vec<_> = (0..32).map(record).collect();
            let checked = checks.check(from, Time::ZERO, records.clone(), verify);
            assert_eq!(checked.good, records);
        }
        assert_eq!(verified.get(), 32);
        // Another signature is another record.
        let mut other = record(0);
        other.signature[0] ^= 1;
        let from = PeerId::from_bytes([0; 32]);
        checks.check(from, Time::ZERO, vec![other], verify);
        assert_eq!(verified.get(), 33);
    }

    #[test]
    fn a_flood_is_dropped_unread_and_blamed() {
        let (mut checks, verified) = (RecordChecks::default(), Cell::new(0));
        let verify = |_: &PeerRecord| {
            verified.set(verified.get() + 1);
            false
        };
        let (from, other) = (PeerId::from_bytes([5; 32]), PeerId::from_bytes([6; 32]));
        let mut blamed = 0;
        for message in 0..1000u64 {
            let records = (0..32).map(|at| record(32 * message + at)).collect();
            let checked = checks.check(from, Time::ZERO, records, verify);
            assert!(checked.good.is_empty());
            assert_eq!(checked.forged, message < 8, "message {message}");
            blamed += u32::from(checked.floods);
        }
        assert_eq!(verified.get(), 256, "of 32,000 records");
        assert_eq!(blamed, (32_000 - 256) / UNREAD_PER_BLAME);
        // Others are read as before, and the sender too when its budget has refilled.
        assert!(
            checks
                .check(other, Time::ZERO, vec![record(1)], verify)
                .forged
        );
        let later = Time::ZERO + Duration::from_secs(1);
        let records = (0..32).map(record).collect();
        checks.check(from, later, records, verify);
        assert_eq!(verified.get(), 256 + 1 + 8);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut checks = RecordChecks::default();
        for at in 0..4000u64 {
            let from = PeerId::from_bytes([(at / 200) as u8; 32]);
            checks.check(from, Time::ZERO, vec![record(at)], |_| true);
        }
        assert_eq!((checks.good.len(), checks.oldest.len()), (512, 512));
    }
}
