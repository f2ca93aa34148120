//! When a round exchanges which fragments. What is done with the result is the Executor's business.

use crate::limits::{FRAGMENTS_MAX, WINDOW_FRAGMENTS_MAX};
use crate::plan::{Contribution, Plan};
use crate::{FragmentId, Pace, Round, StepBudget};
use core::ops::Range;
use serde::{Deserialize, Serialize};

/// When the fragments of a round's gradient leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Layers {
    /// All together, once the backward pass is over.
    #[default]
    Together,
    /// Each as soon as the backward pass has computed it, the last first: wait-free
    /// backpropagation.
    ///
    /// **Source:** Zhang et al., Poseidon, USENIX ATC 2017, section 3.1.
    AsReady,
    /// The same, and what the next forward pass needs first overtakes what it needs later.
    ///
    /// **Source:** Peng et al., ByteScheduler, SOSP 2019, section 4; Jayarajan et al., P3, MLSys
    /// 2019.
    ByPriority,
}

/// How exchanges and training lie over each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlapPlan {
    /// In how many rounds every fragment is exchanged once: round r exchanges the fragments f with
    /// `f mod stagger == r mod stagger`. One is all in every round.
    pub stagger: u16,
    /// Inner steps of the next round that are taken while a round's exchange is under way: its
    /// result is applied exactly this many after the cut. Zero is between rounds.
    pub late_steps: u32,
    /// When the fragments of a gradient leave.
    pub layers: Layers,
}

impl OverlapPlan {
    /// Everything is exchanged in every round, between one round's training and the next.
    pub const NONE: Self = Self {
        stagger: 1,
        late_steps: 0,
        layers: Layers::Together,
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
    /// Fragments that leave under a backward pass, of what is no gradient, or of an exchange that
    /// waits for all of them.
    #[error(
        "fragments leave under the backward pass where members of a group exchange gradients, in every \
         round and not late: use a contribution of gradients, a stagger of 1, late_steps = 0, and an \
         exchange in which peers agree"
    )]
    Layers,
    /// More fragments by priority than may be exchanged at a time.
    #[error(
        "{fragments} fragments by priority are exchanged all at a time, and {WINDOW_FRAGMENTS_MAX} may be: \
         cut into fewer"
    )]
    Priorities {
        /// The plan's.
        fragments: usize,
    },
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
        self.validate_layers(plan)
    }

    fn validate_layers(self, plan: &Plan) -> Result<(), OverlapError> {
        if self.layers == Layers::Together {
            return Ok(());
        }
        let gradients = plan.exchange.agrees() && plan.contribution == Contribution::Gradient;
        if !gradients || self.stagger > 1 || self.late_steps > 0 {
            return Err(OverlapError::Layers);
        }
        let fragments = plan.fragments.len();
        if self.layers == Layers::ByPriority && fragments > WINDOW_FRAGMENTS_MAX {
            return Err(OverlapError::Priorities { fragments });
        }
        Ok(())
    }
}

impl Plan {
    /// Where the fragments lie in the flat parameters and their companion.
    pub fn ranges(&self) -> Vec<Range<usize>> {
        let mut start = 0;
        let lens = self.fragments.iter().map(|fragment| fragment.len as usize);
        lens.map(|len| {
            start += len;
            start - len..start
        })
        .collect()
    }

    /// Whether the next round's training begins before this round's result is in force. Not after
    /// the last round: nothing comes after it.
    pub const fn trains_ahead(&self, round: Round) -> bool {
        let more = self.rounds == 0 || round.0.saturating_add(1) < self.rounds;
        self.overlap.late_steps > 0 && more
    }

    /// The fragments that a round exchanges, in the order in which they leave: the last first where
    /// they leave under the backward pass.
    pub fn fragments_of(&self, round: Round) -> impl Iterator<Item = FragmentId> + use<> {
        let (overlap, count) = (self.overlap, self.fragments.len() as u16);
        let backward = overlap.layers != Layers::Together;
        (0..count)
            .map(move |at| FragmentId(if backward { count - 1 - at } else { at }))
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
