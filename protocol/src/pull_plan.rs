//! What peers that pull agree on beside the topology: how old an answer may be, for whom a round
//! waits, and when all mix with all.

use crate::Round;
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

    /// The oldest round of which an answer to a question of `round` may be.
    pub const fn oldest(&self, round: Round) -> Round {
        match self.syncs(round) {
            true => round,
            false => Round(round.0.saturating_sub(self.staleness as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
