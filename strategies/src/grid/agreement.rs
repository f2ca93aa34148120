//! What a group's members expect of each other: from the table of the configuration to the plan.

use super::StrategyError;
use super::grouping;
use super::methods::{self, LIARS};
use super::strategy::GroupChoice;
use super::tables::{Agreement, Liars};
use super::validate::{absent, range};
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use murmurate_protocol::{AgreementPlan, ExchangeKind};

const KEY: &str = LIARS.name;

/// Every group survives as many liars as one of its size can.
const MAX: &str = "max";

/// What the table says of groups.
pub(super) fn read(
    exchange: ExchangeKind,
    table: &Agreement,
) -> Result<GroupChoice, StrategyError> {
    Ok(GroupChoice {
        liars: liars(exchange, table)?,
        grouping: grouping::read(exchange, table)?,
    })
}

fn liars(exchange: ExchangeKind, table: &Agreement) -> Result<Option<u16>, StrategyError> {
    if !exchange.agrees() {
        return absent(&table.liars, KEY, methods::label(exchange)).map(|()| None);
    }
    match &table.liars {
        None => Ok(None),
        Some(Liars::Name(name)) if name == MAX => Ok(Some(u16::MAX)),
        Some(Liars::Name(name)) => Err(StrategyError::unknown(KEY, name, &[MAX])),
        Some(Liars::Count(liars)) => {
            let most = (GROUP_MEMBERS_MAX as i64 - 1) / 3;
            let ok = (0..=most).contains(liars);
            range(ok, KEY, *liars as f64, LIARS.range)?;
            Ok(Some(*liars as u16))
        }
    }
}

impl GroupChoice {
    /// Its part of the plan; the rest is as usual.
    pub(super) fn plan(self) -> AgreementPlan {
        AgreementPlan {
            liars: self.liars.unwrap_or(0),
            grouping: self.grouping.unwrap_or_default(),
            ..AgreementPlan::default()
        }
    }
}

impl Agreement {
    pub(super) fn is_default(&self) -> bool {
        self == &Self::default()
    }

    pub(super) fn of(GroupChoice { liars, grouping }: GroupChoice) -> Self {
        let liars = liars.map(|liars| match liars {
            u16::MAX => Liars::Name(MAX.to_owned()),
            count => Liars::Count(i64::from(count)),
        });
        let rest = grouping.map(grouping::table).unwrap_or_default();
        Self { liars, ..rest }
    }
}
