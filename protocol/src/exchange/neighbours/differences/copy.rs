//! The copy of one neighbour's parameters in one fragment: its progress, and the slices that move
//! it.

use crate::limits::DIFFERENCES_WAITING_MAX;
use crate::sorted::SortedMap;
use crate::{Attempt, Part, Round, SliceId};

/// What an arrived slice means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// It waits for the mix; these slices are no longer needed.
    Kept(Vec<SliceId>),
    /// It is here already.
    Repeated,
    /// The copy has it in it, or there is no room for it.
    Useless,
}

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Base {
    life: Attempt,
    next: u32,
    /// The slice that moved it last. It names the copy in a mix, so its bytes stay.
    last: SliceId,
}

/// Progress of one neighbour's copy, and the slices that wait to move it.
#[derive(Debug, Default)]
pub(super) struct Copy {
    base: Option<Base>,
    /// A whole copy that waits, and the number of the difference after it.
    whole: Option<(SliceId, u32)>,
    waiting: SortedMap<u32, SliceId>,
    /// The share that the neighbour offered last.
    pub(super) share: f64,
    /// Its link is gone, while a mix reads the copy.
    pub(super) gone: bool,
    /// Set at the end of a round in which the copy lacked its base.
    lacked: bool,
}

impl Copy {
    pub(super) fn take(&mut self, slice: SliceId, number: u32, share: f64) -> Came {
        let held = self.base.as_ref().map(|base| base.last);
        let whole = self.whole.as_ref().map(|(whole, _)| *whole);
        if self
            .waiting
            .values()
            .copied()
            .chain(held)
            .chain(whole)
            .any(|known| known == slice)
        {
            return Came::Repeated;
        }
        // The number of a whole copy is that of the difference after it.
        let past = |(life, next): (Attempt, u32)| life == slice.attempt && number < next;
        let reached = self.reached();
        if slice.part == Part::Aggregate {
            // A whole copy in which nothing is new is no repair either.
            if reached.is_some_and(past) || (reached == Some((slice.attempt, number))) {
                return Came::Useless;
            }
            let mut free: Vec<SliceId> = whole.into_iter().collect();
            let old =
                |at: &u32, waits: &mut SliceId| waits.attempt != slice.attempt || *at < number;
            free.extend(self.waiting.extract_if(.., old).map(|(_, waits)| waits));
            self.whole = Some((slice, number));
            (self.share, self.lacked) = (share, false);
            return Came::Kept(free);
        }
        let full = self.waiting.len() >= DIFFERENCES_WAITING_MAX;
        if reached.is_some_and(past) || full || self.waiting.contains_key(&number) {
            return Came::Useless;
        }
        self.waiting.insert(number, slice);
        self.share = share;
        Came::Kept(Vec::new())
    }

    /// The neighbour's life and next difference, once the whole copy that waits is taken in.
    fn reached(&self) -> Option<(Attempt, u32)> {
        let base = self.base.as_ref().map(|base| (base.life, base.next));
        let whole = self.whole.map(|(whole, next)| (whole.attempt, next));
        whole.or(base)
    }

    /// The slices that move the copy to its newest, in order; where none does, the one that moved
    /// it last. None where there is no copy.
    pub(super) fn ready(&self) -> Vec<SliceId> {
        let Some((life, first)) = self.reached() else {
            return Vec::new();
        };
        let whole = self.whole.map(|(whole, _)| whole);
        let next = (first..).map_while(|number| self.waiting.get(&number));
        let next = next.copied().take_while(|slice| slice.attempt == life);
        let mut slices: Vec<SliceId> = whole.into_iter().chain(next).collect();
        if slices.is_empty() {
            slices.extend(self.base.as_ref().map(|base| base.last));
        }
        slices
    }

    /// The copy is moved by all that was ready; gives the slices that are no longer needed. What
    /// has arrived since the order was given was not ready then.
    pub(super) fn moved(&mut self, taken: &[SliceId]) -> Vec<SliceId> {
        let Some(last) = taken.last().copied() else {
            return Vec::new();
        };
        let mut free = Vec::new();
        let before = self.base.take();
        let mut base = before.unwrap_or(Base {
            life: last.attempt,
            next: 0,
            last,
        });
        if let Some((whole, next)) = self.whole.take_if(|(whole, _)| taken.contains(whole)) {
            (base.life, base.next) = (whole.attempt, next);
            free.push(whole);
        }
        let done = |_: &u32, slice: &mut SliceId| taken.contains(slice);
        for (number, slice) in self.waiting.extract_if(.., done) {
            base.next = number.saturating_add(1);
            free.push(slice);
        }
        free.extend(before.map(|before| before.last));
        base.last = last;
        self.base = Some(base);
        free.retain(|slice| *slice != last);
        free
    }

