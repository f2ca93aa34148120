//! All methods: one line, equation, source and keys of each. Help texts, error hints and `murmurate
//! strategies` read it. Entries come from the lists of methods, where each is declared once;
//! `strategies/tests/grid/catalogue.rs` tests that ranges and defaults are those of the configuration.

pub use super::entry::{Entry, Key, names};
use super::entry::{key, required};
pub use super::overlap::{CUTS, DENSITIES, LAYERS};
use super::{methods, paces, presets};
use crate::parameter::{Parameter, Range};
use crate::topology::ISLAND;
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
pub const MODES: &[Entry] = methods::MODES;

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

/// Where the islands of a schedule come from.
pub(super) const ISLANDS: Parameter = Parameter {
    name: "islands_by",
    range: Range::Choice(&["ranks", "sites"]),
    default: Some(0.0),
    about: "whether islands are runs of ranks by peer id, or of peers at one site",
};

/// When a schedule is found again for links that the run has measured.
pub(super) const LINK_ROUNDS: Parameter = Parameter {
    name: "link_rounds",
    range: Range::Whole(0, 65_535),
    default: Some(0.0),
    about: "rounds after which peers measure their links again and may change the schedule; 0 is never",
};

/// What a schedule that is found again takes a send to cost beside its bytes.
pub(super) const LINK_LATENCY: Parameter = Parameter {
    name: "link_latency_ms",
    range: Range::Closed(0.0, 10_000.0),
    default: Some(10.0),
    about: "with link_rounds: one-way latency between two peers, which every send costs beside its bytes",
};

/// The key of a schedule that is found for measured links.
pub(super) const LINKS: Key = required(
    "architecture.link_mbit",
    "a square table of whole numbers, 1 to 1000000, for 2 to 16 peers; or link_rounds above 0",
    "Mbit/s that row i reached sending to column j alone, peers by their ids; the diagonal is not used",
);

/// Values of `architecture.schedule`: the order in which an all-reduce of n members and m bytes
/// forms its sums. Each equation says how much the busiest member sends, and how many pushes depend
/// on one another.
pub const SCHEDULES: [Entry; 9] = [
    Entry::new(
        "binary-tree",
        "up and down one binary tree; fragments follow one another through it",
        "3 m, 2 floor(log2 n) hops: s_i = d_i + s_{2i+1} + s_{2i+2}, the mean at rank 0",
        "Thakur et al., IJHPCA 2005",
    ),
    Entry::new(
        "butterfly",
        "every member reduces a shard directly, without late members",
        "2 m (n-1)/n, 2 hops: s_k = sum_i d_i[k] at rank k",
        "Ryabinin et al., NeurIPS 2021",
    ),
    Entry::new(
        "double-tree",
        "half through each of two binary trees; inner ranks of one are leaves of the other",
        "2 m, 2 floor(log2 n) hops: binary-tree of one half, and of the other in reverse order of ranks",
        "Sanders et al., Parallel Computing 2009",
    ),
    Entry::new(
        "halving-doubling",
        "pairs at halving distances swap halves, then pass them on",
        "2 m (p-1)/p, 2 log2 p hops for p = 2^floor(log2 n); where n > p the rest folds first: m (3p-2)/p, 2 hops more",
        "Thakur et al., IJHPCA 2005",
    ),
    Entry::new(
        "hierarchical",
        "islands of consecutive ranks, or within sites, send all to a leader, leaders form a ring",
        "m (2 (L-1)/L + g-1) at a leader, of it 2 m (L-1)/L between islands, 2 L hops, L = ceil(n/g), g the group",
        "Jia et al., arXiv 1807.11205",
    )
    .taking(&[ISLAND, ISLANDS]),
    Entry::new(
        "recursive-doubling",
        "pairs at doubling distances swap whole sums",
        "m log2 p, log2 p hops for p = 2^floor(log2 n); where n > p the rest folds first: m more, 1 or 2 hops more",
        "Thakur et al., IJHPCA 2005",
    ),
    Entry::new(
        "ring",
        "every shard around a ring, twice",
        "2 m (n-1)/n, 2 (n-1) hops: s_k passes ranks k+1, ..., k+n, each adding its d_i[k]",
        "Patarasuk and Yuan, JPDC 2009",
    ),
    Entry::new(
        "torus",
        "rings along rows, then columns, of a grid r x c = n; a prime is one ring",
        "2 m (n-1)/n, 2 (r-1) + 2 (c-1) hops, r the largest divisor of n up to sqrt n",
        "Mikami et al., arXiv 1811.05233",
    ),
    Entry::new(
        "synthesized",
        "trees packed onto measured links, where they save a tenth of the butterfly's time; with link_rounds measured again and sent in order",
        "min over trees of max over links of (shards over it) / (k rate), up to 4 hops; else butterfly",
        "Wang et al., MLSys 2020 (Blink); Luo et al., MLSys 2020 (PLink); Shah et al., NSDI 2023 (TACCL)",
    )
    .with(&[LINKS])
    .taking(&[LINK_ROUNDS, LINK_LATENCY]),
];

