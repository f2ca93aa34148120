//! What an attached trainer cannot do: a strategy that needs it is refused here, with the reason.

use super::wrong::Wrong;
use murmurate_protocol::Layers;
use murmurate_strategies::grid::Strategy;
use murmurate_tasks::TaskConfig;

/// Checks that an attached trainer can do what the strategy asks for.
pub(super) fn check(task: &TaskConfig, strategy: &Strategy) -> Result<(), Wrong> {
    if !matches!(task, TaskConfig::Attached(_)) {
        return Ok(());
    }
    let preset = strategy.name();
    let kind = strategy.correction_kind();
    if !kind.leaves_gradients() {
        let message = format!(
            "preset {preset} has `strategy.inner.correction` = \"{}\", which changes the gradient of \
             every inner step; an attached trainer steps by itself (set correction = \"none\", or \
             take another preset)",
            kind.name()
        );
        return Err(Wrong::new("strategy.inner.correction", message));
    }
    if strategy.overlap_plan().layers != Layers::Together {
        let message = format!(
            "preset {preset} sends gradients layer by layer with `strategy.overlap.layers`; an attached \
             trainer hands its gradient over whole (set layers = \"together\", or take another preset)"
        );
        return Err(Wrong::new("strategy.overlap.layers", message));
    }
    Ok(())
}
