//! From tables to methods: names become kinds, defaults are filled in, ranges are checked. Whether
//! the methods go together is not asked here but in `refuse`.

use super::StrategyError;
use super::registry::{CODECS, CONTRIBUTIONS, EXCHANGES, Entry, hint, names};
use super::tables::{Architecture, Compression, Deadlines, Synchronization};
use super::{later, mixing, server};
use crate::compress::CodecKind;
use crate::topology::TopologyKind;
use core::time::Duration;
use murmurate_protocol::{Contribution, DeadlinePlan, ExchangeKind, StepBudget};

/// The longest round that can be asked for: a year.
const ROUND_SECONDS_MAX: f64 = 365.0 * 86_400.0;

/// The longest deadline that can be asked for: a day.
const DEADLINE_MS_MAX: u64 = 86_400_000;

/// The value of a key that chooses from a list, checked against the list.
pub(super) fn choose<'a>(
    value: &'a Option<String>,
    default: &'a str,
    key: &str,
    list: &[Entry],
) -> Result<&'a str, StrategyError> {
    let found = value.as_deref().unwrap_or(default);
    let known = names(list);
    if known.contains(&found) {
        return Ok(found);
    }
    later::check(key, found)?;
    let (key, hint) = (key.to_owned(), hint(found, &known));
    Err(StrategyError::UnknownValue {
        key,
        found: found.to_owned(),
        hint,
    })
}

pub(super) fn range(
    ok: bool,
    key: &str,
    found: f64,
    needed: &'static str,
) -> Result<(), StrategyError> {
    if ok {
        return Ok(());
    }
    Err(StrategyError::Range {
        key: key.to_owned(),
        found: found.to_string(),
        needed,
    })
}

/// Above zero in f32, where the arithmetic is.
pub(super) fn above_zero(key: &str, value: f64) -> Result<f64, StrategyError> {
    let ok = value as f32 > 0.0 && (value as f32).is_finite();
    range(ok, key, value, "a number above 0").map(|()| value)
}

/// In `[0, 1)` in f32.
pub(super) fn below_one(key: &str, value: f64) -> Result<f64, StrategyError> {
    range(
        (0.0..1.0).contains(&(value as f32)),
        key,
        value,
        "in [0, 1)",
    )
    .map(|()| value)
}

pub(super) fn not_negative(key: &str, value: f64) -> Result<f64, StrategyError> {
    let ok = value >= 0.0 && (value as f32).is_finite();
    range(ok, key, value, "0 or a number above").map(|()| value)
}

/// A whole number from `low` to `high`.
pub(super) fn count(
    key: &str,
    value: usize,
    [low, high]: [usize; 2],
    needed: &'static str,
) -> Result<usize, StrategyError> {
    let ok = (low..=high).contains(&value);
    range(ok, key, value as f64, needed).map(|()| value)
}

pub(super) fn absent<T>(
    value: &Option<T>,
    key: &'static str,
    method: &str,
) -> Result<(), StrategyError> {
    match value {
        None => Ok(()),
        Some(_) => Err(StrategyError::DoesNotApply {
            key,
            method: format!("`{method}`"),
        }),
    }
}

pub(super) fn budget(table: &Synchronization) -> Result<StepBudget, StrategyError> {
    let seconds = "synchronization.round_time";
    match (table.inner_steps, table.round_time) {
        (Some(_), Some(_)) => Err(StrategyError::Refused {
            key: seconds,
            reason: "a round is bounded by inner steps or by time, not by both",
            remedy: "remove it or `synchronization.inner_steps`",
        }),
        (None, None) => Err(StrategyError::Missing {
            key: "synchronization.inner_steps",
            needed: "give it, or `synchronization.round_time` in seconds",
        }),
        (Some(0), None) => Err(StrategyError::Range {
            key: "synchronization.inner_steps".to_owned(),
            found: "0".to_owned(),
            needed: "at least 1",
        }),
        (Some(count), None) => Ok(StepBudget::Steps(count)),
        (None, Some(time)) => {
            let ok = (1e-3..=ROUND_SECONDS_MAX).contains(&time);
            range(ok, seconds, time, "from 0.001 seconds to a year")?;
            Ok(StepBudget::Time(Duration::from_secs_f64(time)))
        }
    }
}

/// Who exchanges what with whom.
pub(super) struct Exchanges {
    pub(super) exchange: ExchangeKind,
    pub(super) contribution: Contribution,
    pub(super) topology: Option<TopologyKind>,
    /// How far neighbours with replicas move towards each other.
    pub(super) rate: Option<f64>,
}

