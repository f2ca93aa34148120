//! Rolls that the peers of one process share. All peers of a swarm hold the same roll; where a
//! simulator runs thousands of them, a copy for each would fill the memory many times over.

use super::{Roll, RollChange, RollName};
use crate::limits::ROLLS_SHARED_MAX;
use crate::wire::PeerRecord;
use crate::{Digest, Round};
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
