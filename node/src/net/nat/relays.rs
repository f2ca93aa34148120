//! Chooses where to reserve: the known relays, the reservations, and when to ask again.
//!
//! There are two reasons to reserve. A private daemon needs relays that others can dial. A daemon that
//! cannot reach a member needs others that are linked with both; whether they can be dialled does not
//! matter.
//!
//! Reads no clock; callers pass the time.

use crate::net::bucket::doubled;
use libp2p::Multiaddr;
use libp2p::core::transport::ListenerId;
use libp2p::identity::PeerId;
use murmurate_protocol::{Digest, SortedMap};
use std::cmp::Reverse;
use std::time::Duration;
use tokio::time::Instant;

/// Reservations that a private daemon holds. With two, it stays reachable if one relay goes away.
const RESERVED_MAX: usize = 2;

/// Reservations of a daemon that cannot reach a member.
const COMMON_MAX: usize = 3;

const KNOWN_MAX: usize = 64;

/// Pause after a relay refused or went away; it doubles with each further failure.
const PAUSE_MIN: Duration = Duration::from_secs(1);

const PAUSE_MAX: Duration = Duration::from_secs(120);

/// Whom a relay can be of use to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reaches {
    /// Those that are linked with it: whether others can dial it is not known.
    Linked,
    /// Everyone, as it seems: this daemon dialled it at a global address.
    Dialled,
    /// Everyone: it is there to relay.
    All,
}

/// Why this daemon reserves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Others cannot dial it.
    pub(super) private: bool,
    /// It cannot reach a member that it knows.
    pub(super) missing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Due(Instant),
    Asked(ListenerId),
    Reserved(ListenerId),
}

impl Stage {
    fn listener(self) -> Option<ListenerId> {
        match self {
            Self::Asked(listener) | Self::Reserved(listener) => Some(listener),
            Self::Due(_) => None,
        }
    }
}

#[derive(Clone, Debug)]
struct Known {
    address: Multiaddr,
    reaches: Reaches,
    /// Set while it is linked directly.
    linked: bool,
    stage: Stage,
    failures: u32,
}

impl Known {
    fn held(&self) -> bool {
        self.stage.listener().is_some()
    }

