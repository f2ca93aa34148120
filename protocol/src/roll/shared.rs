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

/// Adds to a list of bounded length; what is no longer held goes first, then the oldest.
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

    /// [`Roll::after`], for a change whose bytes are `note`.
    pub(crate) fn after(
        &self,
        roll: &Arc<Roll>,
        (change, note): (&RollChange, &[u8]),
        round: Round,
    ) -> Arc<Roll> {
        let note = Digest::of(note);
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
