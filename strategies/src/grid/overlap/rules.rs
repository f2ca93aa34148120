//! Rules by which the parameters are cut into fragments, and when these are sent, by name.

use super::super::entry::{Entry, Key, key};

pub(super) const LATENCY_MS: Key = key(
    "overlap.latency_ms",
    "a number above 0",
    "40.0",
    "milliseconds of every exchange, however few bytes it moves",
);

pub(super) const MBIT_S: Key = key(
    "overlap.mbit_s",
    "a number above 0",
    "50.0",
    "rate of the slowest link in Mbit/s",
);

pub(super) const BACKWARD_MS: Key = key(
    "overlap.backward_ms",
    "a number above 0",
    "100.0",
    "milliseconds of a backward pass",
);

pub(super) const SELECT_MS: Key = key(
    "overlap.select_ms",
    "0 or a number above",
    "10.0",
    "milliseconds of choosing the kept values of the whole model",
);

/// Values of `overlap.cut`.
pub const CUTS: [Entry; 3] = [
    Entry::new(
        "even",
        "`overlap.fragments` equal cuts, independent of the tensors",
        "fragment k of n: [k len / n, (k + 1) len / n)",
        "-",
    ),
    Entry::new(
        "tensors",
        "a fragment for each tensor",
        "fragment k = tensor k",
        "Zhang et al., USENIX ATC 2017",
    ),
    Entry::new(
        "merged",
        "neighbouring tensors merged where that is faster",
        "l with l - 1 if ready(l-1) < t(l) + T(l) and (ready(l-1) < t(l) or ready(l-1) - t(l) < alpha), T(m) = alpha + 2 beta m",
        "Shi et al., INFOCOM 2019",
    )
    .with(&[LATENCY_MS, MBIT_S, BACKWARD_MS]),
];

/// Values of `overlap.density`.
pub const DENSITIES: [Entry; 2] = [
    Entry::new(
        "one",
        "all layers have the density of the codec",
        "d(l) = density",
        "-",
    ),
    Entry::new(
        "by-layer",
        "each layer has the largest density at which it is sent while the next one is computed, the codec's at least",
        "d(l) = max(density, max{ d : T(bytes(d, l)) + select(l) <= backward(l - 1) }), T(m) = alpha + 2 beta m",
        "Shi et al., ECAI 2020",
    )
    .with(&[LATENCY_MS, MBIT_S, BACKWARD_MS, SELECT_MS]),
];

/// Values of `overlap.layers`.
pub const LAYERS: [Entry; 5] = [
    Entry::new(
        "together",
        "all fragments are sent when training has ended",
        "-",
        "-",
    ),
    Entry::new(
        "as-ready",
        "each fragment of a gradient is sent as soon as the backward pass has computed it",
        "begin(l) = ready(l), l from the last to the first",
        "Zhang et al., USENIX ATC 2017",
    ),
    Entry::new(
        "by-priority",
        "the same, and fragments that the next forward pass needs first overtake the others",
        "begin(l) = ready(l), priority(l) = l",
        "Peng et al., SOSP 2019; Jayarajan et al., MLSys 2019",
    ),
    Entry::new(
        "into-forward",
        "the same, and the next forward pass begins with the first layers while fragments of later ones are exchanged",
        "begin(l) = ready(l), priority(l) = l, forward(l) = max(end(l), forward(l - 1) + compute(l - 1))",
        "Peng et al., SOSP 2019; Jayarajan et al., MLSys 2019; Hashemi et al., MLSys 2019",
    ),
    Entry::new(
        "decoupled",
        "the same, but contributions go first, as the backward pass completes them, and aggregates behind them, as the next forward pass needs them",
        "priority(contribution) = 0, priority(aggregate of l) = 1 + l, forward(l) as into-forward",
        "Zhang et al., ICDCS 2023",
    ),
];
