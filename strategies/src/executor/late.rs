//! Late results: how an agreed anchor is combined with parameters that were trained further
//! meanwhile.

use murmurate_protocol::{OverlapPlan, Plan};

/// What the trainer does with a result that arrives while it trains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Blend {
    /// The training since the cut is added to the new anchor:
    /// `theta' = a' + (theta - theta_cut)`. One round late this is Sun et al., "CO2" (ICLR 2024),
    /// and delayed DiLoCo.
    OwnProgress,
    /// As [`Blend::OwnProgress`], but the trainer starts from this peer's part e of the outer step,
    /// the outer optimizer's step by this peer's share of the delta: `theta = a + e` at the cut,
    /// and `theta' = a' + (theta - a - e)` when the result arrives. Kale et al. (arXiv 2502.12996).
    Eager,
    /// For gradients, whose rounds are the two halves of inner steps: the result of a first half gives an
    /// estimate of the next parameters, and both halves together the parameters themselves. Nabli et al.,
    /// "ACCO" (arXiv 2406.02613).
    Estimate,
    /// `theta' = alpha theta + (1 - alpha) a'`, alpha in `[0, 1)`: Douillard et al., "Streaming
    /// DiLoCo with overlapping communication" (arXiv 2501.18512), equation of its section 2.2. At 0
    /// the training since the cut is dropped.
    Alpha(f32),
}

/// How late results are in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Late {
    /// What the trainer does with them.
    pub blend: Blend,
    /// Number of rounds; zero means until told to stop. Nothing is trained after the last round's
    /// cut.
    pub rounds: u64,
    /// Which fragments a round exchanges.
    pub overlap: OverlapPlan,
}

impl Late {
    /// As the plan says; `None` where its results are never late.
    pub fn new(blend: Blend, plan: &Plan) -> Option<Self> {
        let (rounds, overlap) = (plan.rounds, plan.overlap);
        (overlap.late_steps > 0).then_some(Self {
            blend,
            rounds,
            overlap,
        })
    }

    /// The share of the trainer's values where they are mixed with the anchor's.
    pub(super) const fn own_share(self) -> f32 {
        match self.blend {
            Blend::OwnProgress | Blend::Eager | Blend::Estimate => 1.0,
            Blend::Alpha(alpha) => alpha,
        }
    }
}
