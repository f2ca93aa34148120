//! The daemon's end: if it has come, the reason, and what to tell the operator. Three things lead to it: the
//! peers to join refuse this daemon, another daemon has its identity, or a failure of its own.

use super::{DaemonError, RefusedBy};
use crate::net::{GateError, SeenElsewhere, from_libp2p};
use crate::store::random_bytes;
use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;
use murmurate_protocol::wire::Setting;
use murmurate_protocol::{PeerId, Phase, Round, SortedMap, SortedSet};
use std::time::{Duration, Instant};

/// How long the network may take to end.
pub(super) const SHUTDOWN_WAIT: Duration = Duration::from_secs(1);

/// Refusals by other peers that are kept for the final error.
const REFUSALS_MAX: usize = 16;

/// The peers at the addresses to join, and which of them have refused this one.
#[derive(Debug, Default)]
pub(super) struct Join {
    /// Those that an address names and that have not refused yet.
    left: SortedSet<PeerId>,
    /// Addresses without a peer's id.
    unnamed: usize,
    refusals: SortedSet<PeerId>,
}

impl Join {
    /// No peer has refused yet.
    pub(super) fn new(addresses: &[Multiaddr]) -> Self {
        let named = |address: &Multiaddr| match address.iter().last() {
            Some(Protocol::P2p(peer)) => from_libp2p(&peer),
            _ => None,
        };
        let left: Vec<_> = addresses.iter().map(named).collect();
        Self {
            unnamed: left.iter().filter(|peer| peer.is_none()).count(),
            left: left.into_iter().flatten().collect(),
            refusals: SortedSet::new(),
        }
    }

    /// True where there was no peer to join.
    fn is_empty(&self) -> bool {
        self.left.is_empty() && self.unnamed == 0 && self.refusals.is_empty()
    }

    /// Notes a refusal. True once none of the peers to join is left. Others, such as daemons of
    /// another run on the same network, may refuse as they like.
    fn refused(&mut self, peer: PeerId) -> bool {
        let named = self.left.remove(&peer);
        if !named && self.refusals.len() < REFUSALS_MAX {
            self.refusals.insert(peer);
        }
        let unnamed = self.unnamed > 0 && self.refusals.len() >= self.unnamed;
        self.left.is_empty() && (unnamed || (self.unnamed == 0 && named))
    }
}

/// The reasons for the daemon's end, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// The peers to join.
    pub(super) join: Join,
    /// Daemons of other runs that the operator was told of.
    pub(super) strangers: SortedSet<PeerId>,
    /// Set once the operator was told that members refuse this daemon.
    pub(super) told_refusal: bool,
    /// Set once the peer has left. Then the driver's loop ends.
    pub(super) left: bool,
    pub(super) error: Option<DaemonError>,
    /// Peers that refused this one, or that this one refused.
    pub(super) refused: Vec<RefusedBy>,
    /// The peers about whose refusal the operator was told.
    pub(super) told: Refusals,
    /// Set once a peer of the run was linked.
    pub(super) met_anyone: bool,
    /// The addresses to join that did not answer, with the reasons.
    pub(super) bootstrap: Option<String>,
    /// The failure because of which the peer left.
    pub(super) stopped: Option<String>,
    /// Why the last checkpoint was not written.
    pub(super) unsaved: Option<String>,
    /// How often the operator asked the daemon to leave.
    pub(super) interrupts: u32,
    pub(super) elsewhere: Elsewhere,
}

impl Ending {
    pub(super) fn fail(&mut self, error: DaemonError) {
        self.error = Some(error);
        self.left = true;
    }

    /// Sets the error for a join that timed out: no peer with a state answered.
    pub(super) fn join_failed(&mut self) {
        self.error = Some(match self.refused.first() {
            Some(refused) => refused.clone().into(),
            None => DaemonError::Unreachable(self.bootstrap.clone()),
        });
    }

    /// Set for daemons of another run that the operator has not been told of. While this daemon has met no other,
    /// it may be one that it looks for.
    pub(super) fn is_new_stranger(&mut self, peer: PeerId) -> bool {
        !self.met_anyone
            && self.join.is_empty()
            && self.strangers.len() < REFUSALS_MAX
            && self.strangers.insert(peer)
    }

