//! Whom a peer takes for registrars, and which peers have registered with it.

use crate::id::rendezvous;
use crate::limits::{FOUNDING_QUIET_TICKS, FOUNDING_RETRY_TICKS, REGISTRARS_MAX, ROLL_PEERS_MAX};
use crate::sorted::{SortedMap, SortedSet};
use crate::wire::PeerRecord;
use crate::{PeerId, Round, RunId};
use std::collections::BTreeMap;

/// The slot of the rendezvous hash that ranks registrars.
const SLOT: u8 = 3;

/// Ticks after which a peer that no longer registers, or answers, is left out.
const SILENT_TICKS: u32 = 2 * FOUNDING_RETRY_TICKS;

/// Ticks for which a registrar that could not be reached is left out.
const LOST_TICKS: u32 = 8 * FOUNDING_RETRY_TICKS;

/// Ticks with news after which a list is taken as it is: there may always be another newcomer.
const NEWS_TICKS_MAX: u32 = 16 * FOUNDING_QUIET_TICKS;

/// What a peer knows of the others before there is a roll.
#[derive(Debug)]
pub(super) struct Register {
    me: PeerId,
    run: RunId,
    now: u32,
    /// By rank, at most [`REGISTRARS_MAX`].
    registrars: SortedMap<(u64, PeerId), PeerRecord>,
    /// Registrars that could not be reached lately, with the tick until which they are left out.
    lost: SortedMap<PeerId, u32>,
    /// Peers that registered, with the tick at which they last did.
    here: BTreeMap<PeerId, (PeerRecord, u32)>,
    /// The registrar that this peer registers with, and when it was last heard or first asked.
    asked: Option<(PeerId, u32)>,
    /// The ticks of the first and of the last change without a quiet time between them.
    changed: (u32, u32),
}

/// Returns `true` if a record is not older than the known one.
fn newer(known: Option<&PeerRecord>, record: &PeerRecord) -> bool {
    known.is_none_or(|known| known.sequence <= record.sequence)
}

impl Register {
    pub(super) fn new(me: &PeerRecord) -> Self {
        let mut this = Self {
            me: me.peer,
            run: me.run,
            now: 0,
            registrars: SortedMap::new(),
            lost: SortedMap::new(),
            here: BTreeMap::from([(me.peer, (me.clone(), 0))]),
            asked: None,
            changed: (0, 0),
        };
        this.meet(me);
        this
    }

    pub(super) const fn run(&self) -> RunId {
        self.run
    }

    fn rank(&self, peer: PeerId) -> (u64, PeerId) {
        (rendezvous(&self.run, Round(0), SLOT, peer), peer)
    }

    fn change(&mut self) {
        if self.now - self.changed.1 >= FOUNDING_QUIET_TICKS {
            self.changed.0 = self.now;
        }
        self.changed.1 = self.now;
    }

    /// Takes a record into account; true if its peer is a registrar that was not known.
    pub(super) fn meet(&mut self, record: &PeerRecord) -> bool {
        // Most lists name those that are known, and a rank takes a hash.
        let known = self.registrars.values().any(|known| known.is(record));
        // Others may still name one that could not be reached.
        if known || record.run != self.run || self.lost.contains_key(&record.peer) {
            return false;
        }
        let rank = self.rank(record.peer);
        let known = self.registrars.get(&rank);
        let news = known.is_none();
        if newer(known, record) {
            self.registrars.insert(rank, record.clone());
        }
        if self.registrars.len() > REGISTRARS_MAX {
            self.registrars.pop_first();
        }
        let news = news && self.registrars.contains_key(&rank);
        if news {
            self.change();
        }
        news
    }

    /// Another peer says something, so it can be reached.
    pub(super) fn heard(&mut self, from: PeerId) {
        self.lost.remove(&from);
        if let Some((_, last)) = self.asked.as_mut().filter(|(peer, _)| *peer == from) {
            *last = self.now;
        }
    }

    /// Peers register with this one.
    pub(super) fn enter(&mut self, records: &[PeerRecord]) {
        let run = self.run;
        for record in records.iter().filter(|r| r.run == run) {
            let known = self.here.get(&record.peer);
            let is_new = known.is_none();
            if is_new && self.here.len() >= ROLL_PEERS_MAX {
                continue;
            }
            let keep = known.filter(|(known, _)| !newer(Some(known), record));
            let record = keep.map_or(record, |(known, _)| known).clone();
            // A founding waits for sites that are still being found.
            let moved = known.is_some_and(|(known, _)| known.locality != record.locality);
            self.meet(&record);
            self.here.insert(record.peer, (record, self.now));
            if is_new || moved {
                self.change();
            }
        }
    }

