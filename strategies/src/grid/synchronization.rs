//! Which peers wait for which in a round, and how inner steps change with the round: from the table
//! of the configuration to the plan. The bounds of a center are in the file of its exchange.

use super::entry::hint;
use super::registry::PACES;
use super::tables::{Measured, Synchronization as Table, Tables};
use super::validate::{absent, choose, count, range, refuse_foreign};
use super::{Strategy, StrategyError, methods};
use crate::correct::{Companion, CorrectionKind};
use core::time::Duration;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use murmurate_protocol::{
    Contribution, ExchangeKind, Grace, Pace, Quorum, Sampling, Synchronization,
};

/// The longest grace: a day.
const GRACE_MS_MAX: u64 = 86_400_000;

/// Inner steps after a switch by default: the paper's.
const SWITCH_INNER_STEPS: u32 = 16;

/// The factor on inner steps whose loss stagnates: the paper's.
const STAGNATION_FACTOR: f64 = 0.5;

/// Rounds after which inner steps follow from the waits again.
const MEASURE_EVERY: u64 = 8;

/// The share of the time that training should take.
const TRAIN_SHARE: f64 = 0.9;

/// The most inner steps of a round by default: those of DiLoCo.
const MOST: u32 = 500;

/// Parts of a factor and a share.
const THOUSAND: f64 = 1e3;

/// Parts of a fraction.
const MILLION: f64 = 1e6;

/// The kinds of grace.
const GRACES: [&str; 2] = ["fixed", "adaptive"];

/// What the table says of an exchange's rounds.
pub(super) fn read(
    exchange: ExchangeKind,
    (table, waits): (&Table, &Measured),
) -> Result<Synchronization, StrategyError> {
    Ok(Synchronization {
        pace: pace(exchange, table, waits)?,
        quorum: quorum(exchange, table)?,
        sampling: sampling(exchange, table)?,
    })
}

fn pace(exchange: ExchangeKind, table: &Table, waits: &Measured) -> Result<Pace, StrategyError> {
    let name = choose(&table.pace, "steady", "synchronization.pace", &PACES)?;
    refuse_foreign("synchronization", table, &PACES, name)?;
    refuse_foreign("synchronization", waits, &PACES, name)?;
    let pace = match name {
        "switch" => Pace::Switch {
            round: given("synchronization.switch_round", table.switch_round)?,
            steps: table.switch_inner_steps.unwrap_or(SWITCH_INNER_STEPS),
        },
        "decay" => Pace::Decay {
            every: given("synchronization.decay_every", table.decay_every)?,
        },
        "balanced" => Pace::Balanced,
        "loss" => Pace::Loss {
            every: given("synchronization.loss_every", table.loss_every)?,
            factor: stagnation(table.stagnation_factor.unwrap_or(STAGNATION_FACTOR))?,
        },
        "measured" => measured(table, waits)?,
        _ => return Ok(Pace::Steady),
    };
    if let Pace::Switch { steps: 0, .. } = pace {
        let key = "synchronization.switch_inner_steps";
        range(false, key, 0.0, "at least 1")?;
    }
    if table.round_time.is_some() {
        return Err(StrategyError::Refused {
            key: "synchronization.pace",
            reason: "a round that is bounded by time takes as many inner steps as fit, in every round",
            remedy: "give `synchronization.inner_steps` in place of `synchronization.round_time`",
        });
    }
    if pace == Pace::Balanced && !exchange.agrees() {
        return Err(StrategyError::Refused {
            key: "synchronization.pace",
            reason: "peers learn who is slow from what they tell all others when they have trained, and only peers that agree on every round do so",
            remedy: "use exchange = \"all-reduce\" or \"gathered\", or `synchronization.round_time`, which every exchange has",
        });
    }
    if pace.is_agreed() && !exchange.agrees() {
        return Err(StrategyError::Refused {
            key: "synchronization.pace",
            reason: "peers measure different losses and waits, and only peers that agree on every round agree on one",
            remedy: "use exchange = \"all-reduce\" or \"gathered\", or pace = \"decay\", which every exchange has",
        });
    }
    Ok(pace)
}

