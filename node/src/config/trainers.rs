//! The trainers of a daemon: several of one machine as one peer (`[island]`), and one in another process. A strategy
//! that needs what they cannot do is refused here, with the reason.

use super::error::Wrong;
use super::raw::RawIsland;
use murmurate_protocol::Layers;
use murmurate_strategies::RANKS_MAX;
use murmurate_strategies::grid::Strategy;
use murmurate_tasks::TaskConfig;

/// `[island]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IslandConfig {
    /// Number of trainers of this daemon.
    pub ranks: u32,
}

impl IslandConfig {
    /// What to say at the start, if there is more than one trainer.
    pub fn note(self) -> Option<String> {
        let ranks = self.ranks;
        (ranks > 1).then(|| format!("this peer is an island of {ranks} ranks"))
    }
}

/// Reads and checks the table.
pub(super) fn island(raw: &RawIsland, strategy: &Strategy) -> Result<IslandConfig, Wrong> {
    let ranks = raw.ranks;
    if !(1..=RANKS_MAX).contains(&ranks) {
        let message = format!(
            "`island.ranks` is {ranks}: give 1, for one trainer, to {RANKS_MAX}, for as many that sum here"
        );
        return Err(Wrong::new("island.ranks", message));
    }
    let kind = strategy.correction_kind();
    if ranks > 1 && kind.keeps_momentum() {
        let message = format!(
            "`island.ranks` is {ranks}, but preset {} has `strategy.inner.correction` = \"{}\", which keeps a \
             momentum of every inner step of one trainer (set ranks = 1, or take another correction)",
            strategy.name(),
            kind.name()
        );
        return Err(Wrong::new("island.ranks", message));
    }
    Ok(IslandConfig { ranks })
}

pub(super) fn check_attached(task: &TaskConfig, strategy: &Strategy) -> Result<(), Wrong> {
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
