//! `overlap.layers`: whether gradients leave during the backward pass.

use super::super::StrategyError;
use super::super::registry::LAYERS;
use super::super::tables::Overlap as Table;
use super::super::validate::choose;
use murmurate_protocol::Layers;

pub(super) const KEY: &str = "overlap.layers";

/// Reads `overlap.layers`.
pub(super) fn read(table: &Table) -> Result<Layers, StrategyError> {
    Ok(match choose(&table.layers, "together", KEY, &LAYERS)? {
        "as-ready" => Layers::AsReady,
        "by-priority" => Layers::ByPriority,
        "into-forward" => Layers::IntoForward,
        "decoupled" => Layers::Decoupled,
        _ => Layers::Together,
    })
}

/// Its name.
pub(super) fn name(layers: Layers) -> String {
    let name = match layers {
        Layers::Together => "together",
        Layers::AsReady => "as-ready",
        Layers::ByPriority => "by-priority",
        Layers::IntoForward => "into-forward",
        Layers::Decoupled => "decoupled",
    };
    name.to_owned()
}
