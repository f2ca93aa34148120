//! What overlap requires of a strategy's other choices.

use super::super::error::{refuse, refused};
use super::super::{Strategy, StrategyError};
use super::cuts::Cuts;
use super::{densities, timing};
use crate::compress::Reduction;
use crate::executor::Blend;
use crate::outer::StatePrecision;
use murmurate_protocol::{Contribution, Layers, Pace, StepBudget};

/// Refuses overlap that the strategy's other choices do not allow.
pub(in crate::grid) fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    late(strategy)?;
    eager(strategy)?;
    estimate(strategy)?;
    cut(strategy)?;
    layers(strategy)?;
    by_layer(strategy)?;
    stagger(strategy)
}

/// Refuses results that are applied late where no result can be late.
fn late(strategy: &Strategy) -> Result<(), StrategyError> {
    const KEY: &str = "overlap.late_steps";
    let late = strategy.overlap.plan.late_steps;
    if late == 0 {
        return Ok(());
    }
    refuse(
        !strategy.exchange().agrees(),
        KEY,
        "a late result replaces an anchor that peers agree on, and with this exchange there is none",
        "set it to 0, or use exchange = \"all-reduce\"; \"push\", \"pairs\" and mode = \"asp\" do not wait",
    )?;
    match strategy.budget() {
        StepBudget::Time(_) => refused(
            KEY,
            "a result is applied a fixed number of inner steps after the cut, but a time bounds them here",
            "set it to 0, or give `synchronization.inner_steps` instead of `round_time`",
        ),
        StepBudget::Steps(steps) if late > steps => refused(
            KEY,
            "a result that is more than a round late would come after the next one",
            "set it to at most `synchronization.inner_steps`",
        ),
        StepBudget::Steps(_) if strategy.synchronization().pace != Pace::Steady => refused(
            KEY,
            "a result is applied a fixed number of inner steps after the cut, but rounds change their length here",
            "set it to 0, or leave `synchronization.pace` out",
        ),
        StepBudget::Steps(_) if !strategy.correction_kind().is_none() => refused(
            KEY,
            "a correction towards the anchor would use the old one until the new one arrives",
            "set it to 0, or leave `inner.correction` out",
        ),
        StepBudget::Steps(_) => Ok(()),
    }
}

/// Refuses eager updates if a late result could not subtract the peer's own part again.
fn eager(strategy: &Strategy) -> Result<(), StrategyError> {
    const KEY: &str = "overlap.blend";
    if strategy.overlap.blend != Blend::Eager {
        return Ok(());
    }
    refuse(
        strategy.contribution() != Contribution::Delta,
        KEY,
        "a gradient contains no delta of this peer that could be applied at once",
        "use contribution = \"delta\", or leave `overlap.blend` out",
    )?;
    refuse(
        strategy.outer_state() != StatePrecision::F32,
        "outer.state",
        "eager updates need a linear outer optimizer, and rounding its momentum is not linear",
        "leave it out, or use blend = \"own-progress\"",
    )?;
    refuse(
        !strategy.outer_kind().is_linear(),
        KEY,
        "a peer's own part is applied separately, and this outer optimizer's answer to a sum is not the sum of its answers",
        "use outer optimizer \"nesterov\", \"slow-mo\" or \"average\", or blend = \"own-progress\"",
    )
}

/// Refuses estimates where a round is no half of an inner step's gradients.
fn estimate(strategy: &Strategy) -> Result<(), StrategyError> {
    const KEY: &str = "overlap.blend";
    let overlap = &strategy.overlap;
    if overlap.blend != Blend::Estimate {
        return Ok(());
    }
    refuse(
        strategy.contribution() != Contribution::Gradient,
        KEY,
        "an estimate is a step by the mean gradient of one half, and here peers exchange no gradients",
        "use contribution = \"gradient\", or leave `overlap.blend` out",
    )?;
    refuse(
        strategy.budget() != StepBudget::Steps(overlap.plan.late_steps),
        "overlap.late_steps",
        "the result of one half is applied when the gradients of the other half are complete, a whole round later",
        "set it to \"1/1\", or leave `overlap.blend` out",
    )?;
    refuse(
        strategy.inner_kind().sends_momenta(),
        "inner.sends",
        "a momentum is made of the common one, which the first half of a step does not move",
        "use \"gradients\", or leave `overlap.blend` out",
    )?;
    refuse(
        !strategy.companion().is_none(),
        KEY,
        "a companion has no optimizer whose step could be taken back",
        "leave `overlap.blend` out, or `inner.correction`",
    )
}

