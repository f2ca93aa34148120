//! Schedules of the inner learning rate by name.

use super::Entry;
use crate::parameter::{Parameter, Range};

/// The most rounds of a key.
const ROUNDS_MAX: u32 = 1_000_000_000;

const WARMUP: Parameter = Parameter {
    name: "warmup_rounds",
    range: Range::Whole(0, ROUNDS_MAX),
    default: Some(0.0),
    about: "the rounds in which the rate rises from 0 to `inner.lr`",
};

const ROUNDS: Parameter = Parameter {
    name: "schedule_rounds",
    range: Range::Whole(0, ROUNDS_MAX),
    default: Some(0.0),
    about: "the round at which the schedule ends; 0 takes the run's `rounds`",
};

const FINAL: Parameter = Parameter {
    name: "final_rate",
    range: Range::Closed(0.0, 1.0),
    default: Some(0.1),
    about: "the share of `inner.lr` at the end and after it",
};

const DECAY: Parameter = Parameter {
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
    .taking(&[WARMUP]),
    Entry::new(
        "linear",
        "falls in a line",
        "1 - (1 - f) (t - w) / (T - w)",
        "Devlin et al., NAACL 2019",
    )
    .taking(&[WARMUP, ROUNDS, FINAL]),
    Entry::new(
        "cosine",
        "falls along half a cosine",
        "f + (1 - f) (1 + cos(pi (t - w) / (T - w))) / 2",
        "Loshchilov and Hutter, ICLR 2017",
    )
    .taking(&[WARMUP, ROUNDS, FINAL]),
    Entry::new(
        "wsd",
        "warm-up, stable, decay: constant, then a line in the last rounds d",
        "1 - (1 - f) max(0, (t - T + d) / d)",
        "Hu et al., arXiv 2404.06395",
    )
    .taking(&[WARMUP, ROUNDS, FINAL, DECAY]),
];
