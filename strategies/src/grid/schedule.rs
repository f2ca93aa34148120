//! Schedules of an all-reduce: between the written table and the plan, and what they need of the rest.

use super::registry::SCHEDULES;
use super::tables::Architecture;
use super::validate::{absent, choose, count};
use super::{Strategy, StrategyError};
use crate::aggregate::AggregationKind;
use murmurate_protocol::{ExchangeKind, Schedule};

/// The largest relative squared error with which a partial sum may be written down: that of bf16.
/// Whoever it passes rounds it anew, and nothing feeds that back.
const ERROR_MAX: f64 = 1.0 / 65536.0;

/// The schedule; only an all-reduce has one.
pub(super) fn read(
    exchange: ExchangeKind,
    table: &Architecture,
) -> Result<Schedule, StrategyError> {
    let key = "architecture.schedule";
    if exchange != ExchangeKind::AllReduce {
        let name = table.exchange.as_deref().unwrap_or("gossip");
        return absent(&table.schedule, key, name).map(|()| Schedule::Butterfly);
    }
    let name = choose(&table.schedule, "butterfly", key, &SCHEDULES)?;
    if name != "hierarchical" {
        absent(&table.group, "architecture.group", name)?;
    }
    Ok(match name {
        "ring" => Schedule::Ring,
        "recursive-doubling" => Schedule::RecursiveDoubling,
        "halving-doubling" => Schedule::HalvingDoubling,
        "binary-tree" => Schedule::BinaryTree,
        "double-tree" => Schedule::DoubleTree,
        "torus" => Schedule::Torus,
        "hierarchical" => {
            let value = table.group.unwrap_or(4);
            let island = count("architecture.group", value, [2, 64], "from 2 to 64")?;
            Schedule::Hierarchical {
                island: island as u16,
            }
        }
        _ => Schedule::Butterfly,
    })
}

impl Architecture {
    /// Writes a schedule down.
    pub(super) fn set_schedule(&mut self, schedule: Schedule) {
        self.schedule = Some(schedule.name().to_owned());
        if let Schedule::Hierarchical { island } = schedule {
            self.group = Some(usize::from(island));
        }
    }
}

/// Refuses what no schedule that passes partial sums on can do.
pub(super) fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    if !strategy.schedule().relays() {
        return Ok(());
    }
    let refused = |reason, remedy| {
        Err(StrategyError::Refused {
            key: "architecture.schedule",
            reason,
            remedy,
        })
    };
    if strategy.aggregation() != AggregationKind::WeightedMean {
        return refused(
            "a robust rule looks at every contribution apart, and this schedule adds them up on their way",
            "use \"butterfly\", or rule = \"weighted-mean\"",
        );
    }
    let sums = strategy.codec().aggregate().properties();
    if sums.stochastic || sums.error > ERROR_MAX {
        return refused(
            "partial sums of this codec would be rounded anew by everybody they pass, coarsely, and nothing feeds that back",
            "use \"butterfly\", or codec = \"bf16\"",
        );
    }
    Ok(())
}
