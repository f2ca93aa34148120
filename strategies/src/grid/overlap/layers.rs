//! Fragments that leave under the backward pass: what they need of the rest.

use super::super::registry::LAYERS;
use super::super::tables::Overlap as Table;
use super::super::validate::choose;
use super::super::{Strategy, StrategyError};
use super::cuts::Cuts;
use murmurate_protocol::{Contribution, Layers};

const KEY: &str = "overlap.layers";

/// Reads `overlap.layers`.
pub(super) fn read(table: &Table) -> Result<Layers, StrategyError> {
    Ok(match choose(&table.layers, "together", KEY, &LAYERS)? {
        "as-ready" => Layers::AsReady,
        "by-priority" => Layers::ByPriority,
        _ => Layers::Together,
    })
}

/// Its name.
pub(super) fn name(layers: Layers) -> String {
    let name = match layers {
        Layers::Together => "together",
        Layers::AsReady => "as-ready",
        Layers::ByPriority => "by-priority",
    };
    name.to_owned()
}

/// Refuses what the rest does not allow.
pub(super) fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    let overlap = strategy.overlap();
    let refused = |key, reason, remedy| {
        Err(StrategyError::Refused {
            key,
            reason,
            remedy,
        })
    };
    let even = matches!(overlap.cuts, Cuts::Even(_));
    if !even && (overlap.plan.stagger > 1 || !strategy.companion().is_none()) {
        return refused(
            "overlap.cut",
            "staggered fragments and those with a companion beside them are equally long",
            "use cut = \"even\"",
        );
    }
    if overlap.plan.layers == Layers::Together {
        return Ok(());
    }
    if strategy.contribution() != Contribution::Gradient {
        return refused(
            KEY,
            "what leaves under the backward pass is its gradient, and parameters are there only when training has ended",
            "use contribution = \"gradient\", or layers = \"together\"",
        );
    }
    if !strategy.exchange().agrees() {
        return refused(
            KEY,
            "a center takes whole gradients in: what it was pulled from must be one version",
            "use mode = \"bsp\", or layers = \"together\"",
        );
    }
    if overlap.plan.late_steps > 0 {
        return refused(
            KEY,
            "a gradient that is a round late has left whole before it is needed",
            "set `overlap.late_steps` to 0, or use layers = \"together\"",
        );
    }
    if !strategy.companion().is_none() {
        return refused(
            KEY,
            "a companion is there only when training has ended",
            "use layers = \"together\"",
        );
    }
    Ok(())
}
