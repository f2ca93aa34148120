//! Rolls that the peers of one process share. All peers of a swarm hold the same roll; where a
//! simulator runs thousands of them, a copy for each would fill the memory many times over.

use super::{Roll, RollChange, RollName};
use crate::limits::{FOUNDING_RECORDS_MAX, ROLL_PAGE_BYTES, ROLLS_SHARED_MAX};
use crate::wire::PeerRecord;
use crate::{Digest, Round, RunId};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The rolls that some peers of one process hold. A copy of this value is a handle on the same rolls.
///
/// It changes no decision: a roll that is shared is equal to the one that a peer would have made, its
/// records included. A peer that was given none shares with no other.
#[derive(Clone, Debug, Default)]
pub struct SharedRolls(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// The last ones, newest last.
    rolls: VecDeque<Weak<Roll>>,
    /// What a change made of a roll, so that it is worked out once, newest last.
    changed: VecDeque<Changed>,
}

#[derive(Debug)]
struct Changed {
    before: Weak<Roll>,
    note: Digest,
    round: Round,
    after: Weak<Roll>,
}

/// Adds to a list of bounded length; entries that no peer holds any more go first, then the oldest.
fn keep<T>(list: &mut VecDeque<T>, one: T, is_held: impl Fn(&T) -> bool) {
    list.retain(is_held);
    if list.len() >= ROLLS_SHARED_MAX {
        list.pop_front();
    }
    list.push_back(one);
}

impl SharedRolls {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A roll, or the same one that another peer holds.
    pub(crate) fn share(&self, roll: Roll) -> Arc<Roll> {
        let mut known = self.known();
        let same = |held: &Arc<Roll>| held.content == roll.content;
        let held = known.rolls.iter().filter_map(Weak::upgrade).find(same);
        held.unwrap_or_else(|| {
            let roll = Arc::new(roll);
            let is_held = |roll: &Weak<Roll>| roll.strong_count() > 0;
            keep(&mut known.rolls, Arc::downgrade(&roll), is_held);
            roll
        })
    }

    /// The roll of this name, founded by these records in this order; without one if they do not make
    /// the roll that was named.
    pub(super) fn named(
        &self,
        name: RollName,
        records: Vec<PeerRecord>,
        row: u16,
    ) -> Option<Arc<Roll>> {
        let all = self.known().rolls.clone();
        let same = |held: &Arc<Roll>| {
            held.name() == name && held.content.row == row && held.records().eq(&records)
        };
        let held = all.iter().filter_map(Weak::upgrade).find(same);
        held.or_else(|| {
            let roll = Roll::found(records, row, Round(0));
            (roll.name() == name).then(|| self.share(roll))
        })
    }

    /// [`Roll::after`].
    pub(crate) fn after(&self, roll: &Arc<Roll>, change: &RollChange, round: Round) -> Arc<Roll> {
        let note = Digest::of(&change.to_bytes());
        let before = Arc::downgrade(roll);
        let made = self.known().changed.iter().find_map(|made| {
            let same = made.before.ptr_eq(&before) && made.note == note && made.round == round;
            made.after.upgrade().filter(|_| same)
        });
        made.unwrap_or_else(|| {
            let after = self.share(roll.after(change, round));
            let made = Changed {
                before,
                note,
                round,
                after: Arc::downgrade(&after),
            };
            let is_held = |made: &Changed| made.after.strong_count() > 0;
            keep(&mut self.known().changed, made, is_held);
            after
        })
    }
}

pub(super) fn in_messages(records: &[PeerRecord]) -> Vec<Vec<PeerRecord>> {
    let mut lists: Vec<Vec<PeerRecord>> = Vec::new();
    let mut bytes = 0;
    for record in records {
        let size = record.wire_bytes();
        match lists.last_mut() {
            Some(list) if list.len() < FOUNDING_RECORDS_MAX && bytes + size <= ROLL_PAGE_BYTES => {
                list.push(record.clone());
                bytes += size;
            }
            _ => {
                lists.push(vec![record.clone()]);
                bytes = size;
            }
        }
    }
    lists
}

/// A roll that comes page by page.
#[derive(Debug)]
pub(super) struct Incoming {
    name: RollName,
    /// The peers of the first places.
    records: Vec<PeerRecord>,
    /// How many times it was asked for because nothing came.
    pub(super) tries: usize,
    /// Set once a page came since the last tick.
    pub(super) moves: bool,
}

impl Incoming {
    pub(super) const fn new(name: RollName) -> Self {
        Self {
            name,
            records: Vec::new(),
            tries: 0,
            moves: false,
        }
    }

    pub(super) const fn name(&self) -> RollName {
        self.name
    }

    /// The first place that is missing.
    pub(super) fn next(&self) -> u16 {
        self.records.len() as u16
    }

    /// Takes the page that is next; false for any other, and for one that cannot be part of the roll.
    pub(super) fn takes(&mut self, first: u16, records: &[PeerRecord], run: RunId) -> bool {
        let room = usize::from(self.name.peers) - self.records.len();
        let fits = first == self.next() && (1..=room).contains(&records.len());
        if !fits || records.iter().any(|record| record.run != run) {
            return false;
        }
        self.records.extend_from_slice(records);
        self.moves = true;
        true
    }

