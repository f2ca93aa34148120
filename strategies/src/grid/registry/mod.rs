//! All methods: one line, equation, source and keys of each. Help texts, error hints and `murmurate
//! strategies` read it. Values are checked elsewhere (`optimizers`, `mixing`, `validate`);
//! `strategies/tests/grid/catalogue.rs` tests that ranges and defaults are the same here and there.

mod architecture;
mod choices;
mod codecs;
mod optimizers;
mod overlaps;
mod paces;
mod rates;
mod rules;

pub use architecture::{CONTRIBUTIONS, SCHEDULES};
pub(super) use architecture::{GROUP, ISLANDS, LINK_LATENCY, LINK_ROUNDS, LINKS};
pub use choices::CHOICES;
pub(super) use choices::FROM_RANGE;
pub use codecs::CODECS;
pub use optimizers::{CORRECTIONS, INNERS, OUTERS};
pub use overlaps::{CUTS, DENSITIES, LAYERS};
pub use paces::PACES;
pub use rates::RATES;
pub use rules::RULES;

pub use super::entry::{Entry, Key, names};
pub(super) use super::entry::{key, required};
use super::{methods, presets};
use crate::topology;

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

/// Values of `architecture.exchange`, from the list of exchanges.
pub const EXCHANGES: [Entry; methods::EXCHANGES.len()] = {
    let mut entries = [Entry::new("", "", "", ""); methods::EXCHANGES.len()];
    let mut at = 0;
    while at < entries.len() {
        entries[at] = methods::EXCHANGES[at].entry();
        at += 1;
    }
    entries
};

/// Values of `synchronization.mode`, from the list of modes.
pub const MODES: [Entry; methods::MODES.len()] = {
    let mut entries = [Entry::new("", "", "", ""); methods::MODES.len()];
    let mut at = 0;
    while at < entries.len() {
        entries[at] = methods::MODES[at].entry();
        at += 1;
    }
    entries
};

/// Values of `architecture.topology`, from the list of topologies.
pub const TOPOLOGIES: [Entry; topology::TOPOLOGIES.len()] = {
    let mut entries = [Entry::new("", "", "", ""); topology::TOPOLOGIES.len()];
    let mut at = 0;
    while at < entries.len() {
        let spec = topology::TOPOLOGIES[at];
        let entry = Entry::new(spec.name, spec.summary, spec.equation, spec.source);
        entries[at] = entry.taking(spec.parameters);
        at += 1;
    }
    entries
};

/// All lists with the key that chooses from them.
pub const ALL: [(&str, &[Entry]); 17] = [
    ("preset", &PRESETS),
    ("synchronization.pace", &PACES),
    ("synchronization.mode", &MODES),
    ("architecture.exchange", &EXCHANGES),
    ("architecture.schedule", &SCHEDULES),
    ("architecture.contribution", &CONTRIBUTIONS),
    ("architecture.topology", &TOPOLOGIES),
    ("compression.codec", &CODECS),
    ("compression.choose", &CHOICES),
    ("overlap.cut", &CUTS),
    ("overlap.layers", &LAYERS),
    ("overlap.density", &DENSITIES),
    ("outer.optimizer", &OUTERS),
    ("aggregation.rule", &RULES),
    ("inner.optimizer", &INNERS),
    ("inner.correction", &CORRECTIONS),
    ("inner.schedule", &RATES),
];
