//! How the inner steps of a round change with the round: the list of paces, and what they need.

use super::StrategyError;
use super::entry::Entry;
use super::error::refuse;
use super::tables::Synchronization as Table;
use super::validate::{outside, read_method};
use crate::kind::{Kind, Spec};
use crate::parameter::{Number, Parameter, Parameters, Range};
use murmurate_protocol::{ExchangeKind, Pace};

const KEY: &str = "synchronization.pace";

/// Parts of a factor and a share.
const THOUSAND: f64 = 1e3;

pub(super) const PACES: [&PaceSpec; 6] = [
    &PaceSpec {
        entry: Entry::new("steady", "every round is alike", "H_r = H_0", "-"),
        read: |_, _| Ok(Pace::Steady),
        write: |pace| (pace == Pace::Steady).then(Vec::new),
    },
    &PaceSpec {
        entry: Entry::new(
            "switch",
            "another count of inner steps from a round on",
            "H_r = H_0 before round s, then H",
            "Lin et al., ICLR 2020",
        )
        .taking(&[SWITCH_ROUND, SWITCH_INNER_STEPS]),
        read: |kind, _| {
            Ok(Pace::Switch {
                round: kind.count(SWITCH_ROUND.name) as u64,
                steps: kind.count(SWITCH_INNER_STEPS.name) as u32,
            })
        },
        write: |pace| match pace {
            Pace::Switch { round, steps } => Some(vec![round as f64, f64::from(steps)]),
            _ => None,
        },
    },
    &PaceSpec {
        entry: Entry::new(
            "decay",
            "fewer inner steps by the round, as if the loss fell: AdaComm with F_l / F_0 = 1 / (1 + l)",
            "H_r = ceil(H_0 / sqrt(1 + floor(r / every)))",
            "Wang and Joshi, MLSys 2019",
        )
        .taking(&[DECAY_EVERY]),
        read: |kind, _| {
            let every = kind.count(DECAY_EVERY.name) as u64;
            Ok(Pace::Decay { every })
        },
        write: |pace| match pace {
            Pace::Decay { every } => Some(vec![every as f64]),
            _ => None,
        },
    },
    &PaceSpec {
        entry: Entry::new(
            "balanced",
            "fewer inner steps on slower machines, so that all end a round at the same time",
            "H_i = H_0 t_fastest / t_i, at least H_0 / 4; t is the time for one sample",
            "-",
        ),
        read: |_, _| Ok(Pace::Balanced),
        write: |pace| (pace == Pace::Balanced).then(Vec::new),
    },
    &PaceSpec {
        entry: Entry::new(
            "loss",
            "fewer inner steps as the loss falls that the members agree on, and where it stagnates: AdaComm",
            "H_l = ceil(H_0 sqrt(F_l / F_0)) if that is less than H_(l-1), else g H_(l-1)",
            "Wang and Joshi, MLSys 2019",
        )
        .taking(&[LOSS_EVERY, STAGNATION_FACTOR]),
        read: |kind, _| {
            Ok(Pace::Loss {
                every: kind.count(LOSS_EVERY.name) as u64,
                factor: thousandths(kind, STAGNATION_FACTOR),
            })
        },
        write: |pace| match pace {
            Pace::Loss { every, factor } => Some(vec![every as f64, f64::from(factor) / THOUSAND]),
            _ => None,
        },
    },
    &PaceSpec {
        entry: Entry::new(
            "measured",
            "as many inner steps as it takes that training is not held up by exchanges, as the members measure",
            "H = ceil(w s / (1 - s)); w is the median wait for an exchange in inner steps, s the share",
            "-",
        )
        .taking(&[MEASURE_EVERY, TRAIN_SHARE, LEAST, MOST]),
        read: measured,
        write: |pace| match pace {
            Pace::Measured {
                every,
                share,
                least,
                most,
            } => {
                let share = f64::from(share) / THOUSAND;
                Some(vec![every as f64, share, least.into(), most.into()])
            }
            _ => None,
        },
    },
];

/// The needed text of keys that count rounds.
const ROUNDS: &str = "give the number of rounds";

const SWITCH_ROUND: Parameter = Parameter::required(
    "switch_round",
    &Range::AtLeastOne(Number::Large),
    ROUNDS,
    "the first round with the other count of inner steps",
);

/// By default the paper's.
const SWITCH_INNER_STEPS: Parameter = Parameter::new(
    "switch_inner_steps",
    Range::AtLeastOne(Number::Small),
    16.0,
    "inner steps of a round from then on",
);