    /// A peer cannot be reached: others take its part.
    pub(super) fn lose(&mut self, peer: PeerId) {
        if peer == self.me {
            return;
        }
        let rank = self.rank(peer);
        let was_here = self.here.remove(&peer).is_some();
        let was_registrar = self.registrars.remove(&rank).is_some();
        if was_registrar {
            // Left out for a while, or the next message that names it would bring it back.
            self.lost.insert(peer, self.now + LOST_TICKS);
        }
        if was_here || was_registrar {
            self.change();
        }
    }

    /// Time passes: forgets peers that do not register again, and a registrar that is silent.
    pub(super) fn tick(&mut self) {
        self.now += 1;
        let (me, now) = (self.me, self.now);
        self.lost.retain(|_, until| *until > now);
        let before = self.here.len();
        self.here
            .retain(|peer, (_, last)| *peer == me || now - *last < SILENT_TICKS);
        if self.here.len() < before {
            self.change();
        }
        if let Some((silent, last)) = self.asked
            && now - last >= SILENT_TICKS
        {
            self.asked = None;
            self.lose(silent);
        }
    }

    pub(super) fn registrars(&self) -> impl Iterator<Item = &PeerRecord> {
        self.registrars.values().rev()
    }

    fn is_registrar(&self, peer: PeerId) -> bool {
        self.registrars.contains_key(&self.rank(peer))
    }

    /// Returns `true` if this peer is the highest registrar that it knows.
    pub(super) fn is_first(&self) -> bool {
        let mut all = self.registrars();
        all.next().is_some_and(|first| first.peer == self.me)
    }

    /// For the highest: one in turn of the registrars that have not registered.
    pub(super) fn missing(&self, turn: usize) -> Option<&PeerRecord> {
        let is_missing = |r: &&PeerRecord| !self.here.contains_key(&r.peer);
        let missing: Vec<&PeerRecord> = self.registrars().filter(is_missing).collect();
        let one = missing.get(turn % missing.len().max(1)).copied();
        one.filter(|_| self.is_first())
    }

    /// With whom to register, and whom: a registrar passes on its list to the highest of them, others
    /// register with one that their id picks. None for the highest itself.
    pub(super) fn registers(&mut self) -> Option<(PeerRecord, Vec<PeerRecord>)> {
        let count = self.registrars.len().max(1);
        let first = self.me.as_bytes()[..8].iter();
        let pick = first.fold(0usize, |sum, byte| (sum << 8 | usize::from(*byte)) % count);
        let (pick, here) = if self.is_registrar(self.me) {
            (0, self.here().cloned().collect())
        } else {
            (
                pick,
                self.here
                    .get(&self.me)
                    .map(|(r, _)| r.clone())
                    .into_iter()
                    .collect(),
            )
        };
        let to = self.registrars().nth(pick).cloned();
        let to = to.filter(|to| to.peer != self.me)?;
        if self.asked.is_none_or(|(peer, _)| peer != to.peer) {
            self.asked = Some((to.peer, self.now));
        }
        Some((to, here))
    }

    /// The peers that registered here, this one included.
    pub(super) fn here(&self) -> impl Iterator<Item = &PeerRecord> {
        self.here.values().map(|(record, _)| record)
    }

    pub(super) fn here_count(&self) -> usize {
        self.here.len()
    }

    /// Where a peer that registered can be reached.
    pub(super) fn record(&self, peer: PeerId) -> Option<&PeerRecord> {
        self.here.get(&peer).map(|(record, _)| record)
    }

    /// The peers that registered here, by rank from the highest, and the registrars among them.
    pub(super) fn ranked(&self) -> (Vec<PeerRecord>, SortedSet<PeerId>) {
        let by_rank = self.here().map(|r| (self.rank(r.peer), r.clone()));
        let by_rank: SortedMap<(u64, PeerId), PeerRecord> = by_rank.collect();
        let ranked: Vec<PeerRecord> = by_rank.into_values().rev().collect();
        let registrars = ranked.iter().take(REGISTRARS_MAX).map(|r| r.peer);
        let registrars = registrars.collect();
        (ranked, registrars)
    }

    /// True once nothing has changed for a while, or something always does.
    pub(super) const fn is_quiet(&self) -> bool {
        let (first, last) = self.changed;
        self.now - last >= FOUNDING_QUIET_TICKS || self.now - first >= NEWS_TICKS_MAX
    }

    /// How many ticks ago something changed.
    pub(super) const fn quiet_ticks(&self) -> u32 {
        self.now - self.changed.1
    }
}
