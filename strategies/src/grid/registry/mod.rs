//! What there is: one line, equation, source and keys of each method. Help texts, error hints and
//! `murmurate strategies` read it. What a key may be is checked elsewhere (`optimizers`, `mixing`,
//! `validate`); `strategies/tests/grid/catalogue.rs` keeps the ranges and defaults here equal to that.

mod architecture;
mod codecs;
mod modes;
mod optimizers;
mod overlaps;
mod paces;
mod rules;

pub use architecture::{CONTRIBUTIONS, EXCHANGES, SCHEDULES, TOPOLOGIES};
pub use codecs::CODECS;
pub use modes::MODES;
pub use optimizers::{CORRECTIONS, INNERS, OUTERS};
pub use overlaps::{CUTS, LAYERS};
pub use paces::PACES;
pub use rules::RULES;

use super::presets;

/// One method by the name it has in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// The rule, in a line.
    pub equation: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its own keys; those of codecs are in [`compress::CODECS`](crate::compress::CODECS).
    pub keys: &'static [Key],
}

/// A key that a method takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its full name, such as `outer.lr`.
    pub name: &'static str,
    /// What it must be, in the words of the refusal.
    pub range: &'static str,
    /// Its default as TOML; where there is none it must be given.
    pub default: Option<&'static str>,
    /// What it means.
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
        }
    }

    const fn with(self, keys: &'static [Key]) -> Self {
        Self { keys, ..self }
    }
}

const fn key(
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

const fn required(name: &'static str, range: &'static str, about: &'static str) -> Key {
    Key {
        name,
        range,
        default: None,
        about,
    }
}

/// Named points of the grid, from the list of presets itself.
pub const PRESETS: [Entry; presets::ALL.len()] = {
    let mut entries = [Entry::new("", "", "", ""); presets::ALL.len()];
    let mut at = 0;
    while at < entries.len() {
        entries[at] = presets::ALL[at].entry;
        at += 1;
    }
    entries
};

/// All lists with the key that chooses from them.
pub const ALL: [(&str, &[Entry]); 14] = [
    ("preset", &PRESETS),
    ("synchronization.pace", &PACES),
    ("synchronization.mode", &MODES),
    ("architecture.exchange", &EXCHANGES),
    ("architecture.schedule", &SCHEDULES),
    ("architecture.contribution", &CONTRIBUTIONS),
    ("architecture.topology", &TOPOLOGIES),
    ("compression.codec", &CODECS),
    ("overlap.cut", &CUTS),
    ("overlap.layers", &LAYERS),
    ("outer.optimizer", &OUTERS),
    ("aggregation.rule", &RULES),
    ("inner.optimizer", &INNERS),
    ("inner.correction", &CORRECTIONS),
];

/// The names of a list.
pub fn names(entries: &[Entry]) -> Vec<&'static str> {
    entries.iter().map(|entry| entry.name).collect()
}

/// The names nearest to one that is not there, the nearest first.
pub(super) fn nearest<'a>(found: &str, known: &[&'a str], count: usize) -> Vec<&'a str> {
    let far = |name: &str| strsim::damerau_levenshtein(found, name);
    let mut near: Vec<_> = known.iter().map(|name| (far(name), *name)).collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(count);
    near.into_iter().map(|(_, name)| name).collect()
}

/// What to say of a name that is not there: the nearest one, and all there are.
pub(super) fn hint(found: &str, known: &[&str]) -> String {
    let list = known.join(", ");
    let close = |name: &&&str| {
        let bound = name.len().max(found.len()).div_ceil(2);
        strsim::damerau_levenshtein(found, name) <= bound
    };
    match nearest(found, known, 1).first().filter(close) {
        Some(name) => format!("did you mean `{name}`? There are: {list}"),
        None => format!("there are: {list}"),
    }
}
