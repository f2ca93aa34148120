//! When a round exchanges which fragments. What is done with the result is the Executor's business.

use crate::limits::FRAGMENTS_MAX;
use crate::plan::{Contribution, Plan};
use crate::{FragmentId, Pace, Round, StepBudget};
use serde::{Deserialize, Serialize};

/// How exchanges and training lie over each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlapPlan {
    /// In how many rounds every fragment is exchanged once: round r exchanges the fragments f with
    /// `f mod stagger == r mod stagger`. One is all in every round.
    pub stagger: u16,
    /// Inner steps of the next round that are taken while a round's exchange is under way: its result is
    /// put in force exactly so many after the cut. Zero is between rounds.
    pub late_steps: u32,
}

impl OverlapPlan {
    /// Everything is exchanged in every round, between one round's training and the next.
    pub const NONE: Self = Self {
        stagger: 1,
        late_steps: 0,
    };

    /// Whether a round exchanges a fragment.
    pub const fn exchanges(self, round: Round, fragment: FragmentId) -> bool {
        let stagger = if self.stagger == 0 { 1 } else { self.stagger };
        round.0 % stagger as u64 == (fragment.0 % stagger) as u64
    }
}

impl Default for OverlapPlan {
    fn default() -> Self {
        Self::NONE
    }
}

/// Why fragments cannot be exchanged when a plan says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OverlapError {
    /// Rounds without a fragment.
    #[error(
        "fragments are exchanged over {stagger} rounds, and there are {fragments} of them: every \
         round needs one, give a stagger of 1 to {fragments}"
    )]
    Stagger {
        /// The plan's.
        stagger: u16,
        /// The fragments.
        fragments: usize,
    },
    /// A fragment whose round it is not has no agreed anchor to wait at.
    #[error(
        "staggered fragments keep their deltas for a later round, which takes deltas of an anchor \
         that the peers of a round agree on: use a stagger of 1"
    )]
    Unagreed,
    /// More inner steps than a round has, or none that can be counted.
    #[error(
        "a result that is {late_steps} inner steps late needs rounds of at least as many: give \
         late_steps from 0 to the round's inner steps, no round time, and a steady pace"
    )]
    Late {
        /// The plan's.
        late_steps: u32,
    },
    /// A late result without an anchor to come back to.
    #[error(
        "a late result replaces an anchor that the peers of a round agree on: use late_steps = 0 here"
    )]
    LateUnagreed,
}

impl OverlapPlan {
    /// Checks that it goes with the rest of a plan.
    pub(crate) fn validate(self, plan: &Plan) -> Result<(), OverlapError> {
        let (stagger, fragments) = (self.stagger, plan.fragments.len());
        if stagger == 0 || usize::from(stagger) > fragments.min(FRAGMENTS_MAX) {
            return Err(OverlapError::Stagger { stagger, fragments });
        }
        let agreed = plan.exchange.agrees() && plan.contribution == Contribution::Delta;
        if stagger > 1 && !agreed {
            return Err(OverlapError::Unagreed);
        }
        let late_steps = self.late_steps;
        if late_steps > 0 && !plan.exchange.agrees() {
            return Err(OverlapError::LateUnagreed);
        }
        let steady = plan.synchronization.pace == Pace::Steady;
        match plan.budget {
            StepBudget::Steps(steps) if late_steps == 0 || (late_steps <= steps && steady) => {}
            StepBudget::Time(_) if late_steps == 0 => {}
            _ => return Err(OverlapError::Late { late_steps }),
        }
        Ok(())
    }
}

impl Plan {
    /// Whether the next round's training begins before this round's result is in force. Not after the
    /// last round: nothing comes after it.
    pub const fn trains_ahead(&self, round: Round) -> bool {
        let more = self.rounds == 0 || round.0.saturating_add(1) < self.rounds;
        self.overlap.late_steps > 0 && more
    }

    /// The fragments that a round exchanges, in order.
    pub fn fragments_of(&self, round: Round) -> impl Iterator<Item = FragmentId> + use<> {
        let overlap = self.overlap;
        self.fragment_ids()
            .filter(move |fragment| overlap.exchanges(round, *fragment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fragment_has_its_turn_once_in_a_cycle() {
        let overlap = OverlapPlan {
            stagger: 4,
            ..OverlapPlan::NONE
        };
        for fragment in (0..11).map(FragmentId) {
            let turns: Vec<u64> = (0..12)
                .filter(|round| overlap.exchanges(Round(*round), fragment))
                .collect();
            let first = u64::from(fragment.0 % 4);
            assert_eq!(turns, [first, first + 4, first + 8]);
        }
    }
}