    pub(super) fn is_whole(&self) -> bool {
        self.records.len() >= usize::from(self.name.peers)
    }

    /// The roll, if the pages make the one that was named; otherwise it begins again.
    pub(super) fn roll(&mut self, row: u16, shared: &SharedRolls) -> Option<Arc<Roll>> {
        self.moves = false;
        shared.named(self.name, std::mem::take(&mut self.records), row)
    }
}

impl Roll {
    pub(crate) fn name(&self) -> RollName {
        RollName {
            digest: self.digest(),
            peers: self.len() as u16,
        }
    }

    /// The records from a place on that fit into some bytes, at least one if there is any.
    pub(super) fn page(&self, first: u16, most: usize) -> Vec<PeerRecord> {
        let mut bytes = 0;
        let mut records: Vec<PeerRecord> = Vec::new();
        for place in usize::from(first)..self.len() {
            let Some(place) = self.place(place) else {
                break;
            };
            bytes += place.record.wire_bytes();
            let full = bytes > most || records.len() >= FOUNDING_RECORDS_MAX;
            if full && !records.is_empty() {
                break;
            }
            records.push(place.record.clone());
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roll::tests::record;

    fn records(ids: core::ops::Range<u16>) -> Vec<PeerRecord> {
        ids.map(record).collect()
    }

    #[test]
    fn peers_that_make_the_same_roll_hold_one() {
        let rolls = SharedRolls::default();
        let roll = rolls.share(Roll::found(records(0..9), 0, Round(0)));
        let again = rolls.share(Roll::found(records(0..9), 0, Round(0)));
        assert!(Arc::ptr_eq(&roll, &again));
        let named = rolls.named(roll.name(), records(0..9), 0);
        assert!(named.is_some_and(|named| Arc::ptr_eq(&roll, &named)));
        let read = Roll::from_bytes(&roll.to_bytes()).unwrap();
        assert!(Arc::ptr_eq(&roll, &rolls.share(read)));
        let other = SharedRolls::default().share(Roll::found(records(0..9), 0, Round(0)));
        assert!(!Arc::ptr_eq(&roll, &other), "other peers share others");
    }

    #[test]
    fn a_roll_of_other_records_is_another_one() {
        let rolls = SharedRolls::default();
        let roll = rolls.share(Roll::found(records(0..9), 0, Round(0)));
        let mut moved = records(0..9);
        moved[3].addresses = vec![vec![1]];
        let found = rolls.named(roll.name(), moved.clone(), 0).unwrap();
        assert_eq!(found.name(), roll.name(), "addresses are no part of a name");
        assert_eq!(found.place(3).unwrap().record, moved[3]);
        assert!(rolls.named(roll.name(), records(1..10), 0).is_none());
    }

    #[test]
    fn a_change_is_worked_out_once() {
        let rolls = SharedRolls::default();
        let roll = rolls.share(Roll::found(records(0..9), 0, Round(0)));
        let change = RollChange {
            leave: vec![record(2).peer],
            join: vec![record(20)],
        };
        let after = |round| rolls.after(&roll, &change, Round(round));
        let one = after(4);
        assert!(Arc::ptr_eq(&one, &after(4)));
        assert!(!Arc::ptr_eq(&one, &after(5)));
        assert_eq!(*one, roll.after(&change, Round(4)));
    }

    #[test]
    fn few_rolls_are_known_at_a_time() {
        let rolls = SharedRolls::default();
        let held: Vec<Arc<Roll>> = (1..40)
            .map(|peers| rolls.share(Roll::found(records(0..peers), 0, Round(0))))
            .collect();
        assert_eq!(rolls.known().rolls.len(), ROLLS_SHARED_MAX);
        drop(held);
        let roll = rolls.share(Roll::found(records(0..3), 0, Round(0)));
        assert_eq!(rolls.known().rolls.len(), 1, "what no peer holds is gone");
        assert_eq!(roll.len(), 3);
    }
}

#[cfg(test)]
mod pages_tests {
    use super::*;
    use crate::limits::FRAME_BYTES_MAX;
    use crate::wire::RecordFields;
    use crate::{FoundingMessage, PeerId, Time};

    #[test]
    fn lists_of_long_records_fit_into_frames() {
        let record = |id: u8| {
            PeerRecord::from(RecordFields {
                peer: PeerId::from_bytes([id; 32]),
                run: RunId::from_bytes([1; 32]),
                sequence: 1,
                expires: Time::ZERO,
                addresses: vec![vec![0; 256]; 16],
                locality: crate::Locality::default(),
                signature: vec![0; 64],
            })
        };
        let records: Vec<PeerRecord> = (0..63).map(record).collect();
        let lists = in_messages(&records);
        assert_eq!(lists.concat(), records, "none is lost");
        for list in lists {
            let bytes = crate::wire::encode(&FoundingMessage::Here(list).into()).len();
            assert!(bytes <= FRAME_BYTES_MAX, "{bytes}");
        }
        assert!(in_messages(&[]).is_empty());
    }
}
