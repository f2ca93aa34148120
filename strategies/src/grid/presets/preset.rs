//! A preset as data.

use super::super::entry::{Entry, hint};
use super::super::{StrategyError, later};
use super::ALL;

/// A named point of the grid.
#[derive(Clone, Copy, Debug)]
pub(in crate::grid) struct Preset {
    /// Name, line, equation and source.
    pub(in crate::grid) entry: Entry,
    /// The configuration.
    pub(in crate::grid) text: &'static str,
}

/// A preset of its name, line, equation and source, and its configuration.
pub(super) const fn point(
    [name, summary, equation, source]: [&'static str; 4],
    text: &'static str,
) -> Preset {
    Preset {
        entry: Entry::new(name, summary, equation, source),
        text,
    }
}

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
