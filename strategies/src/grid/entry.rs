//! A method as shown to people (name, line, equation, source and keys).

use super::StrategyError;
use crate::parameter::Parameter;

/// One method by its name in the configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Its description, in a line.
    pub summary: &'static str,
    /// The rule, in a line.
    pub equation: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Keys that it shares with other methods.
    pub keys: &'static [Key],
    /// Keys of its own, in the table of the key that chooses it.
    pub parameters: &'static [Parameter],
}

/// A key that a method takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its full name, such as `outer.lr`.
    pub name: &'static str,
    /// The values that it may have, in the words of the refusal.
    pub range: &'static str,
    /// Its default as TOML; where there is none it must be given.
    pub default: Option<&'static str>,
    /// Its meaning.
    pub about: &'static str,
}

impl Entry {
    pub(super) const fn new(
        name: &'static str,
        summary: &'static str,
        equation: &'static str,
        source: &'static str,
    ) -> Self {
        Self {
            name,
            summary,
            equation,
            source,
            keys: &[],
            parameters: &[],
        }
    }

    pub(super) const fn with(self, keys: &'static [Key]) -> Self {
        Self { keys, ..self }
    }

    pub(super) const fn taking(self, parameters: &'static [Parameter]) -> Self {
        Self { parameters, ..self }
    }
}

impl Key {
    /// A value, or the default where there is none. Refuses one for which the range does not hold.
    pub(super) fn given(
        &self,
        value: Option<f64>,
        holds: impl Fn(f64) -> bool,
    ) -> Result<f64, StrategyError> {
        let usual = || self.default.and_then(|default| default.parse().ok());
        let value = value.or_else(usual).unwrap_or_default();
        if holds(value) {
            return Ok(value);
        }
        Err(StrategyError::range(self.name, value, self.range))
    }
}

pub(super) const fn key(
    name: &'static str,
    range: &'static str,
    default: &'static str,
    about: &'static str,
) -> Key {
    Key {
        name,
        range,
        default: Some(default),
        about,
    }
}

pub(super) const fn required(name: &'static str, range: &'static str, about: &'static str) -> Key {
    Key {
        name,
        range,
        default: None,
        about,
    }
}

/// The names of a list.
pub fn names(entries: &[Entry]) -> Vec<&'static str> {
    entries.iter().map(|entry| entry.name).collect()
}

pub(super) fn names_of(names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    names.collect()
}