/// Refuses fragments of unequal lengths where they must be equal.
fn cut(strategy: &Strategy) -> Result<(), StrategyError> {
    let overlap = &strategy.overlap;
    let even = matches!(overlap.cuts, Cuts::Even(_));
    refuse(
        !even && (overlap.plan.stagger > 1 || !strategy.companion().is_none()),
        "overlap.cut",
        "staggered fragments, and those of a method with a companion, must have equal lengths",
        "use cut = \"even\"",
    )
}

/// Refuses gradients that leave during the backward pass where the whole is needed first.
fn layers(strategy: &Strategy) -> Result<(), StrategyError> {
    const KEY: &str = timing::LAYERS_KEY;
    let plan = strategy.overlap.plan;
    if plan.layers == Layers::Together {
        return Ok(());
    }
    refuse(
        strategy.contribution() != Contribution::Gradient,
        KEY,
        "only gradients can leave during the backward pass; parameters are complete when training ends",
        "use contribution = \"gradient\", or layers = \"together\"",
    )?;
    refuse(
        !strategy.exchange().agrees(),
        KEY,
        "a center applies whole gradients: all parts must come from one version of it",
        "use mode = \"bsp\", or layers = \"together\"",
    )?;
    refuse(
        plan.late_steps > 0,
        KEY,
        "with `late_steps` a gradient has a whole round to travel, and leaves in one piece",
        "set `overlap.late_steps` to 0, or use layers = \"together\"",
    )?;
    refuse(
        !strategy.companion().is_none(),
        KEY,
        "a companion is complete only when training ends",
        "use layers = \"together\"",
    )?;
    refuse(
        strategy.exchange().facts().shows_contributions && plan.layers == Layers::Decoupled,
        KEY,
        "whole contributions travel to all members, so the exchange has no second half to decouple",
        "use exchange = \"all-reduce\" or \"parameter-server\", or layers = \"into-forward\"",
    )
}

/// Refuses densities of layers where no layer is sent under the backward pass, or the codec has no density.
fn by_layer(strategy: &Strategy) -> Result<(), StrategyError> {
    if !strategy.overlap.has_densities() {
        return Ok(());
    }
    refuse(
        strategy.overlap.plan.layers == Layers::Together,
        densities::KEY,
        "a layer's density follows from the time in which the next one is computed, and here all leave after that",
        "set `overlap.layers` to \"as-ready\", or leave `overlap.density` out",
    )?;
    let mut codec = strategy.codec();
    let sums = matches!(
        codec.properties().reduction,
        Reduction::AfterDecoding | Reduction::WhileEncoded
    );
    refuse(
        !densities::takes(strategy.codec_kind()) || !sums || codec.gathering().is_some(),
        densities::KEY,
        "this codec does not keep a share of each layer's values for itself alone",
        "use codec \"top-k\" with a `density`, or leave `overlap.density` out",
    )
}

/// Refuses rounds that exchange only some of the fragments where the others would be lost.
fn stagger(strategy: &Strategy) -> Result<(), StrategyError> {
    const KEY: &str = "overlap.stagger";
    let overlap = &strategy.overlap;
    let stagger = usize::from(overlap.plan.stagger);
    if stagger == 1 {
        return Ok(());
    }
    refuse(
        !strategy.exchange().agrees(),
        KEY,
        "a fragment that a round leaves out keeps its anchor and delta, and here peers agree on no anchor",
        "set it to 1, or use exchange = \"all-reduce\", \"gathered\" or \"parameter-server\" with mode = \"bsp\"",
    )?;
    refuse(
        strategy.contribution() != Contribution::Delta,
        KEY,
        "the gradient of a fragment that a round leaves out would be lost: the next one is of another batch",
        "set it to 1, or use contribution = \"delta\"",
    )?;
    refuse(
        overlap.fragments().is_some_and(|count| count < stagger),
        KEY,
        "every round exchanges at least one fragment, and there are fewer fragments than this",
        "make `overlap.fragments` a multiple of it, or leave that out",
    )
}
