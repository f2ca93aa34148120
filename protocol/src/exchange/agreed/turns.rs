//! Whose turn it is to propose a group, and when: after a group that failed another member proposes, and
//! attempts wait longer and longer.

use super::electorate::signs;
use crate::core::context::Context;
use crate::{PeerId, Time};
use core::time::Duration;
use std::collections::BTreeSet;

/// The turns of one round.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Members whose turn is over: in this attempt, and in this round where members sign.
    over: BTreeSet<PeerId>,
    /// Before then no group is formed, because attempts failed.
    pause: Time,
    /// When those that are missing are given up.
    deadline: Time,
}

impl Turns {
    /// All have their turn again.
    pub(super) fn forget(&mut self) {
        self.over.clear();
    }

    /// An attempt begins, after others that failed. Gives the time of the next look.
    pub(super) fn begin(&mut self, cx: &Context, failed: u64, deadline: Time) -> Time {
        if !signs(cx) {
            self.over.clear();
        }
        let pause = match failed {
            _ if !signs(cx) => Duration::ZERO,
            0 | 1 => Duration::ZERO,
            failed => cx.deadlines.answer() / 8 * (1 << (failed - 2).min(4)),
        };
        (self.pause, self.deadline) = (cx.now + pause, deadline);
        match pause.is_zero() {
            true => deadline,
            false => self.pause.min(deadline),
        }
    }

    /// Whether no group is formed yet.
    pub(super) fn pauses(&self, now: Time) -> bool {
        now < self.pause
    }

    /// Whether this is a look before those that are missing are given up.
    pub(super) fn only_paused(&self, now: Time) -> bool {
        now < self.deadline
    }

    /// When those that are missing are given up.
    pub(super) const fn deadline(&self) -> Time {
        self.deadline
    }

    /// The turn of a member is over.
    pub(super) fn over(&mut self, proposer: Option<PeerId>) {
        self.over.extend(proposer);
    }

    /// What a member proposes is refused here, so it is another one's turn.
    pub(super) fn refuse(&mut self, cx: &Context, proposer: PeerId) {
        if signs(cx) {
            self.over.insert(proposer);
        }
    }

    /// Whether a member's turn is over.
    pub(super) fn is_over(&self, peer: PeerId) -> bool {
        self.over.contains(&peer)
    }
}