/// A pace by the waits. Inner steps that are not given are refused elsewhere.
fn measured(table: &Table, waits: &Measured) -> Result<Pace, StrategyError> {
    let every = waits.measure_every.unwrap_or(MEASURE_EVERY);
    let key = "synchronization.measure_every";
    range(every > 0, key, every as f64, "at least 1")?;
    let share = waits.train_share.unwrap_or(TRAIN_SHARE);
    let thousandths = (share * THOUSAND).round();
    let ok = (1.0..THOUSAND).contains(&thousandths);
    range(
        ok,
        "synchronization.train_share",
        share,
        "from 0.001 to 0.999",
    )?;
    let start = table.inner_steps.unwrap_or(1);
    let least = waits.inner_steps_least.unwrap_or(1);
    let key = "synchronization.inner_steps_least";
    let ok = (1..=start).contains(&least);
    range(
        ok,
        key,
        f64::from(least),
        "from 1 to `synchronization.inner_steps`",
    )?;
    let most = waits.inner_steps_most.unwrap_or(MOST.max(start));
    let key = "synchronization.inner_steps_most";
    range(
        most >= start,
        key,
        f64::from(most),
        "at least `synchronization.inner_steps`",
    )?;
    Ok(Pace::Measured {
        every,
        share: thousandths as u16,
        least,
        most,
    })
}

/// The factor in thousandths.
fn stagnation(factor: f64) -> Result<u16, StrategyError> {
    let thousandths = (factor * THOUSAND).round();
    let key = "synchronization.stagnation_factor";
    let ok = (1.0..=THOUSAND).contains(&thousandths);
    range(ok, key, factor, "from 0.001 to 1")?;
    Ok(thousandths as u16)
}

/// A count of rounds that must be there.
fn given(key: &'static str, rounds: Option<u64>) -> Result<u64, StrategyError> {
    let needed = "give the number of rounds";
    let rounds = rounds.ok_or(StrategyError::Missing { key, needed })?;
    range(rounds > 0, key, rounds as f64, "at least 1").map(|()| rounds)
}

fn quorum(exchange: ExchangeKind, table: &Table) -> Result<Quorum, StrategyError> {
    if !exchange.agrees() {
        let method = methods::label(exchange);
        absent(&table.enough, "synchronization.enough", method)?;
        absent(&table.grace, "synchronization.grace", method)?;
        absent(&table.grace_ms, "synchronization.grace_ms", method)?;
        return Ok(Quorum::default());
    }
    let (key, enough) = ("synchronization.enough", table.enough.unwrap_or(0));
    let enough = count(key, enough, [0, GROUP_MEMBERS_MAX], "from 0 to 64")?;
    let key = "synchronization.grace";
    let grace = match table.grace.as_deref().unwrap_or("fixed") {
        "fixed" => {
            let (key, ms) = ("synchronization.grace_ms", table.grace_ms.unwrap_or(0));
            let needed = "from 0 milliseconds to a day";
            range(ms <= GRACE_MS_MAX, key, ms as f64, needed)?;
            Grace::Fixed(Duration::from_millis(ms))
        }
        "adaptive" => {
            absent(&table.grace_ms, "synchronization.grace_ms", "adaptive")?;
            Grace::Adaptive
        }
        other => {
            return Err(StrategyError::UnknownValue {
                key: key.to_owned(),
                found: other.to_owned(),
                hint: hint(other, &GRACES),
            });
        }
    };
    Ok(Quorum {
        enough: enough as u16,
        grace,
    })
}