/// Exchange, contribution, topology and rate.
pub(super) fn architecture(table: &Architecture) -> Result<Exchanges, StrategyError> {
    let key = "architecture.exchange";
    let name = choose(&table.exchange, "all-reduce", key, &EXCHANGES)?;
    let (exchange, contribution) = match name {
        "none" => (ExchangeKind::None, "delta"),
        "gossip" => (ExchangeKind::Gossip, "parameters"),
        "gathered" => (ExchangeKind::Gathered, "delta"),
        "parameter-server" => (ExchangeKind::Server(server::IN_STEP), "delta"),
        "replicas" => (ExchangeKind::Replicas, "parameters"),
        "pairs" => (ExchangeKind::Pairs, "parameters"),
        "push" => (ExchangeKind::Push, "parameters"),
        "relay-sum" => (ExchangeKind::Relay, "parameters"),
        "pull" => (ExchangeKind::Pull, "parameters"),
        _ => (ExchangeKind::AllReduce, "delta"),
    };
    let key = "architecture.contribution";
    let contribution = match choose(&table.contribution, contribution, key, &CONTRIBUTIONS)? {
        "gradient" => Contribution::Gradient,
        "parameters" => Contribution::Parameters,
        _ => Contribution::Delta,
    };
    let rate = match exchange {
        ExchangeKind::Replicas => Some(mixing::rate(table)?),
        _ => {
            absent(&table.rate, "architecture.rate", name)?;
            None
        }
    };
    let topology = if exchange.has_neighbours() {
        Some(mixing::topology(table)?)
    } else {
        absent(&table.topology, "architecture.topology", name)?;
        absent(&table.degree, "architecture.degree", name)?;
        if exchange != ExchangeKind::AllReduce {
            absent(&table.group, "architecture.group", name)?;
        }
        absent(&table.budget, "architecture.budget", name)?;
        None
    };
    Ok(Exchanges {
        exchange,
        contribution,
        topology,
        rate,
    })
}

/// Codec and whether what it leaves out is fed back: by default where the codec needs it, and not in
/// differences to replicas, which hold what was left out.
pub(super) fn compression(
    table: &Compression,
    exchange: ExchangeKind,
) -> Result<(CodecKind, bool), StrategyError> {
    let name = choose(&table.codec, "f32", "compression.codec", &CODECS)?;
    let codec = CodecKind::from_table(name, &table.parameters)?;
    let needed = codec.build().properties().needs_feedback && exchange != ExchangeKind::Replicas;
    let feedback = table.error_feedback.unwrap_or(needed);
    Ok((codec, feedback))
}

/// Deadlines that are not given follow the one below or above them where the default would not fit.
pub(super) fn deadlines(table: &Deadlines) -> Result<DeadlinePlan, StrategyError> {
    let default = DeadlinePlan::default();
    let given = [
        ("deadlines.floor_ms", table.floor_ms),
        ("deadlines.initial_ms", table.initial_ms),
        ("deadlines.ceiling_ms", table.ceiling_ms),
    ];
    for (key, value) in given {
        if let Some(ms) = value {
            let ok = (1..=DEADLINE_MS_MAX).contains(&ms);
            range(ok, key, ms as f64, "from 1 millisecond to a day")?;
        }
    }
    let [floor, initial, ceiling] = given.map(|(_, ms)| ms.map(Duration::from_millis));
    let highest = ceiling.or(initial).or(floor).unwrap_or(default.ceiling);
    let ceiling = ceiling.unwrap_or(default.ceiling.max(highest));
    let floor = floor.unwrap_or(default.floor.min(initial.unwrap_or(ceiling)).min(ceiling));
    let initial = initial.unwrap_or(default.initial.clamp(floor.min(ceiling), ceiling));
    if floor > initial || initial > ceiling {
        return Err(StrategyError::Refused {
            key: "deadlines",
            reason: "a deadline lies between floor and ceiling, and starts at the initial one",
            remedy: "make floor_ms <= initial_ms <= ceiling_ms",
        });
    }
    Ok(DeadlinePlan {
        floor,
        initial,
        ceiling,
    })
}

impl Deadlines {
    /// Writes deadlines down.
    pub(super) fn from_plan(plan: &DeadlinePlan) -> Self {
        let ms = |time: Duration| u64::try_from(time.as_millis()).ok();
        Self {
            floor_ms: ms(plan.floor),
            initial_ms: ms(plan.initial),
            ceiling_ms: ms(plan.ceiling),
        }
    }
}
