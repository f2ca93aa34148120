//! What the mix lane keeps where training continues past the anchor.

use super::eager::Eager;
use super::late::{Blend, Late};
use murmurate_protocol::Round;

/// Late results and eager updates, as far as the plan has them.
pub(super) struct Ahead {
    /// Whether the trainer continues past the anchor between rounds.
    pub(super) trains_ahead: bool,
    /// How late results meet what was trained since the cut; `None` where results come between
    /// rounds.
    pub(super) late: Option<Late>,
    pub(super) eager: Option<Eager>,
}

impl Ahead {
    /// How a round's result meets training past the cut. `None` where the trainer takes the anchor
    /// as it is: after the last round nothing has been trained on top.
    pub(super) fn late_in(&self, round: Round) -> Option<Late> {
        let late = self.late?;
        let last = late.rounds > 0 && round.0.saturating_add(1) >= late.rounds;
        (!last).then_some(late)
    }

    /// How late results come, where the trainer starts from an eager update.
    pub(super) fn eagerly(&self) -> Option<Late> {
        self.late.filter(|late| late.blend == Blend::Eager)
    }

    /// The share of the trainer's values where they are mixed with the anchor's.
    pub(super) fn own_share(&self) -> f32 {
        self.late.map_or(0.0, Late::own_share)
    }

    /// Number of f32 it keeps.
    pub(super) fn len(&self) -> usize {
        self.eager.as_ref().map_or(0, Eager::len)
    }
}