    /// Set for the first refusal by a member, which the operator has not been told of.
    pub(super) fn is_new_refusal(&mut self, error: GateError) -> bool {
        matches!(error, GateError::Refused(_)) && !std::mem::replace(&mut self.told_refusal, true)
    }

    /// Stores that a peer did not let this one in, or is of another run.
    pub(super) fn turned_away(&mut self, peer: PeerId, error: GateError, still_joins: bool) {
        let certain = error != GateError::Broken;
        if certain && self.join.refused(peer) && !self.met_anyone && still_joins {
            self.fail(DaemonError::TurnedAway { peer, error });
        }
    }

    /// Stores a refusal. `still_joins` tells that this peer has not taken part in a round yet.
    pub(super) fn refused(&mut self, refused: RefusedBy, still_joins: bool) {
        // If all peers to join refuse this one, waiting longer does not help.
        if self.join.refused(refused.peer) && !self.met_anyone && still_joins {
            self.fail(refused.clone().into());
        }
        if self.refused.len() < REFUSALS_MAX {
            self.refused.push(refused);
        }
    }
}

/// Time between two lines about one peer.
const AGAIN: Duration = Duration::from_secs(3600);

/// Peers of whom lines speak within that time. A stranger can have any number of identities.
const PEERS_MAX: usize = 16;

/// How long a peer may take to say its settings.
const SETTINGS_WAIT: Duration = Duration::from_secs(2);

/// A refusal that waits for the other end's settings.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) refused: RefusedBy,
    /// Set where the link is to end.
    pub(super) ends: bool,
    until: Instant,
}

/// The peers that the operator has been told about, and when; and refusals whose reason is being found.
///
/// Another run on the same network finds this daemon again and again, so lines are limited. Where two daemons of one
/// run do not fit, each tells the other its settings, and the line names those that differ.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    told: SortedMap<PeerId, Instant>,
    held: SortedMap<PeerId, Held>,
    settings: Vec<Setting>,
}

impl Refusals {
    pub(super) fn new(settings: Vec<Setting>) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    pub(super) fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// True where a line about this peer is due.
    pub(super) fn tell(&mut self, peer: PeerId, now: Instant) -> bool {
        self.told
            .retain(|_, told| now.duration_since(*told) < AGAIN);
        if self.told.len() >= PEERS_MAX || self.told.contains_key(&peer) {
            return false;
        }
        self.told.insert(peer, now);
        true
    }

    /// Holds a refusal until the other end has said its settings. False if one is held already, or too
    /// many are.
    pub(super) fn waits_for(&mut self, refused: RefusedBy, now: Instant) -> bool {
        let peer = refused.peer;
        if self.held.len() >= PEERS_MAX || self.held.contains_key(&peer) {
            return false;
        }
        let held = Held {
            refused,
            ends: false,
            until: now + SETTINGS_WAIT,
        };
        self.held.insert(peer, held);
        true
    }

    /// The link to a peer is to end. True if that waits for its settings.
    pub(super) fn ends_later(&mut self, peer: PeerId) -> bool {
        let held = self.held.get_mut(&peer);
        held.map(|held| held.ends = true).is_some()
    }

    /// A peer has said its settings. Returns what waited for that, with the keys that differ: those of
    /// whole sections first, because others follow from them.
    pub(super) fn compared(&mut self, peer: PeerId, theirs: &[Setting]) -> Option<Held> {
        let mut held = self.held.remove(&peer)?;
        let mut keys = Setting::differing(&self.settings, theirs);
        keys.sort_by_key(|key| key.matches('.').count());
        held.refused.keys = keys.into_iter().map(str::to_owned).collect();
        Some(held)
    }

    /// Refusals that wait no longer: of a peer that has gone, and those whose time is up.
    pub(super) fn overdue(&mut self, gone: Option<PeerId>, now: Instant) -> Vec<Held> {
        let over = |peer: &PeerId, held: &mut Held| gone == Some(*peer) || held.until <= now;
        let over = self.held.extract_if(.., over);
        over.map(|(_, held)| held).collect()
    }
}