    /// The neighbour should be asked for the whole copy: a round has passed in which there
    /// was no copy, or a difference was missing that others wait for.
    pub(super) const fn lacks_base(&self) -> bool {
        self.lacked
    }

    pub(super) fn round_over(&mut self) {
        let next = self.reached().map(|(_, next)| next);
        let gap = next.is_some_and(|next| {
            let mut waiting = self.waiting.keys();
            waiting.next().is_some_and(|first| *first > next)
        });
        self.lacked = next.is_none() || gap;
    }

    pub(super) fn newest(&self) -> Option<Round> {
        let whole = self.whole.map(|(whole, _)| whole);
        let last = self.base.map(|base| base.last);
        let waiting = self.waiting.values().copied();
        waiting
            .chain(whole)
            .chain(last)
            .map(|slice| slice.round)
            .max()
    }

    /// Drops the copy; gives all of its slices.
    pub(super) fn drop_all(&mut self) -> Vec<SliceId> {
        let waiting = core::mem::take(&mut self.waiting).into_values();
        let whole = self.whole.take().map(|(whole, _)| whole);
        let last = self.base.take().map(|base| base.last);
        self.lacked = true;
        waiting.chain(whole).chain(last).collect()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len() + usize::from(self.whole.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FragmentId, PeerId};

    fn named(round: u64, part: Part, life: u8) -> SliceId {
        SliceId {
            round: Round(round),
            fragment: FragmentId(0),
            shard: 0,
            part,
            origin: PeerId::from_bytes([2; 32]),
            attempt: Attempt(life),
        }
    }

    fn difference(round: u64) -> SliceId {
        named(round, Part::Contribution, 0)
    }

    fn whole(round: u64) -> SliceId {
        named(round, Part::Aggregate, 0)
    }

    /// A copy that was told whole in round 4, before difference 7.
    fn told() -> Copy {
        let mut copy = Copy::default();
        assert_eq!(copy.take(whole(4), 7, 0.3), Came::Kept(vec![]));
        let taken = copy.ready();
        assert_eq!(taken, [whole(4)]);
        assert_eq!(copy.moved(&taken), []);
        copy
    }

    #[test]
    fn only_the_next_difference_moves_a_copy() {
        let mut copy = told();
        assert_eq!(copy.take(difference(6), 8, 0.3), Came::Kept(vec![]));
        assert_eq!(copy.ready(), [whole(4)]);
        assert_eq!(copy.take(difference(5), 7, 0.3), Came::Kept(vec![]));
        assert_eq!(copy.take(difference(5), 7, 0.3), Came::Repeated);
        let taken = copy.ready();
        assert_eq!(taken, [difference(5), difference(6)]);
        // What comes while they are mixed waits for the next mix.
        assert_eq!(copy.take(difference(7), 9, 0.3), Came::Kept(vec![]));
        assert_eq!(copy.moved(&taken), [difference(5), whole(4)]);
        assert_eq!(copy.take(difference(6), 8, 0.3), Came::Repeated);
        assert_eq!(copy.take(difference(5), 7, 0.3), Came::Useless);
        assert_eq!(copy.ready(), [difference(7)]);
    }

    #[test]
    fn a_gap_is_asked_about_after_a_round_and_a_whole_copy_closes_it() {
        let mut copy = told();
        copy.round_over();
        assert!(!copy.lacks_base());
        copy.take(difference(6), 8, 0.3);
        assert!(!copy.lacks_base());
        copy.round_over();
        assert!(copy.lacks_base());
        assert_eq!(
            copy.take(whole(7), 10, 0.3),
            Came::Kept(vec![difference(6)])
        );
        assert!(!copy.lacks_base());
        copy.take(difference(8), 10, 0.3);
        let taken = copy.ready();
        assert_eq!(taken, [whole(7), difference(8)]);
        assert_eq!(copy.moved(&taken), [whole(7), whole(4)]);
        copy.round_over();
        assert!(!copy.lacks_base());
    }

    #[test]
    fn differences_of_another_life_do_not_move_a_copy() {
        let mut copy = told();
        let other = named(9, Part::Contribution, 1);
        copy.take(other, 7, 0.3);
        assert_eq!(copy.ready(), [whole(4)]);
        let again = named(10, Part::Aggregate, 1);
        assert_eq!(copy.take(again, 3, 0.3), Came::Kept(vec![]));
        assert_eq!(copy.ready()[0], again);
        assert_eq!(copy.ready().len(), 1);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut copy = told();
        for at in 0..DIFFERENCES_WAITING_MAX as u32 {
            let slice = difference(u64::from(20 + at));
            assert_eq!(copy.take(slice, 20 + at, 0.3), Came::Kept(vec![]));
        }
        assert_eq!(copy.take(difference(5), 7, 0.3), Came::Useless);
        assert_eq!(copy.drop_all().len(), DIFFERENCES_WAITING_MAX + 1);
        assert!(copy.lacks_base() && copy.waiting() == 0);
    }
}
