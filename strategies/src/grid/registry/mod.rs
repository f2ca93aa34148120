//! All methods: one line, equation, source and keys of each. Help texts, error hints and `murmurate
//! strategies` read it. Entries come from the lists of methods, where each is declared once;
//! `strategies/tests/grid/catalogue.rs` tests that ranges and defaults are those of the configuration.

mod architecture;
mod choices;
mod overlaps;
mod rates;

pub use architecture::{CONTRIBUTIONS, SCHEDULES};
pub(super) use architecture::{GROUP, ISLANDS, LINK_LATENCY, LINK_ROUNDS, LINKS};
pub use choices::CHOICES;
pub(super) use choices::FROM_RANGE;
pub use overlaps::{CUTS, DENSITIES, LAYERS};
pub use rates::RATES;

pub use super::entry::{Entry, Key, names};
pub(super) use super::entry::{key, required};
use super::{methods, paces, presets};
use crate::{aggregate, compress, correct, inner, outer, topology};

/// The entries of a list of methods.
macro_rules! entries {
    ($list:expr, $spec:ident => $entry:expr) => {{
        let mut entries = [Entry::new("", "", "", ""); $list.len()];
        let mut at = 0;
        while at < entries.len() {
            let $spec = $list[at];
            entries[at] = $entry;
            at += 1;
        }
        entries
    }};
    ($list:expr) => {
        entries!($list, spec => {
            Entry::new(spec.name, spec.summary, spec.equation, spec.source).taking(spec.parameters)
        })
    };
}

/// Named points of the grid, from the list of presets.
pub const PRESETS: [Entry; presets::ALL.len()] = entries!(presets::ALL, preset => preset.entry);

/// Values of `synchronization.pace`.
pub const PACES: [Entry; paces::PACES.len()] = entries!(paces::PACES, spec => spec.entry);

/// Values of `synchronization.mode`.
pub const MODES: [Entry; methods::MODES.len()] = entries!(methods::MODES, spec => spec.entry());

/// Values of `architecture.exchange`.
pub const EXCHANGES: [Entry; methods::EXCHANGES.len()] =
    entries!(methods::EXCHANGES, spec => spec.entry());

/// Values of `architecture.topology`.
pub const TOPOLOGIES: [Entry; topology::TOPOLOGIES.len()] = entries!(topology::TOPOLOGIES);

/// Values of `compression.codec`. The catalogue adds their keys.
pub const CODECS: [Entry; compress::CODECS.len()] = entries!(compress::CODECS, spec => {
    Entry::new(spec.name, spec.summary, spec.equation, spec.source)
});

/// Values of `outer.optimizer`. D is the aggregated delta.
pub const OUTERS: [Entry; outer::OUTERS.len()] = entries!(outer::OUTERS);

/// Values of `aggregation.rule`. x_k are n contributions, w_k their weights, f the liars.
pub const RULES: [Entry; aggregate::RULES.len()] = entries!(aggregate::RULES);

/// Values of `inner.optimizer`. g is the gradient.
pub const INNERS: [Entry; inner::INNERS.len()] = entries!(inner::INNERS);

/// Values of `inner.correction`; the others are in [`LATER`](super::LATER).
pub const CORRECTIONS: [Entry; correct::CORRECTIONS.len()] = entries!(correct::CORRECTIONS);

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
