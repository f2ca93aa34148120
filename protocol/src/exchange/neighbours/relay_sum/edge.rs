//! One neighbour and one fragment: its last message that counts, and those that wait.

use crate::limits::{
    PATIENCE_ROUNDS, RELAY_SUM_MISSES_MAX, RELAY_SUM_WAITING_MAX, ROUNDS_AHEAD_MAX,
};
use crate::{Round, SliceId};

/// A message of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Relayed {
    pub(super) slice: SliceId,
    /// How many peers' parameters it is the mean of.
    pub(super) count: u32,
    /// Set where its sender takes this peer for its parent. A message that goes down counts only
    /// where this peer takes the sender for its parent.
    pub(super) up: bool,
}

/// The messages of one neighbour, with counts since the last one.
#[derive(Debug, Default)]
pub(super) struct Edge {
    /// The message that counts, and the round in which it was first mixed.
    held: Option<(Relayed, Round)>,
    /// Messages that came since, ascending by round.
    waiting: Vec<Relayed>,
    /// Rounds in which it missed the deadline since it last sent something.
    pub(super) missed: u8,
    /// Messages made for it since it last sent one.
    pub(super) unanswered: u64,
}

impl Edge {
    /// A message arrives: gives the slice that is no longer needed.
    pub(super) fn arrive(&mut self, message: Relayed) -> Option<SliceId> {
        // Any message shows that it relays, however old it is.
        (self.missed, self.unanswered) = (0, 0);
        let slice = message.slice;
        let held = self.held.as_ref().map(|(held, _)| held);
        let known = self.waiting.iter().chain(held).any(|m| m.slice == slice);
        if known {
            return None; // it lies where the first does
        }
        if held.is_some_and(|held| held.slice.round >= slice.round) {
            return Some(slice);
        }
        let later = |m: &Relayed| m.slice.round <= slice.round;
        let at = self.waiting.partition_point(later);
        self.waiting.insert(at, message);
        (self.waiting.len() > RELAY_SUM_WAITING_MAX).then(|| self.waiting.remove(0).slice)
    }

    /// Its message of this round is waited for: it has sent before, but nothing of this round
    /// or a later one. If it is rounds behind, its next message is awaited after every mix. A peer
    /// that has sent nothing yet is not awaited, because it may not be a neighbour in its own view.
    ///
    /// So every peer waits only for peers in earlier rounds, and never in a circle.
    pub(super) fn awaited(&self, round: Round) -> bool {
        let held = self.held.as_ref().map(|(held, _)| held);
        let Some(newest) = self.waiting.last().or(held) else {
            return false;
        };
        // Also where the message of this round was mixed early.
        let ahead = newest.slice.round >= round;
        let come = ahead || (apart(newest.slice.round, round) && !self.waiting.is_empty());
        !come && self.missed < RELAY_SUM_MISSES_MAX
    }

    /// It has not answered for long, so it has another parent, or does not relay.
    pub(super) fn is_silent(&self) -> bool {
        self.held.is_none() && self.unanswered > PATIENCE_ROUNDS
    }

    /// It takes this peer for its parent, as far as is known.
    pub(super) fn is_child(&self) -> bool {
        let held = self.held.as_ref().map(|(held, _)| held);
        self.waiting.last().or(held).is_some_and(|m| m.up)
    }

    /// A round begins: gives the slices that no longer count, because their sender is not the
    /// parent (any more), or because nothing newer came for long.
    pub(super) fn expire(&mut self, is_parent: bool, round: Round) -> Vec<SliceId> {
        let counts = |m: &Relayed| m.up || is_parent;
        let old = |(held, since): &mut (Relayed, Round)| {
            !counts(held) || round.since(*since) > PATIENCE_ROUNDS
        };
        let expired = self.held.take_if(old);
        let mut free: Vec<SliceId> = expired.map(|(m, _)| m.slice).into_iter().collect();
        self.waiting.retain(|m| {
            let useless = !counts(m) && m.slice.round < round;
            if useless {
                free.push(m.slice);
            }
            !useless
        });
        free
    }

    /// The neighbour has another parent now, unless a message of this round says otherwise: gives
    /// all earlier slices.
    pub(super) fn part(&mut self, round: Round) -> Vec<SliceId> {
        let held = self.held.take().map(|(m, _)| m);
        let before = self.waiting.extract_if(.., |m| m.slice.round < round);
        before.chain(held).map(|m| m.slice).collect()
    }

    /// Takes the message of this round, else the newest, in place of the one that counted. Gives
    /// the slices that are no longer needed.
    pub(super) fn take(&mut self, is_parent: bool, round: Round) -> Vec<SliceId> {
        let counts = |m: &&Relayed| m.up || is_parent;
        let mut here = self.waiting.iter().filter(counts);
        // Where its sender skipped this round, the next one is the nearest to it.
        let this = |m: &&Relayed| m.slice.round >= round && !apart(m.slice.round, round);
        let current = here.clone().find(this);
        let Some(taken) = current.or_else(|| here.next_back()).copied() else {
            return Vec::new();
        };
        let mut free = Vec::new();
        self.waiting.retain(|m| {
            let past = m.slice.round <= taken.slice.round;
            if past && *m != taken {
                free.push(m.slice);
            }
            !past
        });
        let before = self.held.replace((taken, round));
        free.extend(before.map(|(m, _)| m.slice));
        free
    }

    /// The slice that counts, and how many peers' parameters it is the mean of.
    pub(super) fn held(&self) -> Option<(SliceId, u32)> {
        self.held.as_ref().map(|(m, _)| (m.slice, m.count))
    }

