//! Late results: what was agreed on meets parameters that have been trained meanwhile.

use super::mix_lane::{Local, MixLane};
use murmurate_protocol::{Contribution, FragmentId, Plan, Round};

/// What the trainer makes of a result that comes while it trains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Blend {
    /// What was trained since the cut goes on top of the new anchor:
    /// `theta' = a' + (theta - theta_cut)`. One round late that is Sun et al., "CO2" (ICLR 2024), and
    /// delayed DiLoCo.
    OwnProgress,
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
}

impl Late {
    /// As a plan has it, if it has.
    pub(super) fn new(blend: Blend, plan: &Plan) -> Option<Self> {
        let rounds = plan.rounds;
        (plan.overlap.late_steps > 0).then_some(Self { blend, rounds })
    }

    /// The share of the trainer's own values where they are mixed with the anchor's.
    pub(super) const fn own_share(self) -> f32 {
        match self.blend {
            Blend::OwnProgress => 1.0,
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
        let held = self.local[index];
        let mut local = self.take_local();
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
            (_, Blend::OwnProgress) => {
                moves.for_each(|(delta, (after, before))| *delta = after - (before + *delta));
                Local::Shift
            }
            (_, Blend::Alpha(_)) => Local::Blend,
        };
        self.put_local(local);
    }

    /// What the trainer is to do about each fragment, as a checkpoint holds it.
    pub(super) fn pending(&self) -> Vec<u8> {
        let codes = self.local.iter().map(|local| match local {
            Local::Untouched | Local::Contribution => 0,
            Local::TakeAnchor => 1,
            Local::KeepDelta => 2,
            Local::Shift => 3,
            Local::Blend => 4,
        });
        codes.collect()
    }
}

impl Local {
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
