//! Presets: named points of the grid, as configurations. Keys that they leave out have defaults.
//! Comments in each text say how it differs from its paper.

mod anchored;
mod neighbours;
mod preset;
mod scored;

use super::entry::hint;
use super::{StrategyError, later};
use anchored::ANCHORED;
use neighbours::NEIGHBOURS;
pub(super) use preset::Preset;
use scored::SCORED;

/// The preset of a configuration that names none.
pub const DEFAULT_PRESET: &str = "diloco";

/// Number of all presets.
const COUNT: usize = ANCHORED.len() + NEIGHBOURS.len() + SCORED.len();

/// All presets, the baseline first, then by family of exchanges, and those that came later.
pub(super) const ALL: [Preset; COUNT] = {
    let mut all = [ANCHORED[0]; COUNT];
    let mut at = 1;
    while at < COUNT {
        let behind = ANCHORED.len() + NEIGHBOURS.len();
        all[at] = match (at.checked_sub(ANCHORED.len()), at.checked_sub(behind)) {
            (_, Some(at)) => SCORED[at],
            (Some(at), None) => NEIGHBOURS[at],
            (None, None) => ANCHORED[at],
        };
        at += 1;
    }
    all
};

/// The configuration of a preset, as TOML.
///
/// # Errors
/// When there is no such preset, or no exchange for it yet.
pub fn preset(name: &str) -> Result<&'static str, StrategyError> {
    if let Some(found) = ALL.iter().find(|preset| preset.entry.name == name) {
        return Ok(found.text);
    }
    later::check("preset", name)?;
    let known: Vec<_> = ALL.iter().map(|preset| preset.entry.name).collect();
    Err(StrategyError::UnknownPreset {
        found: name.to_owned(),
        hint: hint(name, &known),
    })
}
