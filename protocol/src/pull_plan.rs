//! What peers that pull agree on beside the topology: how old an answer may be, for whom a round
//! waits, and when all mix with all.

use crate::Round;
use crate::limits::PULL_QUEUE_MAX;
use serde::{Deserialize, Serialize};

/// The bounds of an exchange in which peers ask for what others published last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullPlan {
    /// Rounds that an answer may be behind the round in which it was asked for. A peer that has
    /// published nothing newer answers once it has.
    pub staleness: u32,
    /// Partners of a round that are not waited for once all others have answered.
    pub backup: u32,
    /// Rounds that a peer may be ahead of such a partner. Beyond that it waits for it, too.
    pub lead: u32,
    /// A peer that is this many rounds behind the others continues in their round; 0 is never.
    pub skip: u32,
    /// One in this many rounds is a mean over all peers of that round itself; 0 is none.
    pub sync_every: u32,
}

/// What a question is answered with, where it is not what the peer published last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PullAnswers {
    /// The iterate of the question's round, or the newest one before it. Peers keep a queue of
    /// iterates for that, and weigh an answer less for each round of its age.
    OfTheRound,
    /// The mean over the asker's group, which one of its members makes for all.
    GroupMean,
}

impl PullPlan {
    /// The largest bound, which is as good as none.
    pub const UNBOUNDED: u32 = 1_000_000;

    /// Without bounds: any answer will do, and all partners are waited for.
    pub const FREE: Self = Self {
        staleness: Self::UNBOUNDED,
        backup: 0,
        lead: Self::UNBOUNDED,
        skip: 0,
        sync_every: 0,
    };

    /// Whether a round is a mean over all peers.
    pub const fn syncs(&self, round: Round) -> bool {
        match round
            .0
            .saturating_add(1)
            .checked_rem(self.sync_every as u64)
        {
            Some(rest) => rest == 0,
            None => false,
        }
    }

    /// Rounds that an answer to a question of `round` may be behind it.
    pub const fn slack(&self, round: Round) -> u32 {
        match self.syncs(round) {
            true => 0,
            false => self.staleness,
        }
    }

    /// Rounds that a peer may be ahead of a partner that still asks it, where no deadline passes:
    /// one more than answers may be old, or the lead over a backup partner.
    pub const fn gap(&self) -> u32 {
        let waited = self.staleness.saturating_add(1);
        match self.backup > 0 && self.lead > waited {
            true => self.lead,
            false => waited,
        }
    }

    /// Iterates that a peer keeps where a question is answered with that of its round: its own and
    /// one for each round of the gap.
    pub const fn queue(&self) -> usize {
        let kept = self.gap().saturating_add(1) as usize;
        match kept > PULL_QUEUE_MAX {
            true => PULL_QUEUE_MAX,
            false => kept,
        }
    }

    /// The oldest round of which an answer to a question of `round` may be.
    pub const fn oldest(&self, round: Round) -> Round {
        Round(round.0.saturating_sub(self.slack(round) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_holds_what_the_slowest_partner_may_still_ask_for() {
        let bounds = |staleness, backup, lead| PullPlan {
            staleness,
            backup,
            lead,
            ..PullPlan::FREE
        };
        assert_eq!(bounds(0, 0, 9).queue(), 2);
        assert_eq!(bounds(3, 0, 9).queue(), 5);
        assert_eq!(bounds(0, 1, 6).queue(), 7);
        assert_eq!(bounds(8, 1, 6).queue(), 10);
        assert_eq!(PullPlan::FREE.queue(), PULL_QUEUE_MAX);
    }

    #[test]
    fn answers_may_be_as_old_as_the_bound_and_of_the_round_itself_where_all_mix() {
        let plan = PullPlan {
            staleness: 3,
            sync_every: 5,
            ..PullPlan::FREE
        };
        let oldest: Vec<u64> = (0..10).map(|round| plan.oldest(Round(round)).0).collect();
        assert_eq!(oldest, [0, 0, 0, 0, 4, 2, 3, 4, 5, 9]);
        assert_eq!(PullPlan::FREE.oldest(Round(999_999)), Round(0));
        assert!(!PullPlan::FREE.syncs(Round(0)));
    }
}
