//! How the codec of a round is found, by name.

use super::{Entry, Key, key};

/// What a list of codecs to choose from must be.
pub(in crate::grid) const FROM_RANGE: &str = "a list of at most five codecs that round every value, or densities of the codec, each of which sends less than the one before";

const FROM: Key = key(
    "compression.choose_from",
    FROM_RANGE,
    "[\"bf16\", \"int8\", \"int4\"]",
    "codecs behind the configured one, the most exact first; by default those of the three that send less",
);

const EVERY: Key = key(
    "compression.choose_every",
    "at least 1",
    "8",
    "rounds after which the codec follows from the waits again",
);

const SHARE: Key = key(
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
    .with(&[FROM, EVERY, SHARE]),
];