    fn is_public(&self) -> bool {
        self.reaches > Reaches::Linked
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Relays {
    known: SortedMap<PeerId, Known>,
    needs: Needs,
}

impl Relays {
    /// Adds a peer that is linked directly and offers to relay.
    pub(super) fn offered(
        &mut self,
        peer: PeerId,
        address: Multiaddr,
        reaches: Reaches,
        now: Instant,
    ) {
        if let Some(known) = self.known.get_mut(&peer) {
            known.linked = true;
            known.reaches = known.reaches.max(reaches);
            return;
        }
        if self.known.len() >= KNOWN_MAX && !self.makes_room(reaches) {
            return;
        }
        let known = Known {
            address,
            reaches,
            linked: true,
            stage: Stage::Due(now),
            failures: 0,
        };
        self.known.insert(peer, known);
    }

    /// Forgets a relay without a reservation that is of use to fewer. Returns whether there was one.
    fn makes_room(&mut self, reaches: Reaches) -> bool {
        let mut idle = self.known.iter().filter(|(_, known)| !known.held());
        let least = idle.find(|(_, known)| known.reaches < reaches);
        let least = least.map(|(peer, _)| *peer);
        least.is_some_and(|peer| self.known.remove(&peer).is_some())
    }

    /// The direct connection to a peer is closed.
    pub(super) fn unlinked(&mut self, peer: &PeerId) {
        if let Some(known) = self.known.get_mut(peer) {
            known.linked = false;
        }
    }

    /// Forgets a peer whose last connection is closed, unless it holds a reservation.
    pub(super) fn gone(&mut self, peer: &PeerId) {
        self.unlinked(peer);
        if self.known.get(peer).is_some_and(|known| !known.held()) {
            self.known.remove(peer);
        }
    }

    /// Sets why relays are needed. Returns the listeners of the reservations to give up.
    pub(super) fn need(&mut self, needs: Needs, now: Instant) -> Vec<ListenerId> {
        self.needs = needs;
        if needs.missing {
            return Vec::new();
        }
        // One that is there to relay replaces one that only seems to be good for it.
        let mut room = if needs.private {
            RESERVED_MAX.saturating_sub(self.count(|known| known.reaches == Reaches::All))
        } else {
            0
        };
        let mut given_up = Vec::new();
        for known in self.known.values_mut() {
            let Some(listener) = known.stage.listener() else {
                continue;
            };
            let kept = match known.reaches {
                Reaches::All => needs.private,
                Reaches::Dialled => room > 0,
                Reaches::Linked => false,
            };
            match (kept, known.reaches) {
                (true, Reaches::Dialled) => room -= 1,
                (true, _) => {}
                // A request under way is not withdrawn: libp2p-relay 0.22 panics when the answer meets no
                // listener. It is given up once it is answered.
                (false, _) if matches!(known.stage, Stage::Asked(_)) => {}
                (false, _) => {
                    known.stage = Stage::Due(now);
                    given_up.push(listener);
                }
            }
        }
        given_up
    }

    /// The relays to ask now. `me` spreads the requests of different daemons over different relays.
    pub(super) fn due(&self, me: &PeerId, now: Instant) -> Vec<(PeerId, Multiaddr)> {
        let is_due = |known: &Known| matches!(known.stage, Stage::Due(at) if at <= now);
        let mut wanted: Vec<_> = self.wanted().filter(|(_, known)| is_due(known)).collect();
        wanted.sort_by_cached_key(|(peer, known)| {
            let place = Digest::of(&[me.to_bytes(), peer.to_bytes()].concat());
            (Reverse(known.reaches), *place.as_bytes())
        });
        let mut rooms = self.rooms();
        let mut due = Vec::new();
        for (peer, known) in wanted {
            if rooms.fit(known) {
                rooms.take(known);
                due.push((*peer, known.address.clone()));
            }
        }
        due
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        let rooms = self.rooms();
        let due = self.wanted().filter_map(|(_, known)| match known.stage {
            Stage::Due(at) => Some(at).filter(|_| rooms.fit(known)),
            _ => None,
        });
        due.min()
    }

    /// The relays of use that hold no reservation.
    fn wanted(&self) -> impl Iterator<Item = (&PeerId, &Known)> {
        let Needs { private, missing } = self.needs;
        let useful =
            move |known: &Known| (private && known.is_public()) || (missing && known.linked);
        let known = self.known.iter();
        known.filter(move |(_, known)| !known.held() && useful(known))
    }

    fn rooms(&self) -> Rooms {
        let public = self.count(Known::is_public);
        let all = self.count(|_| true);
        let best = self.count(|known| known.reaches == Reaches::All);
        let Needs { private, missing } = self.needs;
        let left = |needed: bool, max: usize, busy: usize| {
            if needed { max.saturating_sub(busy) } else { 0 }
        };
        Rooms {
            best: left(private, RESERVED_MAX, best),
            public: left(private, RESERVED_MAX, public),
            common: left(missing, COMMON_MAX, all),
        }
    }

    /// How many reservations are held or asked for at such relays.
    fn count(&self, of: impl Fn(&Known) -> bool) -> usize {
        let known = self.known.values();
        known.filter(|known| known.held() && of(known)).count()
    }

    /// Records that a relay was asked. `listener` will report the result.
    pub(super) fn asked(&mut self, peer: &PeerId, listener: ListenerId) {
        if let Some(known) = self.known.get_mut(peer) {
            known.stage = Stage::Asked(listener);
        }
    }

    /// Records that a relay could not be asked.
    pub(super) fn failed(&mut self, peer: &PeerId, now: Instant) {
        if let Some(known) = self.known.get_mut(peer) {
            known.failures += 1;
            let pause = doubled(PAUSE_MIN, PAUSE_MAX, known.failures);
            known.stage = Stage::Due(now + pause);
        }
    }

    /// Records that a relay accepted the reservation.
    pub(super) fn reserved(&mut self, peer: &PeerId) {
        if let Some(known) = self.known.get_mut(peer)
            && let Some(listener) = known.stage.listener()
        {
            known.stage = Stage::Reserved(listener);
            known.failures = 0;
        }
    }

    /// Records that a listener ended. Returns its relay, if it was for one.
    pub(super) fn closed(&mut self, listener: ListenerId, now: Instant) -> Option<PeerId> {
        let found = self
            .known
            .iter()
            .find(|(_, known)| known.stage.listener() == Some(listener));
        let (peer, useless) = found.map(|(peer, k)| (*peer, !k.linked && !k.is_public()))?;
        if useless {
            drop(self.known.remove(&peer))
        } else {
            self.failed(&peer, now)
        }
        Some(peer)
    }

    /// The relay that was asked at this address.
    pub(super) fn at(&self, address: &Multiaddr) -> Option<PeerId> {
        let found = self
            .known
            .iter()
            .find(|(_, known)| known.address == *address);
        found.map(|(peer, _)| *peer)
    }

    pub(super) fn holding(&self) -> impl Iterator<Item = PeerId> {
        let held = self
            .known
            .iter()
            .filter(|(_, known)| matches!(known.stage, Stage::Reserved(_)));
        held.map(|(peer, _)| *peer)
    }

    /// The relays that are linked directly, those with a reservation first.
    pub(super) fn linked(&self) -> Vec<(PeerId, Multiaddr)> {
        let known = self.known.iter().filter(|(_, known)| known.linked);
        let mut linked: Vec<_> = known.collect();
        linked.sort_by_key(|(_, known)| !matches!(known.stage, Stage::Reserved(_)));
        let linked = linked.into_iter();
        linked
            .map(|(peer, known)| (*peer, known.address.clone()))
            .collect()
    }
}

/// How many more relays may be asked, for each reason.
struct Rooms {
    /// Of those that are there to relay.
    best: usize,
    /// Of those that others can dial.
    public: usize,
    /// Of those that are linked.
    common: usize,
}

impl Rooms {
    /// True where there is a place for a relay.
    fn fit(&self, known: &Known) -> bool {
        let best = known.reaches == Reaches::All && self.best > 0;
        let public = known.is_public() && self.public > 0;
        best || public || (known.linked && self.common > 0)
    }

    fn take(&mut self, known: &Known) {
        if known.reaches == Reaches::All {
            self.best = self.best.saturating_sub(1);
        }
        if known.is_public() {
            self.public = self.public.saturating_sub(1);
        }
        self.common = self.common.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers<const N: usize>() -> [PeerId; N] {
        std::array::from_fn(|_| PeerId::random())
    }

    const PRIVATE: Needs = Needs {
        private: true,
        missing: false,
    };

    const MISSING: Needs = Needs {
        private: false,
        missing: true,
    };

    fn me() -> PeerId {
        PeerId::from_bytes(&[0, 1, 7]).unwrap()
    }

    fn at() -> Multiaddr {
        "/ip4/192.0.2.1/udp/1/quic-v1".parse().unwrap()
    }

    #[test]
    fn two_relays_are_asked_when_they_are_needed() {
        let now = Instant::now();
        let mut relays = Relays::default();
        let all = peers::<3>();
        for peer in all {
            relays.offered(peer, at(), Reaches::All, now);
        }
        assert!(relays.due(&me(), now).is_empty() && relays.next_at().is_none());
        assert!(relays.need(PRIVATE, now).is_empty());
        let due = relays.due(&me(), now);
        assert_eq!(due.len(), RESERVED_MAX);
        for (peer, _) in &due {
            relays.asked(peer, ListenerId::next());
        }
        assert!(relays.due(&me(), now).is_empty() && relays.next_at().is_none());
        relays.reserved(&due[0].0);
        assert_eq!(relays.holding().collect::<Vec<_>>(), [due[0].0]);
        assert!(relays.at(&at()).is_some() && relays.at(&Multiaddr::empty()).is_none());
        // The one that is not answered yet is given up when it is.
        assert_eq!(relays.need(Needs::default(), now).len(), 1);
        assert_eq!(relays.holding().count(), 0);
        relays.reserved(&due[1].0);
        assert_eq!(relays.need(Needs::default(), now).len(), 1);
        assert_eq!(relays.holding().count(), 0);
    }

    #[test]
    fn a_relay_that_refuses_is_asked_again_after_growing_pauses() {
        let now = Instant::now();
        let mut relays = Relays::default();
        let [peer] = peers();
        relays.offered(peer, at(), Reaches::All, now);
        relays.need(PRIVATE, now);
        let mut pauses = Vec::new();
        for _ in 0..10 {
            let listener = ListenerId::next();
            relays.asked(&peer, listener);
            assert_eq!(relays.closed(listener, now), Some(peer));
            pauses.push(relays.next_at().unwrap() - now);
        }
        assert_eq!(pauses[..3], [PAUSE_MIN, 2 * PAUSE_MIN, 4 * PAUSE_MIN]);
        assert_eq!(pauses.last(), Some(&PAUSE_MAX));
        assert_eq!(relays.closed(ListenerId::next(), now), None);
        relays.gone(&peer);
        assert_eq!(relays.next_at(), None);
    }

    #[test]
    fn a_reservation_outlives_the_link_and_what_is_known_is_bounded() {
        let now = Instant::now();
        let mut relays = Relays::default();
        let [peer] = peers();
        relays.offered(peer, at(), Reaches::All, now);
        relays.need(PRIVATE, now);
        relays.asked(&peer, ListenerId::next());
        relays.reserved(&peer);
        relays.gone(&peer);
        assert_eq!(relays.holding().count(), 1);
        for peer in peers::<100>() {
            relays.offered(peer, at(), Reaches::All, now);
        }
        assert_eq!(relays.known.len(), KNOWN_MAX);
    }

    /// Asks the relays that are due, which accept. Returns them.
    fn ask(relays: &mut Relays, now: Instant) -> Vec<PeerId> {
        let due = relays.due(&me(), now).into_iter().map(|(peer, _)| peer);
        let due: Vec<PeerId> = due.collect();
        for peer in &due {
            relays.asked(peer, ListenerId::next());
            relays.reserved(peer);
        }
        due
    }

    #[test]
    fn a_private_daemon_takes_only_relays_that_others_can_dial_and_prefers_those_that_are_there_for_it()
     {
        let now = Instant::now();
        let mut relays = Relays::default();
        let [linked, dialled, other, first, second] = peers();
        relays.offered(linked, at(), Reaches::Linked, now);
        relays.need(PRIVATE, now);
        assert!(ask(&mut relays, now).is_empty() && relays.next_at().is_none());
        relays.offered(dialled, at(), Reaches::Dialled, now);
        relays.offered(other, at(), Reaches::Dialled, now);
        assert_eq!(ask(&mut relays, now).len(), RESERVED_MAX);
        relays.offered(first, at(), Reaches::All, now);
        assert_eq!(ask(&mut relays, now), [first]);
        assert_eq!(relays.need(PRIVATE, now).len(), 1, "of the two others");
        relays.offered(second, at(), Reaches::All, now);
        assert_eq!(ask(&mut relays, now), [second]);
        assert_eq!(relays.need(PRIVATE, now).len(), 1, "of the other one");
        let held: murmurate_protocol::SortedSet<_> = relays.holding().collect();
        assert_eq!(held, [first, second].into());
        assert!(relays.due(&me(), now).is_empty() && relays.next_at().is_none());
    }

    #[test]
    fn for_a_missing_link_three_linked_relays_are_asked_and_another_one_if_one_goes_away() {
        let now = Instant::now();
        let mut relays = Relays::default();
        let all: [PeerId; 5] = peers();
        for peer in all {
            relays.offered(peer, at(), Reaches::Linked, now);
        }
        relays.unlinked(&all[4]);
        relays.need(MISSING, now);
        let asked = ask(&mut relays, now);
        assert_eq!(asked.len(), COMMON_MAX);
        assert!(!asked.contains(&all[4]), "it is not linked");
        assert!(
            asked
                .iter()
                .all(|peer| relays.linked()[..3].iter().any(|(p, _)| p == peer))
        );
        assert_eq!(relays.linked().len(), 4);
        let listener = relays.known[&asked[0]].stage.listener().unwrap();
        relays.gone(&asked[0]);
        assert_eq!(relays.closed(listener, now), Some(asked[0]));
        let next = ask(&mut relays, now);
        assert!(next.len() == 1 && next != [asked[0]], "{next:?}");
        assert_eq!(relays.need(Needs::default(), now).len(), COMMON_MAX);
        assert_eq!(relays.holding().count(), 0);
    }
}
