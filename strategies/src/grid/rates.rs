//! Schedules of the inner learning rate, and tensors without weight decay: from the written table to
//! their kinds, and back.

use super::registry::RATES;
use super::tables::Inner;
use super::validate::{choose, does_not_apply, others};
use super::{Strategy, StrategyError};
use crate::correct::{CorrectionSpec, Needs};
use crate::inner::{InnerKind, InnerSpec, RateSchedule, RateShape};
use crate::parameter::{self, Parameters};

const KEY: &str = "inner.schedule";

/// The most patterns of `inner.no_decay` and of `architecture.local`: more are better written as one.
pub(super) const PATTERNS_MAX: usize = 64;

/// The names of all keys of schedules.
pub(super) fn parameter_names() -> Vec<&'static str> {
    parameter::names(RATES.iter().map(|entry| entry.parameters))
}

fn parameters(name: &str) -> Parameters {
    let entry = RATES.iter().find(|entry| entry.name == name);
    let (method, list) = entry.map_or(("", &[][..]), |entry| (entry.name, entry.parameters));
    Parameters::new("inner", method, list)
}

pub(super) fn read(table: &Inner) -> Result<RateSchedule, StrategyError> {
    let name = choose(&table.schedule, "constant", KEY, &RATES)?;
    let own = others::<InnerSpec>(&others::<CorrectionSpec>(&table.parameters));
    let [warmup, rounds, final_rate, decay, ..] = parameters(name).read(&own)?;
    let decay_rounds = decay as u64;
    Ok(RateSchedule {
        shape: match name {
            "linear" => RateShape::Linear { final_rate },
            "cosine" => RateShape::Cosine { final_rate },
            "wsd" => RateShape::Wsd {
                final_rate,
                decay_rounds,
            },
            _ => RateShape::Constant,
        },
        warmup_rounds: warmup as u64,
        rounds: rounds as u64,
    })
}

/// The patterns of tensors without weight decay.
pub(super) fn no_decay(table: &Inner, kind: &InnerKind) -> Result<Vec<String>, StrategyError> {
    let patterns = table.no_decay.clone().unwrap_or_default();
    if patterns.is_empty() {
        return Ok(patterns);
    }
    if !kind.has("weight_decay") {
        return Err(does_not_apply("inner", "no_decay", kind.name()));
    }
    if patterns.len() > PATTERNS_MAX {
        let (found, key) = (
            format!("a list of {} patterns", patterns.len()),
            "inner.no_decay",
        );
        return Err(StrategyError::range(
            key,
            found,
            "a list of at most 64 patterns",
        ));
    }
    Ok(patterns)
}

/// Refuses schedules with corrections that divide by the learning rate.
pub(super) fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    let needs = strategy.correction_kind().needs();
    let divides = matches!(needs, Needs::Mean | Needs::Mixing);
    if divides && !strategy.inner.rate.is_constant() {
        return super::error::refused(
            KEY,
            "this `inner.correction` divides by the learning rate and needs a constant one",
            "leave the schedule and `inner.warmup_rounds` out, or leave the correction out",
        );
    }
    Ok(())
}

impl Inner {
    /// Writes a schedule and patterns down, unless they are the default: so a plan without them has the
    /// hash that it had before there were schedules.
    pub(super) fn set_rate(&mut self, rate: &RateSchedule, no_decay: &[String]) {
        self.no_decay = (!no_decay.is_empty()).then(|| no_decay.to_vec());
        if rate.is_constant() {
            return;
        }
        let (name, final_rate, decay) = match rate.shape {
            RateShape::Constant => ("constant", 0.0, 0),
            RateShape::Linear { final_rate } => ("linear", final_rate, 0),
            RateShape::Cosine { final_rate } => ("cosine", final_rate, 0),
            RateShape::Wsd {
                final_rate,
                decay_rounds,
            } => ("wsd", final_rate, decay_rounds),
        };
        let mut values = parameter::Values::default();
        let all = [
            rate.warmup_rounds as f64,
            rate.rounds as f64,
            final_rate,
            decay as f64,
        ];
        values[..all.len()].copy_from_slice(&all);
        self.schedule = Some(name.to_owned());
        self.parameters.extend(parameters(name).write(&values));
    }
}
