//! Changes of places: those that a peer has heard of and passes on, and those that are not yet in force.

use crate::core::context::Context;
use crate::limits::{CELL_NEWS_BYTES_MAX, CELL_NEWS_MAX};
use crate::{Axes, Roll, RollSeat, Round};
use std::sync::Arc;

/// Rounds beyond one for each axis until a change is in force, so that all peers know it by then.
const SLACK: u64 = 2;

/// Rounds ahead beyond which a change is not believed: there are at most 14 axes.
const FAR: u64 = 64;

/// A set of changes that only grows but for its bound: peers that exchange sets know the same changes, in
/// whatever order they meet.
#[derive(Debug, Default)]
pub(super) struct News {
    /// At most [`CELL_NEWS_MAX`].
    known: Vec<RollSeat>,
    /// Whether some of them may not have been put in force.
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

    /// Whether a peer has a place, or will have one.
    pub(super) fn seat_of(&self, peer: crate::PeerId) -> Option<&RollSeat> {
        self.known.iter().find(|change| change.record.peer == peer)
    }

    /// Whether a place will have another holder.
    pub(super) fn changes(&self, place: usize) -> bool {
        self.known.iter().any(|c| c.place as usize == place)
    }

    /// The first place behind those that are taken, now or soon.
    pub(super) fn free_place(&self, roll: &Roll) -> usize {
        let soon = self.known.iter().map(|change| change.place as usize + 1);
        soon.max().unwrap_or(0).max(roll.len())
    }

    /// The round from which a change that begins to spread now is in force.
    pub(super) fn in_force(cx: &Context, axes: Axes) -> Round {
        Round(cx.round.0 + u64::from(axes.count()) + SLACK)
    }

    /// A round begins: the changes that are due are in force, and old ones are forgotten.
    pub(super) fn turn(&mut self, cx: &mut Context, axes: Axes) {
        let (round, kept) = (cx.round, 4 * (u64::from(axes.count()) + SLACK));
        let waits = |change: &RollSeat| change.since > round;
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
