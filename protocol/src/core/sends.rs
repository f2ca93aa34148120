//! Sends that go one after another, in the order that a schedule found for them.
//!
//! A send begins when no other is under way, or while those under way and itself are within a window of bytes;
//! the first in the order begins first. Other pushes do not wait and are not waited for.

use crate::schedule::SENDS_WAITING_MAX;
use crate::{FragmentId, PeerId, Round, SliceId, SliceMeta, Time};
use core::time::Duration;
use std::collections::BTreeMap;

/// When a send's turn is: earlier rounds first, then what its fragment's place says, then its place in the
/// schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SendTurn {
    pub(crate) round: Round,
    pub(crate) needed: u8,
    pub(crate) fragment: FragmentId,
    /// Its place among its sender's sends of the fragment.
    pub(crate) place: u16,
}

/// A send that waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Waiting {
    pub(crate) meta: SliceMeta,
    pub(crate) priority: u8,
    /// Bytes that may be under way together with it.
    pub(crate) window: u64,
}

/// A send with its receiver.
pub(crate) type Due = (PeerId, SliceId, Waiting);

/// Sends that wait, and those under way.
#[derive(Debug, Default)]
pub(crate) struct Sends {
    waiting: BTreeMap<(SendTurn, PeerId, SliceId), Waiting>,
    under_way: BTreeMap<(PeerId, SliceId), (Time, u64)>,
}

impl Sends {
    pub(crate) fn add(&mut self, turn: SendTurn, to: PeerId, slice: SliceId, send: Waiting) {
        self.waiting.insert((turn, to, slice), send);
    }

    pub(crate) fn ended(&mut self, to: PeerId, slice: SliceId) {
        self.under_way.remove(&(to, slice));
    }

    /// The next send that may begin. One that has not been answered for `longest` is not waited for.
    pub(crate) fn next(&mut self, now: Time, longest: Duration) -> Option<Due> {
        self.under_way
            .retain(|_, (began, _)| *began + longest > now);
        let first = self.waiting.first_entry()?;
        let bytes: u64 = self.under_way.values().map(|(_, bytes)| bytes).sum();
        let send = *first.get();
        let fits = bytes.saturating_add(send.meta.bytes) <= send.window;
        if !self.under_way.is_empty() && !fits && self.waiting.len() <= SENDS_WAITING_MAX {
            return None;
        }
        let ((_, to, slice), send) = self.waiting.pop_first()?;
        self.under_way.insert((to, slice), (now, send.meta.bytes));
        Some((to, slice, send))
    }

    /// A peer's link is gone: sends to it that are under way are not waited for, and the others are dropped.
    pub(crate) fn link_gone(&mut self, peer: PeerId) {
        self.under_way.retain(|(to, _), _| *to != peer);
        self.waiting.retain(|(_, to, _), _| *to != peer);
    }

    /// Takes the sends that wait and are not to wait any more.
    pub(crate) fn take(&mut self, of: impl Fn(&SliceId) -> bool) -> Vec<Due> {
        let taken = self.waiting.extract_if(.., |(_, _, slice), _| of(slice));
        taken
            .map(|((_, to, slice), send)| (to, slice, send))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::tests::peer;
    use crate::{Attempt, GroupTag, Part, Tag};

    fn slice(fragment: u16, shard: u16) -> SliceId {
        SliceId {
            round: Round(1),
            fragment: FragmentId(fragment),
            part: Part::Contribution,
            shard,
            origin: peer(0),
            attempt: Attempt::default(),
        }
    }

    fn add(sends: &mut Sends, place: u16, bytes: u64, window: u64) {
        let turn = SendTurn {
            round: Round(1),
            needed: 0,
            fragment: FragmentId(0),
            place,
        };
        let tag = Tag::Contribution {
            group: GroupTag::from_bits(1),
        };
        let send = Waiting {
            meta: SliceMeta { of: 9, bytes, tag },
            priority: 1,
            window,
        };
        sends.add(turn, peer(place as u8), slice(0, place), send);
    }

    const LONG: Duration = Duration::from_secs(60);

    fn begin(sends: &mut Sends, now: u64) -> Vec<u16> {
        let next = || sends.next(Time::from_nanos(now), LONG);
        std::iter::from_fn(next)
            .map(|(_, slice, _)| slice.shard)
            .collect()
    }

    #[test]
    fn what_is_on_its_way_to_a_peer_that_is_gone_is_not_waited_for() {
        let mut sends = Sends::default();
        for place in [1, 2, 3] {
            add(&mut sends, place, 100, 0);
        }
        assert_eq!(begin(&mut sends, 1), [1]);
        sends.link_gone(peer(2));
        assert_eq!(begin(&mut sends, 1), [] as [u16; 0], "another one waits");
        sends.link_gone(peer(1));
        assert_eq!(begin(&mut sends, 1), [3]);
    }

    #[test]
    fn one_begins_after_another_in_the_order_of_places() {
        let mut sends = Sends::default();
        for place in [3, 1, 2] {
            add(&mut sends, place, 100, 0);
        }
        assert_eq!(begin(&mut sends, 1), [1]);
        assert_eq!(begin(&mut sends, 1), [] as [u16; 0]);
        add(&mut sends, 0, 100, 0);
        sends.ended(peer(1), slice(0, 1));
        assert_eq!(begin(&mut sends, 1), [0], "it came later and is first");
        sends.ended(peer(7), slice(0, 7));
        assert_eq!(begin(&mut sends, 1), [] as [u16; 0], "another push ended");
    }

    #[test]
    fn short_ones_share_a_window() {
        let mut sends = Sends::default();
        for place in 0..5 {
            add(&mut sends, place, 100, 250);
        }
        assert_eq!(begin(&mut sends, 1), [0, 1]);
        sends.ended(peer(0), slice(0, 0));
        assert_eq!(begin(&mut sends, 1), [2]);
    }

    #[test]
    fn one_that_is_never_answered_does_not_stop_the_others() {
        let mut sends = Sends::default();
        add(&mut sends, 0, 100, 0);
        add(&mut sends, 1, 100, 0);
        assert_eq!(begin(&mut sends, 1), [0]);
        assert_eq!(begin(&mut sends, LONG.as_nanos() as u64 + 1), [1]);
    }

    #[test]
    fn those_of_a_fragment_can_be_taken_and_too_many_do_not_wait() {
        let mut sends = Sends::default();
        for place in 0..4 {
            add(&mut sends, place, 100, 0);
        }
        let taken = sends.take(|slice| slice.shard % 2 == 1);
        let taken: Vec<u16> = taken.into_iter().map(|(_, slice, _)| slice.shard).collect();
        assert_eq!(taken, [1, 3]);
        assert_eq!(begin(&mut sends, 1), [0]);
        for place in 10..12 + SENDS_WAITING_MAX as u16 {
            add(&mut sends, place, 100, 0);
        }
        assert_eq!(begin(&mut sends, 1), [2, 10, 11]);
    }
}
