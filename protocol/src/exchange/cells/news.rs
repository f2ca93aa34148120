//! Changes of places: those that a peer has heard of and passes on, and those that are not yet in force.

use crate::core::context::Context;
use crate::limits::{CELL_NEWS_BYTES_MAX, CELL_NEWS_MAX};
use crate::{Dealing, Roll, RollSeat, Round};
use std::sync::Arc;

/// Rounds until a change is in force beyond those in which it spreads, so that all peers know it by then.
const SLACK: u64 = 2;

/// Rounds ahead beyond which a change is not believed: there are at most 14 axes, and random cells spread it in
/// at most 20 rounds.
const FAR: u64 = 64;

/// A set of changes that only grows but for its bound: peers that exchange sets know the same changes, in
/// whatever order they meet.
#[derive(Debug, Default)]
pub(super) struct News {
    /// At most [`CELL_NEWS_MAX`].
    known: Vec<RollSeat>,
    /// Some of them may not have been put in force.
    fresh: bool,
}

impl News {
    /// Takes changes over; the oldest go where there is no room.
    pub(super) fn learn(&mut self, round: Round, changes: &[RollSeat]) {
        for change in changes {
            // One of a far round would stay for ever.
            let soon = change.since.since(round) <= FAR;
            if soon && !self.known.contains(change) {
                self.known.push(change.clone());
                self.fresh = true;
            }
        }
        if self.known.len() > CELL_NEWS_MAX {
            self.known
                .sort_by_key(|change| (std::cmp::Reverse(change.since), change.place));
            self.known.truncate(CELL_NEWS_MAX);
        }
    }

    /// What to tell the peers of a cell: what came into force within the last rounds, or will.
    pub(super) fn told(&self) -> Vec<RollSeat> {
        let mut bytes = 0;
        let fits = |change: &&RollSeat| {
            bytes += change.record.wire_bytes() + 16;
            bytes <= CELL_NEWS_BYTES_MAX
        };
        self.known.iter().filter(fits).cloned().collect()
    }

    /// A peer has a place, or will have one.
    pub(super) fn seat_of(&self, peer: crate::PeerId) -> Option<&RollSeat> {
        self.known.iter().find(|change| change.record.peer == peer)
    }

    /// A place will have another holder.
    pub(super) fn changes(&self, place: usize) -> bool {
        self.known.iter().any(|c| c.place as usize == place)
    }

    /// The first place behind those that are taken, now or soon.
    pub(super) fn free_place(&self, roll: &Roll) -> usize {
        let soon = self.known.iter().map(|change| change.place as usize + 1);
        soon.max().unwrap_or(0).max(roll.len())
    }

    /// The round from which a change that begins to spread now is in force.
    pub(super) fn in_force(cx: &Context, dealing: &Dealing) -> Round {
        Round(cx.round.0.saturating_add(dealing.spread() + SLACK))
    }

    /// A round begins: the changes that are due are in force, and old ones are forgotten.
    pub(super) fn turn(&mut self, cx: &mut Context, dealing: &Dealing) {
        let (round, kept) = (cx.round, 4 * (dealing.spread() + SLACK));
        let waits = |change: &RollSeat| change.since > round;
        // A roll of thousands is made again only if a change may be due.
        if let Some(roll) = cx.rolls.roll.clone().filter(|_| self.fresh) {
            let due = self.known.iter().filter(|c| !waits(c)).cloned().collect();
            if let Some(roll) = roll.seated(due) {
                let roll: Arc<Roll> = cx.rolls.shared.share(roll);
                cx.hold(Some(roll));
            }
        }
        self.fresh = self.known.iter().any(waits);
        self.known.retain(|change| round.since(change.since) < kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{PeerRecord, RecordFields};
    use crate::{PeerId, RunId, Time};

    fn record(id: u16) -> PeerRecord {
        let mut peer = [0; 32];
        peer[..2].copy_from_slice(&id.to_be_bytes());
        PeerRecord::from(RecordFields {
            peer: PeerId::from_bytes(peer),
            run: RunId::from_bytes([1; 32]),
            sequence: 0,
            expires: Time::NEVER,
            addresses: Vec::new(),
            signature: Vec::new(),
            locality: crate::Locality::default(),
        })
    }

    fn seat(place: u32, peer: u16, since: u64) -> RollSeat {
        RollSeat {
            place,
            record: record(peer),
            since: Round(since),
        }
    }

    #[test]
    fn what_is_learned_is_told_once_and_in_whatever_order_it_came() {
        let (one, two) = (seat(3, 50, 9), seat(4, 51, 10));
        let mut news = News::default();
        news.learn(Round(5), &[one.clone(), two.clone()]);
        news.learn(Round(5), &[two.clone(), one.clone()]);
        assert_eq!(news.told(), [one.clone(), two]);
        assert_eq!(news.seat_of(record(50).peer), Some(&one));
        assert!(news.changes(4) && !news.changes(5));
    }

    #[test]
    fn changes_are_bounded_and_those_of_far_rounds_are_not_believed() {
        let mut news = News::default();
        news.learn(Round(5), &[seat(3, 50, 5 + FAR + 1)]);
        assert!(news.told().is_empty());
        let many: Vec<RollSeat> = (0..200).map(|id| seat(u32::from(id), id, 6)).collect();
        news.learn(Round(5), &many);
        news.learn(Round(5), &[seat(7, 300, 8)]);
        assert!(news.told().len() <= CELL_NEWS_MAX);
        assert!(news.seat_of(record(300).peer).is_some(), "the newest stay");
    }

    #[test]
    fn newcomers_get_different_places_behind_the_last() {
        let roll = Roll::found((0..6).map(record), 4, Round(0));
        let mut news = News::default();
        assert_eq!(news.free_place(&roll), 6);
        news.learn(Round(5), &[seat(6, 50, 9)]);
        assert_eq!(news.free_place(&roll), 7);
    }
}