/// A daemon that has run for less than this has just begun.
const YOUNG: Duration = Duration::from_secs(60);

/// The most by which daemons of one age differ in their patience: machines that are started from one image.
const PATIENCE_APART: Duration = Duration::from_secs(10);

/// How long two that have not stop for each other.
const UNDECIDED: Duration = Duration::from_secs(30);

/// How long the daemon that stops goes on, so that the other one hears of it.
const LAST_WORDS: Duration = Duration::from_secs(8);

/// The other one is gone if it was not heard for this long.
const GONE: Duration = Duration::from_secs(60);

/// Another daemon with this one's identity, as in a copied directory: both say so, and one of them stops.
///
/// The others take the two for one peer: the newer link to either counts, and the other one trains on without any.
/// Neither end can tell which of the two is the copy. The one that has just begun stops, and says so to the other
/// one, which stays; of two that have just begun the younger one is the first to do so. Two that have run for long
/// are met after a split, or are copies of a machine: after some time the one that is not ahead stops.
#[derive(Debug)]
pub(super) struct Elsewhere {
    born: Instant,
    /// Since when the other one is heard.
    since: Option<Instant>,
    /// By how much longer than its age this daemon waits for the other one to stop.
    patience: Duration,
    /// When this daemon stops because of it.
    stops: Option<Instant>,
}

impl Default for Elsewhere {
    fn default() -> Self {
        Self {
            born: Instant::now(),
            since: None,
            patience: any_patience(),
            stops: None,
        }
    }
}

fn any_patience() -> Duration {
    let [first, ..] = random_bytes();
    PATIENCE_APART * u32::from(first) / 256
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is none, or nothing is new.
    Nothing,
    Says,
    /// It says so, and stops soon.
    Leaves,
    Stops,
}

impl Elsewhere {
    pub(super) const fn is_there(&self) -> bool {
        self.since.is_some()
    }

    /// The phase to say: one that gives way says so until it stops, or the other one would give way too.
    pub(super) fn said(&self, phase: Phase) -> Phase {
        self.stops.map_or(phase, |_| Phase::Leaving)
    }

