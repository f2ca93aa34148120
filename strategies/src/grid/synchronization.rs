//! Which peers wait for which in a round: from the table of the configuration to the plan. The bounds of a center are in the file of its exchange.

use super::error::{no_liars, refuse};
use super::methods::{ENOUGH, FRACTION, GRACE, GRACE_MS};
use super::tables::{Synchronization as Table, Tables};
use super::validate::absent;
use super::{Strategy, StrategyError, methods, paces};
use crate::correct::{Companion, Needs};
use core::time::Duration;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use murmurate_protocol::{
    Contribution, ExchangeKind, Grace, Pace, Quorum, Sampling, Synchronization,
};

/// The longest grace: a day.
const GRACE_MS_MAX: f64 = 86_400_000.0;

const MILLION: f64 = 1e6;

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
        absent(&table.enough, ENOUGH.name, method)?;
        absent(&table.grace, GRACE.name, method)?;
        absent(&table.grace_ms, GRACE_MS.name, method)?;
        return Ok(Quorum::default());
    }
    let enough = table.enough.map(|enough| enough as f64);
    let enough = ENOUGH.given(enough, |enough| enough <= GROUP_MEMBERS_MAX as f64)?;
    let grace = match table.grace.as_deref().unwrap_or("fixed") {
        "fixed" => {
            let ms = table.grace_ms.map(|ms| ms as f64);
            let ms = GRACE_MS.given(ms, |ms| ms <= GRACE_MS_MAX)?;
            Grace::Fixed(Duration::from_millis(ms as u64))
        }
        "adaptive" => {
            absent(&table.grace_ms, GRACE_MS.name, "adaptive")?;
            Grace::Adaptive
        }
        other => return Err(StrategyError::unknown(GRACE.name, other, &GRACES)),
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
    refuse(
        strategy.synchronization().pace != Pace::Steady && (gradients || diffuses),
        "synchronization.pace",
        "gradients, trackers and moves of exact diffusion are exchanged after every inner step",
        "leave it out with inner_steps = 1, or use contribution = \"delta\"",
    )?;
    let agreed = strategy.synchronization().pace.is_agreed();
    refuse(
        agreed && strategy.signs(),
        "synchronization.pace",
        "what members sign says nothing of their loss or their waits",
        no_liars!("use pace = \"decay\""),
    )?;
    let sampled = strategy.synchronization().sampling != Sampling::ALL;
    refuse(
        sampled && strategy.schedule().relays(),
        "synchronization.fraction",
        "partial sums pass through every member of this schedule, including those that have nothing to add",
        "use schedule = \"butterfly\", or leave it out",
    )?;
    refuse(
        sampled && strategy.contribution() != Contribution::Delta,
        "synchronization.fraction",
        "peers are drawn for a round of inner steps, and a gradient is of one",
        "use contribution = \"delta\", or leave it out",
    )?;
    refuse(
        sampled && !strategy.companion().is_none(),
        "synchronization.fraction",
        "what travels beside the deltas is a mean over all peers, and peers that are not drawn contribute nothing",
        "leave it out, or the correction",
    )?;
    refuse(
        sampled && strategy.overlap_plan().late_steps > 0,
        "synchronization.fraction",
        "a peer that is not drawn trains nothing during the exchange",
        "leave it out, or set overlap.late_steps = 0",
    )
}

fn sampling(exchange: ExchangeKind, table: &Table) -> Result<Sampling, StrategyError> {
    if !exchange.facts().may_leave_out {
        return absent(&table.fraction, FRACTION.name, methods::label(exchange))
            .map(|()| Sampling::ALL);
    }
    let millionths = |fraction: f64| (fraction * MILLION).round();
    let holds = |fraction| (1.0..=MILLION).contains(&millionths(fraction));
    let fraction = FRACTION.given(table.fraction, holds)?;
    Ok(Sampling {
        per_million: millionths(fraction) as u32,
    })
}

impl Tables {
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