const DECAY_EVERY: Parameter = Parameter::required(
    "decay_every",
    &Range::AtLeastOne(Number::Large),
    ROUNDS,
    "rounds after which a round has fewer inner steps",
);

const LOSS_EVERY: Parameter = Parameter::required(
    "loss_every",
    &Range::AtLeastOne(Number::Large),
    ROUNDS,
    "rounds after which the inner steps follow from the loss again",
);

/// By default the paper's.
const STAGNATION_FACTOR: Parameter = Parameter::new(
    "stagnation_factor",
    Range::Thousandths(1, 1000),
    0.5,
    "factor on the inner steps where the loss did not lower them",
);

const MEASURE_EVERY: Parameter = Parameter::new(
    "measure_every",
    Range::AtLeastOne(Number::Large),
    8.0,
    "rounds after which the inner steps follow from the waits again",
);

const TRAIN_SHARE: Parameter = Parameter::new(
    "train_share",
    Range::Thousandths(1, 999),
    0.9,
    "share of the time that training should take",
);

const LEAST: Parameter = Parameter::new(
    "inner_steps_least",
    Range::Words(Number::Small, "from 1 to `synchronization.inner_steps`"),
    1.0,
    "the fewest inner steps of a round",
);

/// By default those of DiLoCo.
const MOST: Parameter = Parameter::new(
    "inner_steps_most",
    Range::Words(Number::Small, "at least `synchronization.inner_steps`"),
    500.0,
    "the most inner steps of a round",
);

/// One pace as the configuration knows it.
pub(super) struct PaceSpec {
    /// Its texts and its keys of `[synchronization]`.
    pub(super) entry: Entry,
    /// Makes it of its values for the inner steps of the table, or names the key that does not fit them.
    read: fn(&PaceKind, &Table) -> Result<Pace, &'static str>,
    /// The values of its keys, if it is this pace.
    write: fn(Pace) -> Option<Vec<f64>>,
}

type PaceKind = Kind<PaceSpec>;

impl Spec for PaceSpec {
    const KEY: &'static str = KEY;

    fn list() -> &'static [&'static Self] {
        &PACES
    }

    fn keys(&self) -> Parameters {
        Parameters::new("synchronization", self.entry.name, self.entry.parameters)
    }
}

fn thousandths(kind: &PaceKind, key: Parameter) -> u16 {
    (kind.number(key.name) * THOUSAND).round() as u16
}

/// A pace by the waits. Inner steps that are not given are refused elsewhere.
fn measured(kind: &PaceKind, table: &Table) -> Result<Pace, &'static str> {
    let start = table.inner_steps.unwrap_or(1);
    let [least, most] = [LEAST, MOST].map(|key| kind.count(key.name) as u32);
    if !(1..=start).contains(&least) {
        return Err(LEAST.name);
    }
    let given = table.parameters.contains_key(MOST.name);
    let most = if given { most } else { most.max(start) };
    if most < start {
        return Err(MOST.name);
    }
    Ok(Pace::Measured {
        every: kind.count(MEASURE_EVERY.name) as u64,
        share: thousandths(kind, TRAIN_SHARE),
        least,
        most,
    })
}

pub(super) fn read(exchange: ExchangeKind, table: &Table) -> Result<Pace, StrategyError> {
    let kind: PaceKind = read_method(&table.pace, &table.parameters)?;
    let pace = (kind.spec().read)(&kind, table).map_err(|key| outside(&kind, key))?;
    refuse(
        pace != Pace::Steady && table.round_time.is_some(),
        KEY,
        "a round that is bounded by time takes as many inner steps as fit, in every round",
        "give `synchronization.inner_steps` in place of `synchronization.round_time`",
    )?;
    refuse(
        pace == Pace::Balanced && !exchange.agrees(),
        KEY,
        "peers learn who is slow from what they tell all others when they have trained, and only peers that agree on every round do so",
        "use exchange = \"all-reduce\" or \"gathered\", or `synchronization.round_time`, which every exchange has",
    )?;
    refuse(
        pace.is_agreed() && !exchange.agrees(),
        KEY,
        "peers measure different losses and waits, and only peers that agree on every round agree on one",
        "use exchange = \"all-reduce\" or \"gathered\", or pace = \"decay\", which every exchange has",
    )?;
    Ok(pace)
}

pub(super) fn write(pace: Pace, table: &mut Table) {
    for spec in PACES {
        if let Some(values) = (spec.write)(pace) {
            let keys = spec.entry.parameters.iter().zip(values);
            table.pace = Some(spec.entry.name.to_owned());
            let keys = keys.map(|(key, value)| key.entry(value));
            table.parameters.extend(keys);
        }
    }
}
