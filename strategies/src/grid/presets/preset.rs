//! A preset as data.

use super::super::entry::Entry;

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