    /// A slice is bad: true where it counted, and no longer does.
    pub(super) fn forget(&mut self, slice: SliceId) -> bool {
        self.held.take_if(|(m, _)| m.slice == slice).is_some()
    }

    /// The neighbour is gone: gives all of its slices.
    pub(super) fn end(&mut self) -> Vec<SliceId> {
        let held = self.held.take().map(|(m, _)| m);
        let all = self.waiting.drain(..).chain(held);
        all.map(|m| m.slice).collect()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// Rounds are too far apart to say who waits for whom: one peer began earlier, or alone.
fn apart(one: Round, other: Round) -> bool {
    one.0.abs_diff(other.0) > ROUNDS_AHEAD_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FragmentId, Part, PeerId};

    fn slice(round: u64) -> SliceId {
        SliceId {
            round: Round(round),
            fragment: FragmentId(0),
            shard: 0,
            part: Part::Contribution,
            origin: PeerId::from_bytes([2; 32]),
            attempt: crate::Attempt(0),
        }
    }

    fn message(round: u64, up: bool) -> Relayed {
        Relayed {
            slice: slice(round),
            count: 3,
            up,
        }
    }

    #[test]
    fn the_message_of_the_round_comes_first_and_makes_older_ones_useless() {
        let mut edge = Edge {
            missed: RELAY_SUM_MISSES_MAX,
            ..Edge::default()
        };
        for round in [4, 6, 3] {
            assert_eq!(edge.arrive(message(round, true)), None);
        }
        assert!(edge.missed == 0 && edge.is_child());
        assert_eq!(edge.arrive(message(4, true)), None, "it is here already");
        assert!(!edge.awaited(Round(5)) && edge.awaited(Round(7)));
        assert!(!Edge::default().awaited(Round(0)), "it never sent anything");
        assert_eq!(edge.take(false, Round(4)), [slice(3)]);
        assert_eq!(edge.held(), Some((slice(4), 3)));
        assert_eq!(edge.arrive(message(4, true)), None);
        assert_eq!(edge.arrive(message(2, true)), Some(slice(2)), "it is past");
        // Of round 5 nothing came: the next one counts, and 4 no longer does.
        assert_eq!(edge.take(false, Round(5)), [slice(4)]);
        assert_eq!(edge.held(), Some((slice(6), 3)));
        // Its sender is a round ahead and waits: for the rounds between nothing of it is awaited.
        assert!(!edge.awaited(Round(6)) && edge.awaited(Round(7)));
        assert_eq!(edge.take(false, Round(6)), []);
        assert!(edge.forget(slice(6)) && !edge.forget(slice(6)));
    }

    #[test]
    fn what_is_late_counts_and_what_is_of_no_parent_or_of_long_ago_does_not() {
        let mut edge = Edge::default();
        edge.arrive(message(4, false));
        assert_eq!(edge.take(false, Round(4)), [], "it is not the parent");
        assert_eq!(edge.take(true, Round(5)), []);
        assert_eq!(edge.held(), Some((slice(4), 3)));
        assert!(!edge.is_child());
        assert_eq!(edge.expire(true, Round(9)), []);
        assert_eq!(edge.expire(true, Round(10)), [slice(4)]);
        edge.arrive(message(11, false));
        edge.take(true, Round(11));
        edge.arrive(message(12, false));
        assert_eq!(edge.expire(false, Round(12)), [slice(11)]);
        assert_eq!(edge.expire(false, Round(13)), [slice(12)]);
        assert_eq!(edge.held(), None);
    }

    #[test]
    fn of_one_that_is_rounds_behind_the_next_message_is_awaited() {
        let mut edge = Edge::default();
        edge.arrive(message(3, true));
        assert!(!edge.awaited(Round(50)));
        assert_eq!(edge.take(false, Round(50)), []);
        assert!(edge.awaited(Round(51)));
        edge.arrive(message(4, true));
        edge.arrive(message(5, true));
        assert!(!edge.awaited(Round(51)));
        assert_eq!(edge.take(false, Round(51)), [slice(4), slice(3)]);
        for _ in 0..RELAY_SUM_MISSES_MAX {
            assert!(edge.awaited(Round(52)));
            edge.missed += 1;
        }
        assert!(!edge.awaited(Round(52)), "it sends no more");
    }

    /// It may wait for this peer, or for one that does.
    #[test]
    fn one_that_is_ahead_is_never_waited_for_however_far() {
        for ahead in [1, 2, 3, 40] {
            let mut edge = Edge::default();
            edge.arrive(message(50 + ahead, true));
            assert_eq!(edge.take(false, Round(50)), []);
            for round in 51..=50 + ahead {
                assert!(!edge.awaited(Round(round)), "{ahead}");
            }
            assert!(edge.awaited(Round(51 + ahead)));
        }
    }

    #[test]
    fn what_waits_is_bounded_and_the_oldest_goes() {
        let mut edge = Edge::default();
        for round in 1..=RELAY_SUM_WAITING_MAX as u64 {
            assert_eq!(edge.arrive(message(round, round % 2 == 0)), None);
        }
        assert_eq!(edge.arrive(message(9, true)), Some(slice(1)));
        assert_eq!(edge.waiting(), RELAY_SUM_WAITING_MAX);
        assert_eq!(edge.end().len(), RELAY_SUM_WAITING_MAX);
        assert_eq!(edge.waiting(), 0);
    }
}
