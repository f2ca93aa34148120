//! What an Executor is made of, beside its trainer.

use super::codecs::ByFragment;
use super::late::Late;
use super::masks::Secrets;
use super::mixers::Mixing;
use super::rules::Rules;
use crate::aggregate::Privacy;
use crate::correct::{Companion, Correction};
use crate::inner::InnerOptimizer;
use crate::outer::{OuterOptimizer, StoredOuter};
use murmurate_protocol::{Contribution, Layers, PlanHash};
use std::ops::Range;

/// What an Executor is made of, beside its trainer.
pub struct Parts {
    /// The plan's hash: states of other plans are refused.
    pub plan: PlanHash,
    /// What a contribution is.
    pub contribution: Contribution,
    /// What travels beside the parameters, behind them.
    pub companion: Companion,
    /// The ranges of the fragments in the parameters and their companion.
    pub fragments: Vec<Range<usize>>,
    /// Encode contributions.
    pub codecs: ByFragment,
    /// Set where what the codec leaves out is kept for the next round.
    pub error_feedback: bool,
    /// How the exchange combines contributions.
    pub mixing: Mixing,
    /// How training overlaps with the exchange.
    pub overlap: Overlap,
    /// Moves the anchor by an aggregated delta.
    pub outer: StoredOuter,
    /// Moves the anchor by an aggregated gradient; only for methods that exchange gradients.
    pub inner: Option<InnerOptimizer>,
    /// Corrects the gradients of the trainer's inner steps.
    pub correction: Option<Box<dyn Correction>>,
    /// The decay of a moving average of the anchor; `None` keeps none. It is this peer's own affair.
    pub ema: Option<f64>,
    /// The rates of inner steps, and which tensors decay.
    pub rules: Rules,
    /// How contributions are hidden before they leave.
    pub hidden: Hidden,
    /// Set where the trainer has nothing to do between the cut and the round's end, and its parameters are
    /// only read for contributions.
    pub leaves_trainer_free: bool,
}

/// How training overlaps with the exchange.
pub struct Overlap {
    /// When the fragments of a gradient leave.
    pub layers: Layers,
    /// Set where the trainer continues past the anchor between rounds.
    pub trains_ahead: bool,
    /// How late results meet the training since the cut; `None` where results come between rounds.
    pub late: Option<Late>,
    /// Makes this peer's part of the outer step, where the trainer starts from that before a late result.
    pub eager: Option<OuterOptimizer>,
}

/// How a peer's contributions are hidden before they leave it.
#[derive(Default)]
pub struct Hidden {
    /// They are clipped and noised, where the run promises privacy.
    pub noised: Option<Privacy>,
    /// They are masked: others can read their sums alone.
    pub masked: bool,
    /// The secrets of this peer. A host must give it before it makes an Executor that hides something.
    pub secrets: Option<Secrets>,
}
