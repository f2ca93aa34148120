//! Checks of single values: names become kinds, defaults are filled in, ranges are checked.
//! `refuse` checks whether methods work together.

use super::entry::{Entry, names};
use super::error::refuse;
use super::tables::{Deadlines, Synchronization};
use super::{StrategyError, later};
use crate::kind::{Kind, Spec};
use crate::names::hint;
use crate::parameter::Range;
use core::time::Duration;
use murmurate_protocol::{DeadlinePlan, StepBudget};
use serde::Serialize;

/// The longest round: a year.
const ROUND_SECONDS_MAX: f64 = 365.0 * 86_400.0;

/// The longest deadline: a day.
const DEADLINE_MS_MAX: u64 = 86_400_000;

/// The value of a key that chooses from a list, checked against the list.
pub(super) fn choose<'a>(
    value: &'a Option<String>,
    default: &'a str,
    key: &str,
    list: &[Entry],
) -> Result<&'a str, StrategyError> {
    choose_of(value, default, key, &names(list))
}

/// As [`choose`], by the names of a list.
pub(super) fn choose_of<'a>(
    value: &'a Option<String>,
    default: &'a str,
    key: &str,
    known: &[&str],
) -> Result<&'a str, StrategyError> {
    let found = value.as_deref().unwrap_or(default);
    if known.contains(&found) {
        return Ok(found);
    }
    later::check(key, found)?;
    Err(StrategyError::unknown(key, found, known))
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
    Err(StrategyError::range(key, found, needed))
}

/// The method that a table names, with the values of its keys. Refuses keys of other methods of the list.
pub(super) fn read_method<S: Spec>(
    name: &Option<String>,
    keys: &toml::Table,
) -> Result<Kind<S>, StrategyError> {
    let known: Vec<_> = S::list().iter().map(|spec| spec.keys().method).collect();
    let name = choose_of(name, S::usual().keys().method, S::KEY, &known)?;
    let mut all = S::list().iter().copied();
    let spec = all.find(|spec| spec.keys().method == name);
    let spec = spec.expect("the name is in the list");
    let own = spec.keys();
    let of_others = |key: &&String| S::list().iter().any(|spec| spec.keys().has(key));
    if let Some(key) = keys.keys().filter(of_others).find(|key| !own.has(key)) {
        return Err(does_not_apply(own.table, key, name));
    }
    let mut given = Vec::new();
    for parameter in own.list {
        let key = || format!("{}.{}", own.table, parameter.name);
        match (keys.get(parameter.name), parameter.range) {
            (Some(value), range) => {
                for number in numbers(&range, key(), value)? {
                    given.push((parameter.name, number));
                }
            }
            (None, Range::Given(_, needed)) => {
                return Err(StrategyError::Missing { key: key(), needed });
            }
            (None, _) => {}
        }
    }
    let kind = Kind::of(spec, &given)?;
    match S::unfit(&kind) {
        None => Ok(kind),
        Some(parameter) => Err(outside(&kind, parameter)),
    }
}

/// The numbers of a value, all within the range.
fn numbers(range: &Range, key: String, value: &toml::Value) -> Result<Vec<f64>, StrategyError> {
    let numbers = match range.numbers(value) {
        Ok(numbers) => numbers,
        Err(message) => return Err(StrategyError::Type { key, message }),
    };
    let Some(numbers) = numbers else {
        let found: String = value.clone().try_into().unwrap_or_default();
        let hint = match range {
            Range::Names(names) => hint(&found, names),
            _ => range.to_string(),
        };
        return Err(StrategyError::UnknownValue { key, found, hint });
    };
    match numbers.iter().find(|number| !range.contains(**number)) {
        None => Ok(numbers),
        Some(number) => Err(StrategyError::range(&key, number, &range.to_string())),
    }
}

/// The refusal of a value that does not fit other keys.
pub(super) fn outside<S: Spec>(kind: &Kind<S>, parameter: &str) -> StrategyError {
    let own = kind.spec().keys();
    let found = own.list.iter().find(|known| known.name == parameter);
    StrategyError::Range {
        key: format!("{}.{parameter}", own.table),
        found: kind.number(parameter).to_string(),
        needed: found.map_or_else(String::new, |parameter| parameter.range.to_string()),
    }
}

/// The keys that no method of a list has.
pub(super) fn others<S: Spec>(keys: &toml::Table) -> toml::Table {
    let mut others = keys.clone();
    others.retain(|key, _| !S::list().iter().any(|spec| spec.keys().has(key)));
    others
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
            key: key.to_owned(),
            method: format!("`{method}`"),
        }),
    }
}

/// Refuses keys of a table that belong to other methods of the list than the chosen one. The list of
/// methods says which keys each has; keys of other lists are left to those.
pub(super) fn refuse_foreign(
    table: &str,
    written: &impl Serialize,
    list: &[Entry],
    chosen: &str,
) -> Result<(), StrategyError> {
    let written = toml::Table::try_from(written).unwrap_or_default();
    for key in written.keys() {
        let name = format!("{table}.{key}");
        let has = |entry: &&Entry| entry.keys.iter().any(|key| key.name == name);
        let mut owners = list.iter().filter(has).peekable();
        if owners.peek().is_some() && !owners.any(|entry| entry.name == chosen) {
            return Err(does_not_apply(table, key, chosen));
        }
    }
    Ok(())
}

/// The refusal of a key that a method does not take.
pub(super) fn does_not_apply(table: &str, key: &str, method: &str) -> StrategyError {
    StrategyError::DoesNotApply {
        key: format!("{table}.{key}"),
        method: format!("`{method}`"),
    }
}

pub(super) fn budget(table: &Synchronization) -> Result<StepBudget, StrategyError> {
    let (steps, seconds) = ("synchronization.inner_steps", "synchronization.round_time");
    match (table.inner_steps, table.round_time) {
        (Some(_), Some(_)) => Err(StrategyError::Refused {
            key: seconds,
            reason: "a round is bounded by inner steps or by time, not by both",
            remedy: "remove it or `synchronization.inner_steps`",
        }),
        (None, None) => {
            let needed = "give it, or `synchronization.round_time` in seconds";
            Err(StrategyError::missing(steps, needed))
        }
        (Some(0), None) => Err(StrategyError::range(steps, 0, "at least 1")),
        (Some(count), None) => Ok(StepBudget::Steps(count)),
        (None, Some(time)) => {
            let ok = (1e-3..=ROUND_SECONDS_MAX).contains(&time);
            range(ok, seconds, time, "from 0.001 seconds to a year")?;
            Ok(StepBudget::Time(Duration::from_secs_f64(time)))
        }
    }
}

/// A deadline that is not given has its default, or the nearest value between the given ones.
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
    refuse(
        floor > initial || initial > ceiling,
        "deadlines",
        "a deadline starts at the initial one and stays between floor and ceiling",
        "make floor_ms <= initial_ms <= ceiling_ms",
    )?;
    Ok(DeadlinePlan {
        floor,
        initial,
        ceiling,
    })
}

impl Deadlines {
    pub(super) fn from_plan(plan: &DeadlinePlan) -> Self {
        let ms = |time: Duration| u64::try_from(time.as_millis()).ok();
        Self {
            floor_ms: ms(plan.floor),
            initial_ms: ms(plan.initial),
            ceiling_ms: ms(plan.ceiling),
        }
    }
}
