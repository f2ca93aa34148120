//! How a swarm is cut into groups: from the table of the configuration to the plan, and what a grid
//! cannot carry. What cells cannot carry is with their exchange.

use super::error::{no_liars, refuse, refused};
use super::methods::{CELL, DEALING, GROUPING, ROW};
use super::tables::Agreement;
use super::validate::{absent, choose_of, range};
use super::{Strategy, StrategyError, methods};
use crate::compress::Reduction;
use murmurate_protocol::limits::{GRID_COLUMNS_MAX, GROUP_MEMBERS_MAX};
use murmurate_protocol::{ExchangeKind, Grouping, Layers, Schedule};

const KEY: &str = GROUPING.name;

/// The grouping, and the exchange, that averages parameters over cells.
pub(super) const CELLS: &str = methods::CELLS;

pub(super) const GROUPINGS: [&str; 4] = ["auto", "flat", "grid", CELLS];

/// Cells along the axes of a grid, and random ones.
pub(super) const DEALINGS: [&str; 2] = [AXES, RANDOM];

/// Cells along another axis in each round.
pub(super) const AXES: &str = "axes";

/// Random cells, others in each round.
pub(super) const RANDOM: &str = "random";

/// What the table says; `None` leaves it to the number of peers.
pub(super) fn read(
    exchange: ExchangeKind,
    table: &Agreement,
) -> Result<Option<Grouping>, StrategyError> {
    if exchange.facts().deals_cells {
        return cells(exchange, table).map(Some);
    }
    absent(&table.cell, CELL.name, methods::label(exchange))?;
    absent(&table.dealing, DEALING.name, methods::label(exchange))?;
    if !exchange.agrees() {
        absent(&table.grouping, KEY, methods::label(exchange))?;
        return absent(&table.row, ROW.name, methods::label(exchange)).map(|()| None);
    }
    let row = table.row.unwrap_or(0);
    let ok = (0..=GRID_COLUMNS_MAX as i64).contains(&row);
    range(
        ok,
        ROW.name,
        row as f64,
        "from 0 to 256; 0 chooses by the size",
    )?;
    let grid = Grouping::Grid { row: row as u16 };
    Ok(match choose_of(&table.grouping, "auto", KEY, &GROUPINGS)? {
        "grid" => Some(grid),
        "flat" => Some(Grouping::Flat),
        _ if row > 0 => Some(grid),
        _ => None,
    })
}

/// The table that says so.
pub(super) fn table(grouping: Grouping) -> Agreement {
    let (name, row, dealing) = match grouping {
        Grouping::Flat => ("flat", 0, None),
        Grouping::Grid { row } => ("grid", row, None),
        Grouping::Cells { .. } => (CELLS, 0, Some(AXES)),
        Grouping::RandomCells { .. } => (CELLS, 0, Some(RANDOM)),
    };
    Agreement {
        liars: None,
        grouping: Some(name.to_owned()),
        row: (row > 0).then(|| i64::from(row)),
        cell: grouping.cell().map(i64::from),
        dealing: dealing.map(str::to_owned),
    }
}

/// The cells that the table says.
fn cells(exchange: ExchangeKind, table: &Agreement) -> Result<Grouping, StrategyError> {
    let grouping = choose_of(&table.grouping, "auto", KEY, &GROUPINGS)?;
    if grouping != CELLS && grouping != "auto" {
        return refused(
            KEY,
            "this exchange averages over cells",
            "use \"cells\", or exchange = \"all-reduce\"",
        )
        .map(|()| Grouping::Flat);
    }
    absent(&table.row, ROW.name, methods::label(exchange))?;
    let holds = |cell| (2.0..=GROUP_MEMBERS_MAX as f64).contains(&cell);
    let cell = CELL.given(table.cell.map(|cell| cell as f64), holds)? as u16;
    Ok(
        match choose_of(&table.dealing, AXES, DEALING.name, &DEALINGS)? {
            RANDOM => Grouping::RandomCells { cell },
            _ => Grouping::Cells { cell },
        },
    )
}

pub(super) fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    match strategy.grouping() {
        Some(Grouping::Grid { .. }) => carries(strategy),
        _ => Ok(()),
    }
}

/// Refuses what rows and columns cannot carry of a strategy.
fn carries(strategy: &Strategy) -> Result<(), StrategyError> {
    const FLAT: &str = "use grouping = \"flat\", whose group holds 64 peers";
    refuse(
        strategy.exchange() != ExchangeKind::AllReduce
            || strategy.schedule() != Schedule::Butterfly,
        KEY,
        "a grid sums contributions by rows and columns, which is an all-reduce along the butterfly",
        "use exchange = \"all-reduce\" with schedule = \"butterfly\", or grouping = \"flat\"",
    )?;
    let rule = strategy.aggregation();
    refuse(
        rule.is_masked(),
        KEY,
        "rows pass on means of few members, and masks cancel in the sum of a whole group",
        FLAT,
    )?;
    refuse(
        !rule.is_mean() && rule.privacy().is_none(),
        KEY,
        "a row passes on the mean of its contributions, and a robust rule must see each of them",
        FLAT,
    )?;
    refuse(
        strategy.codec().properties().reduction == Reduction::TwoPasses,
        KEY,
        "a row passes on the mean of its contributions, and no owner would ask for second ones",
        FLAT,
    )?;
    refuse(
        strategy.signs(),
        KEY,
        "no other peer sees what a row's member summed, so a grid does not survive liars",
        no_liars!("use grouping = \"flat\""),
    )?;
    refuse(
        strategy.synchronization().pace.is_agreed(),
        KEY,
        "the pace follows what the members of a group agree on, and a grid has no one group",
        "use synchronization.pace = \"decay\", or grouping = \"flat\"",
    )?;
    let overlap = strategy.overlap_plan();
    refuse(
        overlap.layers != Layers::Together || overlap.late_steps > 0,
        KEY,
        "a grid exchanges after the round's training",
        "set overlap.late_steps to 0 and leave overlap.layers out, or use grouping = \"flat\"",
    )
}

impl Strategy {
    /// How a swarm is cut into groups; `None` where the number of peers decides.
    pub const fn grouping(&self) -> Option<Grouping> {
        self.groups.grouping
    }

    /// Why its exchange has one group of at most 64, where it has that.
    pub(crate) fn why_flat(&self) -> &'static str {
        match (self.groups.grouping, carries(self)) {
            (_, Err(StrategyError::Refused { reason, .. })) => reason,
            (Some(Grouping::Flat), _) => "agreement.grouping is \"flat\"",
            _ => "agreement.grouping leaves it to the run, which has no grid",
        }
    }

    /// The same strategy for a swarm of this many peers: where the configuration leaves it open, more
    /// peers than one group holds form a grid, if a grid can carry the strategy.
    #[must_use]
    pub fn for_peers(mut self, peers: usize) -> Self {
        if self.groups.grouping.is_none() && peers > GROUP_MEMBERS_MAX && carries(&self).is_ok() {
            self.groups.grouping = Some(Grouping::Grid { row: 0 });
        }
        self
    }
}
