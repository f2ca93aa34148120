//! How many lying members a group survives: from the table of the configuration to the plan.

use super::StrategyError;
use super::methods::{self, LIARS};
use super::tables::{Agreement, Liars};
use super::validate::{absent, range};
use crate::names::hint;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use murmurate_protocol::{ExchangeKind, Grouping};

const KEY: &str = LIARS.name;

/// Every group survives as many liars as one of its size can.
const MAX: &str = "max";

/// How many liars are survived; none where the table does not say.
pub(super) fn read(
    exchange: ExchangeKind,
    table: &Agreement,
) -> Result<Option<u16>, StrategyError> {
    if !exchange.agrees() {
        return absent(&table.liars, KEY, methods::label(exchange)).map(|()| None);
    }
    match &table.liars {
        None => Ok(None),
        Some(Liars::Name(name)) if name == MAX => Ok(Some(u16::MAX)),
        Some(Liars::Name(name)) => Err(StrategyError::UnknownValue {
            key: KEY.to_owned(),
            found: name.clone(),
            hint: hint(name, &[MAX]),
        }),
        Some(Liars::Count(liars)) => {
            let most = (GROUP_MEMBERS_MAX as i64 - 1) / 3;
            let ok = (0..=most).contains(liars);
            range(ok, KEY, *liars as f64, LIARS.range)?;
            Ok(Some(*liars as u16))
        }
    }
}

impl Agreement {
    /// Set for an empty table.
    pub(super) fn is_default(&self) -> bool {
        self == &Self::default()
    }

    /// Writes it down.
    pub(super) fn from_plan(liars: Option<u16>, grouping: Option<Grouping>) -> Self {
        let liars = liars.map(|liars| match liars {
            u16::MAX => Liars::Name(MAX.to_owned()),
            count => Liars::Count(i64::from(count)),
        });
        let row = match grouping {
            Some(Grouping::Grid { row }) if row > 0 => Some(i64::from(row)),
            _ => None,
        };
        let cell = grouping.and_then(Grouping::cell).map(i64::from);
        let dealing = match grouping {
            Some(Grouping::RandomCells { .. }) => Some(super::grouping::RANDOM.to_owned()),
            Some(Grouping::Cells { .. }) => Some(super::grouping::AXES.to_owned()),
            _ => None,
        };
        let grouping = grouping.map(|grouping| match grouping {
            Grouping::Flat => "flat".to_owned(),
            Grouping::Grid { .. } => "grid".to_owned(),
            Grouping::Cells { .. } | Grouping::RandomCells { .. } => {
                super::grouping::CELLS.to_owned()
            }
        });
        Self {
            liars,
            grouping,
            row,
            cell,
            dealing,
        }
    }
}
