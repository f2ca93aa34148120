//! Which peers wait for which in a round: from the table of the configuration to the plan. The bounds of a center are in the file of its exchange.

use super::entry::hint;
use super::tables::{Synchronization as Table, Tables};
use super::validate::{absent, count, range};
use super::{Strategy, StrategyError, methods, paces};
use crate::correct::{Companion, Needs};
use core::time::Duration;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use murmurate_protocol::{
    Contribution, ExchangeKind, Grace, Pace, Quorum, Sampling, Synchronization,
};

/// The longest grace: a day.
const GRACE_MS_MAX: u64 = 86_400_000;

/// Parts of a fraction.
const MILLION: f64 = 1e6;

/// The kinds of grace.
const GRACES: [&str; 2] = ["fixed", "adaptive"];

/// What the table says of an exchange's rounds.
pub(super) fn read(
    exchange: ExchangeKind,
    table: &Table,
) -> Result<Synchronization, StrategyError> {
    Ok(Synchronization {
        pace: paces::read(exchange, table)?,
        quorum: quorum(exchange, table)?,
        sampling: sampling(exchange, table)?,
    })
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
    let diffuses = flows || strategy.correction_kind().needs() == Needs::Moves;
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
        paces::write(synchronization.pace, table);
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