/// Values of `architecture.contribution`.
pub const CONTRIBUTIONS: [Entry; 3] = [
    Entry::new(
        "gradient",
        "the gradient of one inner step at the anchor",
        "d_i = grad f_i(a)",
        "-",
    ),
    Entry::new(
        "delta",
        "parameters after the round minus the anchor",
        "d_i = x_i - a",
        "-",
    ),
    Entry::new("parameters", "the parameters themselves", "x_i", "-"),
];

/// What a list of codecs to choose from must be.
pub(super) const FROM_RANGE: &str = "a list of at most five codecs that round every value, or densities of the codec, each of which sends less than the one before";

pub(super) const CHOOSE_FROM: Key = key(
    "compression.choose_from",
    FROM_RANGE,
    "[\"bf16\", \"int8\", \"int4\"]",
    "codecs behind the configured one, the most exact first; by default those of the three that send less",
);

pub(super) const CHOOSE_EVERY: Key = key(
    "compression.choose_every",
    "at least 1",
    "8",
    "rounds after which the codec follows from the waits again",
);

pub(super) const TRAIN_SHARE: Key = key(
    "compression.train_share",
    "from 0.001 to 0.999",
    "0.9",
    "share of the time that training should take",
);

/// Values of `compression.choose`.
pub const CHOICES: [Entry; 2] = [
    Entry::new(
        "fixed",
        "all rounds have the codec of the configuration",
        "C_r = C_0",
        "-",
    ),
    Entry::new(
        "measured",
        "the most exact codec of a list whose exchanges leave training its share of the time, as the members measure",
        "C = the first of C_0, C_1, .. with w_j <= H (1 - s) / s; w_j is the median wait in inner steps, s the share",
        "Hockney, Parallel Computing 1994; Lai and Robbins, Adv. Appl. Math. 1985",
    )
    .with(&[CHOOSE_FROM, CHOOSE_EVERY, TRAIN_SHARE]),
];

/// The most rounds of a key.
const ROUNDS_MAX: u32 = 1_000_000_000;

const WARMUP_ROUNDS: Parameter = Parameter {
    name: "warmup_rounds",
    range: Range::Whole(0, ROUNDS_MAX),
    default: Some(0.0),
    about: "the rounds in which the rate rises from 0 to `inner.lr`",
};

const SCHEDULE_ROUNDS: Parameter = Parameter {
    name: "schedule_rounds",
    range: Range::Whole(0, ROUNDS_MAX),
    default: Some(0.0),
    about: "the round at which the schedule ends; 0 takes the run's `rounds`",
};

const FINAL_RATE: Parameter = Parameter {
    name: "final_rate",
    range: Range::Closed(0.0, 1.0),
    default: Some(0.1),
    about: "the share of `inner.lr` at the end and after it",
};

const DECAY_ROUNDS: Parameter = Parameter {
    name: "decay_rounds",
    range: Range::Whole(0, ROUNDS_MAX),
    default: Some(0.0),
    about: "the last rounds, in which the rate falls; 0 takes a tenth of the schedule",
};

/// Values of `inner.schedule`. t is the time in rounds, w the warm-up, T the end, f the final rate.
/// Before w the factor is t / w.
pub const RATES: [Entry; 4] = [
    Entry::new(
        "constant",
        "the same rate in every round",
        "1 after the warm-up",
        "warm-up: Goyal et al., arXiv 1706.02677",
    )
    .taking(&[WARMUP_ROUNDS]),
    Entry::new(
        "linear",
        "falls in a line",
        "1 - (1 - f) (t - w) / (T - w)",
        "Devlin et al., NAACL 2019",
    )
    .taking(&[WARMUP_ROUNDS, SCHEDULE_ROUNDS, FINAL_RATE]),
    Entry::new(
        "cosine",
        "falls along half a cosine",
        "f + (1 - f) (1 + cos(pi (t - w) / (T - w))) / 2",
        "Loshchilov and Hutter, ICLR 2017",
    )
    .taking(&[WARMUP_ROUNDS, SCHEDULE_ROUNDS, FINAL_RATE]),
    Entry::new(
        "wsd",
        "warm-up, stable, decay: constant, then a line in the last rounds d",
        "1 - (1 - f) max(0, (t - T + d) / d)",
        "Hu et al., arXiv 2404.06395",
    )
    .taking(&[WARMUP_ROUNDS, SCHEDULE_ROUNDS, FINAL_RATE, DECAY_ROUNDS]),
];

/// All lists with the key that chooses from them.
pub const ALL: [(&str, &[Entry]); 17] = [
    ("preset", &PRESETS),
    ("synchronization.pace", &PACES),
    ("synchronization.mode", MODES),
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
