//! The newest vitals of each peer, and those of another daemon with the identity of this one. Values in, values out:
//! no queue, no clock.

use crate::net::public_key;
use murmurate_protocol::limits::{VITALS_AT_ONCE_MAX, VITALS_PEERS_MAX};
use murmurate_protocol::vitals::{Heard, Known, SignedVitals, Vitals};
use murmurate_protocol::{PeerId, RunId, SortedMap, SortedSet};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long vitals are kept. The last ones of a daemon that ended still show its name.
pub(super) const KEPT: Duration = Duration::from_secs(300);

/// Newer vitals of a peer, or of another daemon with this one's identity, are not looked at before: the checks of
/// signatures that a peer can cause are bounded by this, however many peers pass them on.
const APART_MIN: Duration = Duration::from_secs(2);

/// Vitals older than this make room for those of a peer that is not in the table.
const OLD: Duration = Duration::from_secs(15);

#[derive(Clone, Debug)]
struct Entry {
    signed: SignedVitals,
    /// Their age when they came.
    came_aged: Duration,
    came: Instant,
}

impl Entry {
    fn age(&self, now: Instant) -> Duration {
        self.came_aged + now.saturating_duration_since(self.came)
    }

    fn heard(&self, now: Instant) -> Heard {
        Heard {
            age_ms: u32::try_from(self.age(now).as_millis()).unwrap_or(u32::MAX),
            signed: self.signed.clone(),
        }
    }
}

/// Vitals of a peer, as this daemon shows them.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenVitals {
    /// What the peer says of itself.
    pub vitals: Vitals,
    /// How old they are.
    pub age: Duration,
}

#[derive(Debug)]
pub(super) struct Table {
    me: PeerId,
    mine: Option<Entry>,
    others: SortedMap<PeerId, Entry>,
}

/// What to answer a peer that said how new its vitals are.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Difference {
    pub(super) lacks: Vec<Heard>,
    /// What this daemon lacks: the first bytes of the peers' ids.
    pub(super) wanted: Vec<u64>,
}

impl Table {
    pub(super) fn new(me: PeerId) -> Self {
        Self {
            me,
            mine: None,
            others: SortedMap::new(),
        }
    }

    /// Keeps this daemon's own vitals, to pass them on.
    pub(super) fn say(&mut self, signed: SignedVitals, now: Instant) {
        self.mine = Some(Entry {
            signed,
            came_aged: Duration::ZERO,
            came: now,
        });
    }

    /// True for vitals that are worth a check of their signature.
    pub(super) fn wants(&self, heard: &Heard, now: Instant) -> bool {
        let vitals = &heard.signed.vitals;
        let fresh = age_of(heard) < KEPT;
        let newer = self.others.get(&vitals.peer).is_none_or(|known| {
            let apart = now.saturating_duration_since(known.came);
            vitals.sequence > known.signed.vitals.sequence && apart >= APART_MIN
        });
        vitals.peer != self.me && fresh && newer
    }

    /// Keeps vitals whose signature was checked. Returns whether they are kept. `linked` are the peers
    /// whose vitals never make room for those of others.
    pub(super) fn keep(&mut self, heard: Heard, now: Instant, linked: &SortedSet<PeerId>) -> bool {
        let peer = heard.signed.vitals.peer;
        let room = self.others.contains_key(&peer) || self.has_room(&peer, now, linked);
        if !room || !self.wants(&heard, now) {
            return false;
        }
        let came_aged = age_of(&heard);
        let entry = Entry {
            signed: heard.signed,
            came_aged,
            came: now,
        };
        self.others.insert(peer, entry);
        true
    }

