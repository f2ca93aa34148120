//! How the inner steps of a round change with the round, by name.

use super::{Entry, Key, key, required};

const SWITCH_ROUND: Key = required(
    "synchronization.switch_round",
    "at least 1",
    "the first round with the other count of inner steps",
);

const SWITCH_INNER_STEPS: Key = key(
    "synchronization.switch_inner_steps",
    "at least 1",
    "16",
    "inner steps of a round from then on",
);

const DECAY_EVERY: Key = required(
    "synchronization.decay_every",
    "at least 1",
    "rounds after which a round has fewer inner steps",
);

const LOSS_EVERY: Key = required(
    "synchronization.loss_every",
    "at least 1",
    "rounds after which the inner steps follow from the loss again",
);

const STAGNATION_FACTOR: Key = key(
    "synchronization.stagnation_factor",
    "from 0.001 to 1",
    "0.5",
    "factor on the inner steps where the loss did not lower them",
);

const MEASURE_EVERY: Key = key(
    "synchronization.measure_every",
    "at least 1",
    "8",
    "rounds after which the inner steps follow from the waits again",
);

const TRAIN_SHARE: Key = key(
    "synchronization.train_share",
    "from 0.001 to 0.999",
    "0.9",
    "share of the time that training should take",
);

const LEAST: Key = key(
    "synchronization.inner_steps_least",
    "from 1 to `synchronization.inner_steps`",
    "1",
    "the fewest inner steps of a round",
);

const MOST: Key = key(
    "synchronization.inner_steps_most",
    "at least `synchronization.inner_steps`",
    "500",
    "the most inner steps of a round",
);

/// Values of `synchronization.pace`.
pub const PACES: [Entry; 6] = [
    Entry::new("steady", "every round is alike", "H_r = H_0", "-"),
    Entry::new(
        "switch",
        "another count of inner steps from a round on",
        "H_r = H_0 before round s, then H",
        "Lin et al., ICLR 2020",
    )
    .with(&[SWITCH_ROUND, SWITCH_INNER_STEPS]),
    Entry::new(
        "decay",
        "fewer inner steps by the round, as if the loss fell: AdaComm with F_l / F_0 = 1 / (1 + l)",
        "H_r = ceil(H_0 / sqrt(1 + floor(r / every)))",
        "Wang and Joshi, MLSys 2019",
    )
    .with(&[DECAY_EVERY]),
    Entry::new(
        "balanced",
        "fewer inner steps on slower machines, so that all end a round at the same time",
        "H_i = H_0 t_fastest / t_i, at least H_0 / 4; t is the time for one sample",
        "-",
    ),
    Entry::new(
        "loss",
        "fewer inner steps as the loss falls that the members agree on, and where it stagnates: AdaComm",
        "H_l = ceil(H_0 sqrt(F_l / F_0)) if that is less than H_(l-1), else g H_(l-1)",
        "Wang and Joshi, MLSys 2019",
    )
    .with(&[LOSS_EVERY, STAGNATION_FACTOR]),
    Entry::new(
        "measured",
        "as many inner steps as it takes that training is not held up by exchanges, as the members measure",
        "H = ceil(w s / (1 - s)); w is the median wait for an exchange in inner steps, s the share",
        "-",
    )
    .with(&[MEASURE_EVERY, TRAIN_SHARE, LEAST, MOST]),
];
