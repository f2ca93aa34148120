//! When a round exchanges which fragments. The Executor decides what to do with the result.

use crate::limits::WINDOW_FRAGMENTS_MAX;
use crate::{FragmentId, Round};
use serde::{Deserialize, Serialize};

/// When the fragments of a round's gradient leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Layers {
    /// All together, after the backward pass.
    #[default]
    Together,
    /// Each fragment as soon as the backward pass has computed it, the last one first: wait-free
    /// backpropagation.
    ///
    /// **Source:** Zhang et al., Poseidon, USENIX ATC 2017, section 3.1.
    AsReady,
    /// As `AsReady`, but fragments that the next forward pass needs first overtake the others.
    ///
    /// **Source:** Peng et al., ByteScheduler, SOSP 2019, section 4; Jayarajan et al., P3, MLSys
    /// 2019.
    ByPriority,
    /// As `ByPriority`, and the next forward pass begins with the layers whose fragments are
    /// decided, while the others are still exchanged.
    ///
    /// **Source:** as `ByPriority`; Hashemi et al., TicTac, MLSys 2019.
    IntoForward,
    /// As `IntoForward`, but the two halves of an exchange have different orders: contributions go
    /// first, as the backward pass completes them, and aggregates behind them, as the next forward
    /// pass needs them.
    ///
    /// **Source:** Zhang et al., DeAR, ICDCS 2023, section III.
    Decoupled,
}

impl Layers {
    /// Fragments leave during the backward pass.
    pub const fn leave_early(self) -> bool {
        !matches!(self, Self::Together)
    }

    /// All fragments are exchanged at a time, so that one can overtake another.
    pub const fn overtake(self) -> bool {
        matches!(self, Self::ByPriority | Self::IntoForward | Self::Decoupled)
    }

    /// The next forward pass begins while fragments are still exchanged.
    pub const fn reach_forward(self) -> bool {
        matches!(self, Self::IntoForward | Self::Decoupled)
    }
}

/// How exchanges overlap with training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlapPlan {
    /// Number of rounds in which every fragment is exchanged once: round r exchanges the fragments
    /// f with `f mod stagger == r mod stagger`. With one, every round exchanges all fragments.
    pub stagger: u16,
    /// Inner steps of the next round that run during a round's exchange. The result is applied
    /// exactly this many inner steps after the cut; with zero, between two rounds.
    pub late_steps: u32,
    /// When the fragments of a gradient leave.
    pub layers: Layers,
}

impl OverlapPlan {
    /// Every round exchanges all fragments, between its training and that of the next round.
    pub const NONE: Self = Self {
        stagger: 1,
        late_steps: 0,
        layers: Layers::Together,
    };

    /// A round exchanges a fragment.
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

/// Why fragments cannot be exchanged at the times that a plan names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OverlapError {
    /// Some rounds would exchange no fragment.
    #[error(
        "a stagger of {stagger} leaves rounds without a fragment, because there are {fragments}: \
         give 1 to {fragments}"
    )]
    Stagger {
        /// The plan's stagger.
        stagger: u16,
        /// The number of fragments.
        fragments: usize,
    },
    /// A fragment that waits for its turn needs an agreed anchor.
    #[error(
        "staggered fragments keep deltas for a later round, which needs an exchange of deltas \
         whose peers agree on an anchor: use a stagger of 1"
    )]
    Unagreed,
    /// More late steps than a round has inner steps, or rounds whose inner steps vary.
    #[error(
        "late_steps = {late_steps} needs rounds of at least as many inner steps: give at most the \
         round's inner steps, no round time, and a steady pace"
    )]
    Late {
        /// The plan's late steps.
        late_steps: u32,
    },
    /// A late result needs an agreed anchor.
    #[error("late results need an exchange whose peers agree on an anchor: use late_steps = 0")]
    LateUnagreed,
    /// Fragments leave during the backward pass, but are no gradients, or the exchange takes all of
    /// them together.
    #[error(
        "fragments that leave during the backward pass must be gradients that peers agree on in \
         every round: use a contribution of gradients, a stagger of 1, late_steps = 0, and an \
         exchange whose peers agree"
    )]
    Layers,
    /// More fragments with priorities than may be exchanged at a time.
    #[error(
        "all {fragments} fragments are exchanged at a time by priority, and at most \
         {WINDOW_FRAGMENTS_MAX} may be: cut the model into fewer"
    )]
    Priorities {
        /// The plan's number of fragments.
        fragments: usize,
    },
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