/// Refuses rounds of changing length for methods that need one inner step in each round.
pub(super) fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    let gradients = strategy.contribution() == Contribution::Gradient;
    let flows = strategy.companion() == Companion::Flows;
    let diffuses = flows || *strategy.correction_kind() == CorrectionKind::ExactDiffusion;
    if strategy.synchronization().pace != Pace::Steady && (gradients || diffuses) {
        return Err(StrategyError::Refused {
            key: "synchronization.pace",
            reason: "gradients, trackers and moves of exact diffusion are exchanged after every inner step",
            remedy: "leave it out with inner_steps = 1, or use contribution = \"delta\"",
        });
    }
    let agreed = strategy.synchronization().pace.is_agreed();
    if agreed && strategy.liars().is_some_and(|liars| liars > 0) {
        return Err(StrategyError::Refused {
            key: "synchronization.pace",
            reason: "what members sign says nothing of their loss or their waits",
            remedy: "set agreement.liars to 0, or use pace = \"decay\"",
        });
    }
    let sampled = strategy.synchronization().sampling != Sampling::ALL;
    if sampled && strategy.schedule().relays() {
        return Err(StrategyError::Refused {
            key: "synchronization.fraction",
            reason: "partial sums pass through every member of this schedule, including those that have nothing to add",
            remedy: "use schedule = \"butterfly\", or leave it out",
        });
    }
    if sampled && strategy.contribution() != Contribution::Delta {
        return Err(StrategyError::Refused {
            key: "synchronization.fraction",
            reason: "peers are drawn for a round of inner steps, and a gradient is of one",
            remedy: "use contribution = \"delta\", or leave it out",
        });
    }
    if sampled && !strategy.companion().is_none() {
        return Err(StrategyError::Refused {
            key: "synchronization.fraction",
            reason: "what travels beside the deltas is a mean over all peers, and peers that are not drawn contribute nothing",
            remedy: "leave it out, or the correction",
        });
    }
    if sampled && strategy.overlap_plan().late_steps > 0 {
        return Err(StrategyError::Refused {
            key: "synchronization.fraction",
            reason: "a peer that is not drawn trains nothing during the exchange",
            remedy: "leave it out, or set overlap.late_steps = 0",
        });
    }
    Ok(())
}

fn sampling(exchange: ExchangeKind, table: &Table) -> Result<Sampling, StrategyError> {
    let key = "synchronization.fraction";
    if !exchange.facts().may_leave_out {
        return absent(&table.fraction, key, methods::label(exchange)).map(|()| Sampling::ALL);
    }
    let fraction = table.fraction.unwrap_or(1.0);
    let millionths = (fraction * MILLION).round();
    let ok = (1.0..=MILLION).contains(&millionths);
    range(ok, key, fraction, "from a millionth to 1")?;
    Ok(Sampling {
        per_million: millionths as u32,
    })
}

impl Tables {
    /// Writes it down.
    pub(super) fn set_synchronization(
        &mut self,
        exchange: ExchangeKind,
        synchronization: &Synchronization,
    ) {
        let table = &mut self.synchronization;
        let name = match synchronization.pace {
            Pace::Steady => "steady",
            Pace::Switch { round, steps } => {
                table.switch_round = Some(round);
                table.switch_inner_steps = Some(steps);
                "switch"
            }
            Pace::Decay { every } => {
                table.decay_every = Some(every);
                "decay"
            }
            Pace::Balanced => "balanced",
            Pace::Loss { every, factor } => {
                table.loss_every = Some(every);
                table.stagnation_factor = Some(f64::from(factor) / THOUSAND);
                "loss"
            }
            Pace::Measured {
                every,
                share,
                least,
                most,
            } => {
                let waits = Measured {
                    measure_every: Some(every),
                    train_share: Some(f64::from(share) / THOUSAND),
                    inner_steps_least: Some(least),
                    inner_steps_most: Some(most),
                };
                let written = toml::Table::try_from(waits).unwrap_or_default();
                table.parameters.extend(written);
                "measured"
            }
        };
        table.pace = Some(name.to_owned());
        if exchange.facts().may_leave_out {
            table.fraction = Some(f64::from(synchronization.sampling.per_million) / MILLION);
        }
        if !exchange.agrees() {
            return;
        }
        let Quorum { enough, grace } = synchronization.quorum;
        table.enough = Some(usize::from(enough));
        table.grace = Some(match grace {
            Grace::Fixed(grace) => {
                table.grace_ms = u64::try_from(grace.as_millis()).ok();
                "fixed".to_owned()
            }
            Grace::Adaptive => "adaptive".to_owned(),
        });
    }
}
