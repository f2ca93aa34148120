//! Which plans can work: the rules that combine an exchange with everything else in a plan.

use super::{Contribution, Plan};
use crate::limits::{FRAGMENTS_MAX, GROUP_MEMBERS_MAX, STATE_BYTES_MAX, WINDOW_FRAGMENTS_MAX};
use crate::{
    KindError, Layers, OverlapError, Pace, Quorum, Sampling, Schedule, StepBudget, Weighing,
};
use core::time::Duration;

/// Why a plan cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// It has no fragment, or more than the limit.
    #[error("the plan has {count} fragments; it needs 1 to {FRAGMENTS_MAX}")]
    Fragments {
        /// How many.
        count: usize,
    },
    /// A fragment without values.
    #[error("fragment {index} is empty")]
    EmptyFragment {
        /// Which.
        index: usize,
    },
    /// The budget is zero.
    #[error("a round without inner steps trains nothing: give at least one")]
    NoBudget,
    /// Gradients are those of exactly one inner step.
    #[error("a gradient is exchanged after every inner step: the budget must be one inner step")]
    GradientBudget,
    /// The pace reaches zero inner steps, or is combined with a time budget.
    #[error(
        "a pace changes a number of inner steps: give a budget in inner steps, and a pace that never reaches zero"
    )]
    Pace,
    /// Balanced rounds, but an exchange without agreement.
    #[error(
        "balanced rounds need an exchange whose peers agree, because only those say when they have trained: use one, or another pace"
    )]
    Balance,
    /// A pace by what members measure, but no one group that agrees on it.
    #[error(
        "a pace by what members measure needs one group without liars whose members agree on it: use an exchange with agreement, set `liars` to 0, or use another pace"
    )]
    Loss,
    /// A ladder of codecs, but no one group that agrees on waits between rounds of inner steps.
    #[error(
        "a codec is chosen by measured waits in one group without liars whose members agree and train between exchanges: give at least two codecs, each of which sends less than the one before, a budget in inner steps, late_steps = 0 and no pace by the loss"
    )]
    Ladder,
    /// Probability outside (0, 1], or an exchange that cannot skip peers.
    #[error(
        "sampling takes a probability above 0 and at most 1, a contribution of deltas, late_steps = 0, and an all-reduce along the butterfly or a parameter server in step"
    )]
    Sampling,
    /// A quorum, but an exchange without agreement.
    #[error(
        "a quorum needs an exchange whose peers agree: use one, or let every round wait for all peers"
    )]
    Quorum,
    /// Members that may lie, but an exchange without agreement.
    #[error(
        "only peers that agree survive liars: set `liars` to 0, or use an exchange with agreement"
    )]
    Liars,
    /// Two passes, but an exchange in which no owner reduces shards for one group that tells no lies.
    #[error(
        "two passes need one group without liars whose owners reduce shards: use an all-reduce along the butterfly or a parameter server in step"
    )]
    Passes,
    /// Weights that count inner steps, but contributions of another kind, or members that may lie.
    #[error(
        "weights count inner steps only of deltas in groups without liars: set `liars` to 0, or let them count samples"
    )]
    Weighing,
    /// Scores of contributions, but not one group without liars that gathers whole deltas.
    #[error(
        "contributions are scored where one group without liars gathers deltas of one fragment between rounds: set `liars` to 0, one fragment, stagger = 1 and late_steps = 0"
    )]
    Scoring,
    /// Sums of whole groups, but not one group without liars that contributes once, directly to owners.
    #[error(
        "masked contributions need one group without liars whose owners reduce shards: use an all-reduce along the butterfly or a parameter server in step"
    )]
    Whole,
    /// Neighbours mix parameters.
    #[error(
        "neighbours exchange parameters: their deltas and gradients diverge without an agreed anchor"
    )]
    GossipContribution,
    /// Peers that agree exchange deltas or gradients.
    #[error(
        "peers that agree exchange deltas or gradients relative to their anchor: use one of the two"
    )]
    AllReduceContribution,
    /// Parts that owners share, but another exchange than a parameter server in step, or too many.
    #[error(
        "only owners of a parameter server in step share parts, at most {GROUP_MEMBERS_MAX}: set `parts` to 0"
    )]
    Parts,
    /// An exchange in cells without cells, or cells of another exchange, or of too few or too many peers.
    #[error(
        "cells hold 2 to {GROUP_MEMBERS_MAX} peers that exchange parameters: use exchange = \"cells\" and no other with them"
    )]
    Cells,
    /// The numbers of the exchange.
    #[error(transparent)]
    Exchange(#[from] KindError),
    /// A schedule, but an exchange that follows none.
    #[error("only an all-reduce follows a schedule: use the default, the butterfly, elsewhere")]
    Schedule,
    /// Fragments cannot be exchanged when the plan says.
    #[error(transparent)]
    Overlap(#[from] OverlapError),
    /// The state is too large.
    #[error("a state of {bytes} bytes is above the limit of {STATE_BYTES_MAX}")]
    State {
        /// Its size.
        bytes: u64,
    },
    /// The deadlines are out of order.
    #[error("deadlines must satisfy 0 < floor <= initial <= ceiling")]
    Deadlines,
}

/// The error unless the rule holds.
fn ensure<E>(holds: bool, error: E) -> Result<(), E> {
    if holds { Ok(()) } else { Err(error) }
}

impl Plan {
    /// Checks that the plan can work.
    ///
    /// # Errors
    /// The first rule it breaks.
    pub fn validate(&self) -> Result<(), PlanError> {
        if self.fragments.is_empty() || self.fragments.len() > FRAGMENTS_MAX {
            return Err(PlanError::Fragments {
                count: self.fragments.len(),
            });
        }
        if let Some(index) = self.fragments.iter().position(|f| f.len == 0) {
            return Err(PlanError::EmptyFragment { index });
        }
        ensure(
            !matches!(
                self.budget,
                StepBudget::Steps(0) | StepBudget::Time(Duration::ZERO)
            ),
            PlanError::NoBudget,
        )?;
        let when = &self.synchronization;
        ensure(when.pace.fits(self.budget), PlanError::Pace)?;
        ensure(
            when.pace != Pace::Balanced || self.exchange.agrees(),
            PlanError::Balance,
        )?;
        ensure(
            !when.pace.is_agreed() || self.agrees_on_losses(),
            PlanError::Loss,
        )?;
        ensure(self.chooses_well(), PlanError::Ladder)?;
        let one = self.budget == StepBudget::Steps(1) && when.pace == Pace::Steady;
        ensure(
            self.contribution != Contribution::Gradient || one,
            PlanError::GradientBudget,
        )?;
        ensure(self.samples_well(), PlanError::Sampling)?;
        self.check_agreement()?;
        let facts = self.exchange.facts();
        match self.contribution {
            Contribution::Delta | Contribution::Gradient if facts.has_neighbours => {
                return Err(PlanError::GossipContribution);
            }
            Contribution::Delta | Contribution::Gradient if facts.deals_cells => {
                return Err(PlanError::Cells);
            }
            Contribution::Parameters if facts.agrees => {
                return Err(PlanError::AllReduceContribution);
            }
            _ => {}
        }
        let cell = self.agreement.grouping.cell();
        let holds = |cell| (2..=GROUP_MEMBERS_MAX).contains(&usize::from(cell));
        ensure(
            cell.is_some() == facts.deals_cells && cell.is_none_or(holds),
            PlanError::Cells,
        )?;
        self.exchange.check()?;
        ensure(
            facts.has_schedule || self.schedule == Schedule::Butterfly,
            PlanError::Schedule,
        )?;
        self.check_overlap()?;
        if self.state_bytes > STATE_BYTES_MAX {
            return Err(PlanError::State {
                bytes: self.state_bytes,
            });
        }
        let d = &self.deadlines;
        ensure(
            !d.floor.is_zero() && d.floor <= d.initial && d.initial <= d.ceiling,
            PlanError::Deadlines,
        )
    }

    fn check_agreement(&self) -> Result<(), PlanError> {
        let (agrees, direct) = (self.exchange.agrees(), self.reduces_directly());
        ensure(
            self.synchronization.quorum == Quorum::default() || agrees,
            PlanError::Quorum,
        )?;
        ensure(!self.agreement.signs() || agrees, PlanError::Liars)?;
        let passes = self.agreement.passes;
        ensure(!passes.are_two() || direct, PlanError::Passes)?;
        ensure(
            !self.agreement.whole || (!passes.are_two() && direct),
            PlanError::Whole,
        )?;
        let parts = usize::from(self.agreement.parts);
        let shared = self.exchange.owners().is_some() && agrees;
        ensure(
            parts == 0 || (shared && parts <= GROUP_MEMBERS_MAX),
            PlanError::Parts,
        )?;
        ensure(self.scores_well(), PlanError::Scoring)?;
        let deltas = self.contribution == Contribution::Delta && agrees;
        let counts = deltas && !self.agreement.signs() && !self.agreement.grouping.has_roll();
        ensure(
            self.agreement.weighing != Weighing::Steps || counts,
            PlanError::Weighing,
        )
    }

    /// Returns `true` if all peers know the loss, and the waits, that each member of a round has said.
    fn agrees_on_losses(&self) -> bool {
        let one_group = !self.agreement.grouping.has_roll() && !self.agreement.signs();
        self.exchange.agrees() && one_group
    }

    /// Returns `true` if rounds can choose their codec, or the plan has no ladder.
    fn chooses_well(&self) -> bool {
        let Some(ladder) = self.agreement.ladder else {
            return true;
        };
        let between = self.overlap.late_steps == 0 && self.overlap.layers == Layers::Together;
        // Members say one number with their contributions, and that pace has another one.
        let free = !matches!(self.synchronization.pace, Pace::Loss { .. });
        let counts = matches!(self.budget, StepBudget::Steps(_));
        ladder.fits() && self.agrees_on_losses() && between && free && counts
    }

    /// Returns `true` if members can score contributions, or the plan has no scoring.
    fn scores_well(&self) -> bool {
        let Some(scoring) = self.agreement.scoring else {
            return true;
        };
        let one_group = !self.agreement.grouping.has_roll() && !self.agreement.signs();
        let gathers = self.exchange.facts().shows_contributions && self.fragments.len() == 1;
        let between = self.overlap.late_steps == 0 && self.overlap.layers == Layers::Together;
        let deltas = self.contribution == Contribution::Delta;
        scoring.fits() && one_group && gathers && between && deltas
    }

    /// Returns `true` if members contribute directly to owners, in one group that tells no lies.
    fn reduces_directly(&self) -> bool {
        let reduces = self.exchange.agrees() && !self.exchange.facts().shows_contributions;
        let one_group = !self.agreement.grouping.has_roll() && !self.agreement.signs();
        reduces && one_group && self.schedule == Schedule::Butterfly
    }

    /// Returns `true` if all peers are drawn, or its exchange can leave out the others.
    fn samples_well(&self) -> bool {
        // A schedule passes sums on from member to member: leaving one out would break the chain.
        let apart = self.exchange.facts().may_leave_out && self.schedule == Schedule::Butterfly;
        let sampling = self.synchronization.sampling;
        let deltas = self.contribution == Contribution::Delta;
        let apart = apart && self.overlap.late_steps == 0;
        sampling.fits() && (sampling == Sampling::ALL || (apart && deltas))
    }

    /// Checks that fragments can be exchanged at the times of the plan.
    fn check_overlap(&self) -> Result<(), OverlapError> {
        let (stagger, fragments) = (self.overlap.stagger, self.fragments.len());
        if stagger == 0 || usize::from(stagger) > fragments.min(FRAGMENTS_MAX) {
            return Err(OverlapError::Stagger { stagger, fragments });
        }
        let agreed = self.exchange.agrees() && self.contribution == Contribution::Delta;
        if stagger > 1 && !agreed {
            return Err(OverlapError::Unagreed);
        }
        let late_steps = self.overlap.late_steps;
        if late_steps > 0 && !self.exchange.agrees() {
            return Err(OverlapError::LateUnagreed);
        }
        let steady = self.synchronization.pace == Pace::Steady;
        match self.budget {
            StepBudget::Steps(steps) if late_steps == 0 || (late_steps <= steps && steady) => {}
            StepBudget::Time(_) if late_steps == 0 => {}
            _ => return Err(OverlapError::Late { late_steps }),
        }
        self.check_layers()
    }

    /// Checks that fragments can leave under the backward pass, where the plan says so.
    fn check_layers(&self) -> Result<(), OverlapError> {
        if self.overlap.layers == Layers::Together {
            return Ok(());
        }
        let gradients = self.exchange.agrees() && self.contribution == Contribution::Gradient;
        if !gradients || self.overlap.stagger > 1 || self.overlap.late_steps > 0 {
            return Err(OverlapError::Layers);
        }
        let fragments = self.fragments.len();
        if self.overlap.layers.overtake() && fragments > WINDOW_FRAGMENTS_MAX {
            return Err(OverlapError::Priorities { fragments });
        }
        Ok(())
    }
}
