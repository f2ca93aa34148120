//! Presets: named points of the grid. Each is a file with a configuration; keys that it leaves out have
//! defaults. Its first lines are its description, its rule and its source; the comment after them says
//! how it differs from its paper.

use super::entry::Entry;
use super::{StrategyError, later};
use crate::names::hint;

/// The preset of a configuration that names none.
pub const DEFAULT_PRESET: &str = "diloco";

/// A named point of the grid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preset {
    /// Name, line, equation and source.
    pub(super) entry: Entry,
    pub(super) text: &'static str,
}

/// The prefix of a header line in a preset's file. Such a line is no part of the file's comment.
pub(super) const HEADER: &str = "#: ";

/// A line of a preset's header, without the prefix [`HEADER`].
const fn header(text: &'static str, line: usize) -> &'static str {
    let (bytes, mut rest, mut at) = (text.as_bytes(), text, 0);
    let (mut start, mut lines) = (0, 0);
    while lines <= line {
        if bytes[at] == b'\n' {
            (_, rest) = text.split_at(start + HEADER.len());
            (rest, _) = rest.split_at(at - start - HEADER.len());
            start = at + 1;
            lines += 1;
        }
        at += 1;
    }
    rest
}

/// Presets by the names of their files.
macro_rules! presets {
    ($($name:literal),+ $(,)?) => {
        [$({
            const TEXT: &str = include_str!(concat!($name, ".toml"));
            Preset {
                entry: Entry::new($name, header(TEXT, 0), header(TEXT, 1), header(TEXT, 2)),
                text: TEXT,
            }
        }),+]
    };
}

/// All presets: the baseline first, then by family of exchanges. Random scenarios are drawn from this list: a
/// new one goes to its end, and none moves.
pub(super) const ALL: [Preset; 64] = presets![
    "none",
    "bsp",
    "wfbp",
    "mg-wfbp",
    "bytescheduler-allreduce",
    "bytescheduler-ps",
    "dear",
    "qsgd",
    "terngrad",
    "signsgd-majority",
    "one-bit-adam",
    "demo",
    "powersgd",
    "dgc",
    "local-sgd",
    "local-adam",
    "post-local",
    "fedavg",
    "fedprox",
    "scaffold",
    "fedadam",
    "slowmo",
    "diloco",
    "streaming-diloco",
    "eager-diloco",
    "decoupled-diloco",
    "co2",
    "sparseloco",
    "muloco",
    "local-adam-lm",
    "diloco-lm",
    "streaming-diloco-lm",
    "sparseloco-lm",
    "ssp",
    "asp",
    "fedbuff",
    "async-local-sgd",
    "easgd",
    "guarded",
    "acco",
    "d-psgd",
    "sgp",
    "osgp",
    "gossipgrad",
    "ad-psgd",
    "choco",
    "deepsqueeze",
    "d2",
    "gradient-tracking",
    "beer",
    "relaysgd",
    "noloco",
    "moshpit",
    "guarded-gossip",
    "dcd-psgd",
    "ecd-psgd",
    "motef",
    "prague",
    "wagma",
    "hop",
    "saps",
    "gauntlet",
    "private-fedavg",
    "secure-fedavg",
];

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