    /// Makes room for one more peer, if it is out of room: the oldest vitals of a peer without a link go,
    /// if they are old or those of a linked peer come.
    fn has_room(&mut self, peer: &PeerId, now: Instant, linked: &SortedSet<PeerId>) -> bool {
        if self.others.len() < VITALS_PEERS_MAX {
            return true;
        }
        let not_linked = self.others.iter().filter(|(id, _)| !linked.contains(id));
        let oldest = not_linked.max_by_key(|(_, entry)| entry.age(now));
        let goes = oldest.filter(|(_, entry)| linked.contains(peer) || entry.age(now) > OLD);
        match goes.map(|(id, _)| *id) {
            Some(id) => self.others.remove(&id).is_some(),
            None => false,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Entry> {
        self.mine.iter().chain(self.others.values())
    }

    /// How new the vitals here are.
    pub(super) fn known(&self) -> Vec<Known> {
        let known = |entry: &Entry| Known {
            peer: Known::prefix(&entry.signed.vitals.peer),
            sequence: entry.signed.vitals.sequence,
        };
        self.all().take(VITALS_PEERS_MAX).map(known).collect()
    }

    /// Compares a peer's list with the vitals here.
    pub(super) fn difference(&self, theirs: &[Known], now: Instant) -> Difference {
        let theirs: SortedMap<u64, u64> = theirs.iter().map(|k| (k.peer, k.sequence)).collect();
        let full = theirs.len() >= VITALS_PEERS_MAX;
        let mut difference = Difference::default();
        let mut here = SortedSet::new();
        for entry in self.all() {
            let (prefix, sequence) = (
                Known::prefix(&entry.signed.vitals.peer),
                entry.signed.vitals.sequence,
            );
            here.insert(prefix);
            match theirs.get(&prefix) {
                Some(known) if *known == sequence => {}
                Some(known) if *known > sequence => difference.wanted.push(prefix),
                None if full => {}
                _ => difference.lacks.push(entry.heard(now)),
            }
        }
        // A peer does not need to be told of itself, nor of more peers than it has room for.
        let own = Known::prefix(&self.me);
        let room = VITALS_PEERS_MAX.saturating_sub(self.others.len());
        let unknown = theirs
            .keys()
            .filter(|prefix| !here.contains(prefix) && **prefix != own);
        difference.wanted.extend(unknown.take(room));
        difference
    }

    pub(super) fn of(&self, wanted: &[u64], now: Instant) -> Vec<Heard> {
        let wanted: SortedSet<u64> = wanted.iter().copied().collect();
        let is_wanted = |entry: &&Entry| wanted.contains(&Known::prefix(&entry.signed.vitals.peer));
        self.all()
            .filter(is_wanted)
            .map(|entry| entry.heard(now))
            .collect()
    }

    pub(super) fn mine(&self, now: Instant) -> Option<Heard> {
        self.mine.as_ref().map(|entry| entry.heard(now))
    }

    pub(super) fn seen(&self, now: Instant) -> Vec<SeenVitals> {
        let seen = |entry: &Entry| SeenVitals {
            vitals: entry.signed.vitals.clone(),
            age: entry.age(now),
        };
        self.others.values().map(seen).collect()
    }

    /// How old a peer's vitals are.
    pub(super) fn age_of(&self, peer: &PeerId, now: Instant) -> Option<Duration> {
        self.others.get(peer).map(|entry| entry.age(now))
    }

    /// Forgets vitals that are too old to show, and those of peers that are members no longer.
    pub(super) fn tidy(&mut self, now: Instant, is_member: impl Fn(&PeerId) -> bool) {
        self.others
            .retain(|peer, entry| entry.age(now) < KEPT && is_member(peer));
    }
}

pub(super) fn age_of(heard: &Heard) -> Duration {
    Duration::from_millis(heard.age_ms.into())
}

/// Checks that vitals are signed by the peer that they name, for this run.
pub(super) fn is_signed(run: &RunId, signed: &SignedVitals) -> bool {
    let statement = SignedVitals::statement(run, &signed.vitals);
    let signature = signed.signature.to_bytes();
    public_key(&signed.vitals.peer).is_some_and(|key| key.verify(&statement, &signature))
}

/// Vitals in messages of bounded size.
pub(super) fn in_messages(all: Vec<Heard>) -> Vec<Vec<Heard>> {
    let parts = all.chunks(VITALS_AT_ONCE_MAX);
    parts.map(<[Heard]>::to_vec).collect()
}

/// Vitals of an earlier life of this daemon are older than this life. By less than this much they may seem
/// younger, because their age counts from when the first daemon heard them.
const MARGIN: Duration = Duration::from_secs(2);

/// Vitals of this life that are known by their numbers. Those before them are taken for this daemon's own.
const SAID_MAX: usize = 256;

/// By how much a sequence number goes beyond that of the other one, so that the others pass on these vitals and
/// not the next ones of the other: numbers are times in milliseconds.
const LEAD_MS: u64 = 10_000;

/// What another daemon with this identity said of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenElsewhere {
    /// Its vitals.
    pub vitals: Vitals,
    /// When this daemon heard it.
    pub heard: Instant,
}

/// Another daemon with the identity of this one, such as one in a copied directory. The others take the two for one
/// and pass on what each says of itself, so each of the two hears the other's vitals as its own.
#[derive(Debug)]
pub(super) struct Elsewhere {
    born: Instant,
    /// The numbers of this daemon's last vitals, oldest first.
    said: VecDeque<u64>,
    last: Option<SeenElsewhere>,
}

impl Elsewhere {
    /// Nothing is known to a daemon that began its life then.
    pub(super) const fn new(born: Instant) -> Self {
        Self {
            born,
            said: VecDeque::new(),
            last: None,
        }
    }

    /// This daemon says something with this number.
    pub(super) fn says(&mut self, sequence: u64) {
        if self.said.len() == SAID_MAX {
            self.said.pop_front();
        }
        self.said.push_back(sequence);
    }

    /// True where this daemon has said what has this number, or may have.
    fn has_said(&self, sequence: u64) -> bool {
        let forgotten = self.said.front().filter(|_| self.said.len() == SAID_MAX);
        forgotten.is_some_and(|oldest| sequence < *oldest) || self.said.contains(&sequence)
    }

    /// True for vitals in this daemon's name that another one made, if their signature is right.
    pub(super) fn may_be(&self, heard: &Heard, now: Instant) -> bool {
        let life = now.saturating_duration_since(self.born);
        let sequence = heard.signed.vitals.sequence;
        let known = self.last.as_ref().is_some_and(|last| {
            sequence <= last.vitals.sequence
                || now.saturating_duration_since(last.heard) < APART_MIN
        });
        !self.has_said(sequence) && age_of(heard) + MARGIN < life && !known
    }

    /// Keeps them, now that their signature was checked.
    pub(super) fn keep(&mut self, vitals: Vitals, now: Instant) {
        self.last = Some(SeenElsewhere { vitals, heard: now });
    }

    pub(super) const fn last(&self) -> Option<&SeenElsewhere> {
        self.last.as_ref()
    }

    /// A sequence number for this daemon's next vitals that the other one hears, whatever it says.
    pub(super) fn outbid(&self, own: u64) -> u64 {
        let theirs = self.last.as_ref().map_or(0, |last| last.vitals.sequence);
        own.max(theirs).saturating_add(LEAD_MS)
    }
}