    /// The verdict on the last vitals of another one, in this daemon's round.
    pub(super) fn judge(
        &mut self,
        seen: Option<&SeenElsewhere>,
        round: Round,
        now: Instant,
    ) -> Verdict {
        let gives_way =
            |seen: &SeenElsewhere| matches!(seen.vitals.phase, Phase::Leaving | Phase::Left);
        if let Some(stops) = self.stops {
            let decided = stops.checked_sub(LAST_WORDS);
            let gave_way = |seen: &&SeenElsewhere| {
                gives_way(seen) && decided.is_some_and(|at| seen.heard > at)
            };
            if seen.filter(gave_way).is_some() {
                // Both gave way at once. If the other one has heard of this one too, it begins again.
                (self.stops, self.since, self.patience) = (None, Some(now), any_patience());
                return Verdict::Says;
            }
            return if now < stops {
                Verdict::Nothing
            } else {
                Verdict::Stops
            };
        }
        let here = |seen: &&SeenElsewhere| now.saturating_duration_since(seen.heard) < GONE;
        let Some(seen) = seen.filter(here) else {
            self.since = None;
            return Verdict::Nothing;
        };
        let news = self.since.is_none();
        let since = *self.since.get_or_insert(now);
        let age = since.saturating_duration_since(self.born);
        // It stops only while it hears the other one, which may have stopped meanwhile.
        let young = age < YOUNG && seen.heard >= since + age / 2 + self.patience;
        let undecided = seen.heard.saturating_duration_since(since) >= UNDECIDED;
        let behind = undecided && seen.vitals.round >= round;
        match (!gives_way(seen) && (young || behind), news) {
            (true, _) => {
                self.stops = Some(now + LAST_WORDS);
                Verdict::Leaves
            }
            (false, true) => Verdict::Says,
            (false, false) => Verdict::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::tests::{address_with_peer, to_libp2p};
    use libp2p::identity::Keypair;
    use murmurate_protocol::PeerId;
    use murmurate_protocol::wire::Reason;

    fn peer() -> PeerId {
        from_libp2p(&Keypair::generate_ed25519().public().to_peer_id()).unwrap()
    }

    fn ending(named: &[PeerId], unnamed: usize) -> Ending {
        let address: Multiaddr = "/ip4/192.0.2.1/udp/4001/quic-v1".parse().unwrap();
        let mut addresses = vec![address.clone(); unnamed];
        for peer in named {
            addresses.push(address_with_peer(address.clone(), to_libp2p(peer).unwrap()));
        }
        Ending {
            join: Join::new(&addresses),
            ..Ending::default()
        }
    }

    fn refuse(ending: &mut Ending, peer: PeerId) -> bool {
        let reason = Reason::OtherRun;
        ending.refused(RefusedBy::new(peer, reason), true);
        ending.left
    }

    #[test]
    fn a_daemon_ends_only_when_all_peers_to_join_have_refused_it() {
        let (a, b, stranger) = (peer(), peer(), peer());
        let mut two = ending(&[a, b], 0);
        assert!(!refuse(&mut two, stranger));
        assert!(!refuse(&mut two, a));
        assert!(!refuse(&mut two, a));
        assert!(!refuse(&mut two, stranger));
        assert!(refuse(&mut two, b));

        let mut unnamed = ending(&[a], 1);
        assert!(!refuse(&mut unnamed, a));
        assert!(refuse(&mut unnamed, b));
        assert!(!refuse(&mut ending(&[], 0), stranger));
    }

    #[test]
    fn a_daemon_that_has_met_a_peer_goes_on() {
        let a = peer();
        let mut ending = ending(&[a], 0);
        ending.met_anyone = true;
        assert!(!refuse(&mut ending, a));
    }

    fn seen(heard: Instant, round: u64, phase: Phase) -> SeenElsewhere {
        let vitals = crate::tests::vitals(PeerId::from_bytes([1; 32]), round, phase);
        SeenElsewhere { vitals, heard }
    }

    fn running(since: Instant) -> Elsewhere {
        Elsewhere {
            born: since,
            patience: Duration::ZERO,
            ..Elsewhere::default()
        }
    }

    #[test]
    fn the_one_that_has_just_begun_stops_and_the_other_one_stays() {
        let (start, round) = (Instant::now(), Round(9));
        let now = start + 2 * YOUNG;
        let (mut old, mut copy) = (running(start), running(now));
        assert_eq!(old.judge(None, round, now), Verdict::Nothing);
        let now = now + Duration::from_secs(9);
        let of_old = seen(now, 9, Phase::Train);
        assert_eq!(copy.judge(Some(&of_old), round, now), Verdict::Says);
        let now = now + Duration::from_secs(5);
        assert_eq!(copy.judge(Some(&of_old), round, now), Verdict::Nothing);
        let of_old = seen(now, 9, Phase::Train);
        assert_eq!(copy.said(Phase::Train), Phase::Train);
        assert_eq!(copy.judge(Some(&of_old), round, now), Verdict::Leaves);
        assert_eq!(copy.said(Phase::Train), Phase::Leaving);
        let of_copy = seen(now, 9, Phase::Leaving);
        assert_eq!(old.judge(Some(&of_copy), round, now), Verdict::Says);
        let now = now + LAST_WORDS / 2;
        assert_eq!(copy.judge(Some(&of_old), round, now), Verdict::Nothing);
        let now = now + LAST_WORDS;
        assert_eq!(copy.judge(None, round, now), Verdict::Stops);
        assert_eq!(old.judge(Some(&of_copy), round, now), Verdict::Nothing);
        assert!(old.is_there());
        assert_eq!(
            old.judge(Some(&of_copy), round, now + GONE),
            Verdict::Nothing
        );
        assert!(!old.is_there(), "it is gone");
    }

    #[test]
    fn of_two_young_ones_the_younger_one_stops_first_and_never_both() {
        let start = Instant::now();
        let (mut older, mut younger) = (running(start), running(start + YOUNG / 4));
        let met = start + YOUNG / 2;
        let training = |at| seen(at, 9, Phase::Train);
        for one in [&mut older, &mut younger] {
            assert_eq!(
                one.judge(Some(&training(met)), Round(9), met),
                Verdict::Says
            );
        }
        let now = met + YOUNG / 6;
        let judge = |one: &mut Elsewhere| one.judge(Some(&training(now)), Round(9), now);
        assert_eq!(judge(&mut older), Verdict::Nothing);
        assert_eq!(judge(&mut younger), Verdict::Leaves);
        let later = met + YOUNG / 3;
        let of_younger = seen(later, 9, Phase::Leaving);
        assert_eq!(
            older.judge(Some(&of_younger), Round(9), later),
            Verdict::Nothing
        );
        // Had the older one given way too, the one that hears of it goes on.
        let (now, of_older) = (
            now + LAST_WORDS / 2,
            seen(now + LAST_WORDS / 2, 9, Phase::Leaving),
        );
        assert_eq!(younger.judge(Some(&of_older), Round(9), now), Verdict::Says);
        assert_eq!(
            younger.judge(Some(&of_older), Round(9), now + LAST_WORDS),
            Verdict::Nothing
        );
    }

    #[test]
    fn of_two_old_ones_the_one_behind_stops_after_a_while() {
        let start = Instant::now();
        let (mut behind, mut ahead) = (running(start), running(start));
        let mut now = start + 2 * YOUNG;
        for _ in 0..=UNDECIDED.as_secs() {
            let of_ahead = seen(now, 20, Phase::Train);
            let of_behind = seen(now, 9, Phase::Train);
            assert_ne!(
                ahead.judge(Some(&of_behind), Round(20), now),
                Verdict::Leaves
            );
            let verdict = behind.judge(Some(&of_ahead), Round(9), now);
            let waited = now.saturating_duration_since(start + 2 * YOUNG);
            assert_eq!(
                verdict == Verdict::Leaves,
                waited >= UNDECIDED,
                "{waited:?}"
            );
            now += Duration::from_secs(1);
        }
    }

    mod refusals {
        use super::super::*;
        use murmurate_protocol::wire::Reason;

        fn peer(id: u8) -> PeerId {
            PeerId::from_bytes([id; 32])
        }

        #[test]
        fn one_line_a_peer_and_hour_and_few_in_all() {
            let mut refusals = Refusals::default();
            let now = Instant::now();
            assert!(refusals.tell(peer(0), now));
            assert!(!refusals.tell(peer(0), now + Duration::from_secs(3599)));
            assert!(refusals.tell(peer(0), now + AGAIN));
            let told = (1..=255).filter(|id| refusals.tell(peer(*id), now + AGAIN));
            assert_eq!(told.count(), PEERS_MAX - 1);
        }

        #[test]
        fn a_refusal_waits_for_the_settings_of_the_other_end() {
            let setting = |key, value| Setting::new(key, value).unwrap();
            let mut refusals = Refusals::new(vec![
                setting("run.seed", "1"),
                setting("strategy.outer.lr", "0.7"),
                setting("strategy.preset", "diloco"),
            ]);
            let now = Instant::now();
            let refused = |id| RefusedBy::new(peer(id), Reason::OtherPlan);
            assert!(!refusals.ends_later(peer(1)), "nothing is held");
            assert!(refusals.waits_for(refused(1), now));
            assert!(!refusals.waits_for(refused(1), now), "one at a time");
            assert!(refusals.ends_later(peer(1)));
            let theirs = [
                setting("run.seed", "1"),
                setting("strategy.outer.lr", "0.5"),
                setting("strategy.preset", "slowmo"),
            ];
            assert!(refusals.compared(peer(2), &theirs).is_none());
            let held = refusals.compared(peer(1), &theirs).unwrap();
            assert!(held.ends);
            assert_eq!(held.refused.keys, ["strategy.preset", "strategy.outer.lr"]);
            // One goes, and another one says nothing.
            assert!(refusals.waits_for(refused(1), now));
            assert!(refusals.waits_for(refused(2), now));
            assert_eq!(refusals.overdue(Some(peer(1)), now).len(), 1);
            assert_eq!(refusals.overdue(None, now + SETTINGS_WAIT).len(), 1);
            // Any number of identities may come.
            let held = (0..=255).filter(|id| refusals.waits_for(refused(*id), now));
            assert_eq!(held.count(), PEERS_MAX);
        }
    }
}
