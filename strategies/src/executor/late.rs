//! Late results: what was agreed on meets parameters that have been trained meanwhile.

use super::mix_lane::{Local, MixLane};
use murmurate_protocol::{Contribution, FragmentId, OverlapPlan, Plan, Round};

/// What the trainer makes of a result that comes while it trains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Blend {
    /// What was trained since the cut goes on top of the new anchor:
    /// `theta' = a' + (theta - theta_cut)`. One round late that is Sun et al., "CO2" (ICLR 2024), and
    /// delayed DiLoCo.
    OwnProgress,
    /// As [`Blend::OwnProgress`], from an own part of the outer step that is put in force at the cut:
    /// `theta = a + e` there, `theta' = a' + (theta - a - e)` later, e the outer optimizer's step by the own share
    /// of the delta. Kale et al. (arXiv 2502.12996).
    Eager,
    /// `theta' = alpha theta + (1 - alpha) a'`, alpha in `[0, 1)`: Douillard et al., "Streaming DiLoCo with
    /// overlapping communication" (arXiv 2501.18512), equation of its section 2.2. At 0 what was trained
    /// meanwhile is given up.
    Alpha(f32),
}

/// How results are late in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Late {
    /// What the trainer makes of them.
    pub blend: Blend,
    /// Rounds in all; zero means until told to stop. Nothing is trained after the last one's cut.
    pub rounds: u64,
    /// Which fragments a round exchanges.
    pub overlap: OverlapPlan,
}

impl Late {
    /// As a plan has it, if it has.
    pub(super) fn new(blend: Blend, plan: &Plan) -> Option<Self> {
        let (rounds, overlap) = (plan.rounds, plan.overlap);
        (overlap.late_steps > 0).then_some(Self {
            blend,
            rounds,
            overlap,
        })
    }

    /// The share of the trainer's own values where they are mixed with the anchor's.
    pub(super) const fn own_share(self) -> f32 {
        match self.blend {
            Blend::OwnProgress | Blend::Eager => 1.0,
            Blend::Alpha(alpha) => alpha,
        }
    }
}

impl MixLane {
    /// How a round's result meets what the trainer has of a fragment; `None` where the trainer takes
    /// the anchor as it is: the last round's, gradients' and where nothing was trained on top of it.
    pub(super) fn late_in(&self, round: Round, fragment: FragmentId) -> Option<Late> {
        let late = self.late?;
        let last = late.rounds > 0 && round.0.saturating_add(1) >= late.rounds;
        let trained = self.contribution == Contribution::Delta && self.holds_delta(fragment);
        (trained && !last).then_some(late)
    }

    /// Moves the anchor by an aggregate while the trainer is ahead of the cut. With `keep_local` the
    /// contribution was not part of the round, and all of the trainer's way stays.
    pub(super) fn put_in_force_late(
        &mut self,
        late: Late,
        round: Round,
        fragment: FragmentId,
        aggregate: &mut [f32],
        keep_local: bool,
    ) {
        let (index, range) = (usize::from(fragment.0), self.range(fragment));
        let before = self.anchor[range.clone()].to_vec();
        self.step(round, range.clone(), aggregate);
        let mut held = self.local[index];
        let mut local = self.take_local();
        if let Some(eager) = &mut self.eager
            && eager.resolve(index, range.clone(), &mut local[range.clone()], keep_local)
            && keep_local
        {
            held = Local::Shift;
        }
        let moves = local[range.clone()].iter_mut();
        let moves = moves.zip(self.anchor[range].iter().zip(&before));
        self.local[index] = match (held, late.blend) {
            // Further rounds of a straggler, after those that it took over with all of its own way.
            (Local::Shift, _) if keep_local => {
                moves.for_each(|(shift, (after, before))| *shift += after - before);
                Local::Shift
            }
            (Local::Shift, _) => Local::TakeAnchor,
            _ if keep_local => {
                moves.for_each(|(local, (after, before))| *local = after - before);
                Local::Shift
            }
            (_, Blend::OwnProgress | Blend::Eager) => {
                moves.for_each(|(delta, (after, before))| *delta = after - (before + *delta));
                Local::Shift
            }
            (_, Blend::Alpha(_)) => Local::Blend,
        };
        self.put_local(local);
    }
}

impl Local {
    /// What the trainer is to do about a fragment, as a checkpoint holds it.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Untouched | Self::Contribution => 0,
            Self::TakeAnchor => 1,
            Self::KeepDelta => 2,
            Self::Shift => 3,
            Self::Blend => 4,
        }
    }

    /// From its code in a checkpoint.
    pub(super) const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Untouched),
            1 => Some(Self::TakeAnchor),
            2 => Some(Self::KeepDelta),
            3 => Some(Self::Shift),
            4 => Some(Self::Blend),
            _ => None,
        }
    }
}
