//! Schedules of an all-reduce: between the written table and the plan, and what they require of a
//! strategy's other choices.

use super::registry::SCHEDULES;
use super::tables::Architecture;
use super::validate::{absent, choose};
use super::{Strategy, StrategyError};
use crate::aggregate::AggregationKind;
use crate::parameter::{self, Parameter, Parameters, Range};
use murmurate_protocol::Schedule;

/// The largest relative squared error with which a partial sum may be encoded: that of bf16. Each
/// member that passes it on rounds it again, and no error feedback makes up for that.
const ERROR_MAX: f64 = 1.0 / 65536.0;

/// The key of a schedule with islands.
pub(super) const GROUP: Parameter = Parameter {
    name: "group",
    range: Range::Whole(2, 64),
    default: Some(4.0),
    about: "peers of an island",
};

const KEY: &str = "architecture.schedule";

/// Whether a schedule has such a key.
pub(super) fn has(key: &str) -> bool {
    parameter_names().contains(&key)
}

/// The names of all keys of schedules.
pub(super) fn parameter_names() -> Vec<&'static str> {
    parameter::names(SCHEDULES.iter().map(|entry| entry.parameters))
}

/// No schedule: of an exchange without one.
pub(super) fn none(name: &Option<String>, exchange: &str) -> Result<Schedule, StrategyError> {
    absent(name, KEY, exchange).map(|()| Schedule::Butterfly)
}

/// A schedule by its name, with its own keys.
pub(super) fn read(name: &Option<String>, own: &toml::Table) -> Result<Schedule, StrategyError> {
    let name = choose(name, "butterfly", KEY, &SCHEDULES)?;
    let entry = SCHEDULES.iter().find(|entry| entry.name == name);
    let (method, list) = entry.map_or(("", &[][..]), |entry| (entry.name, entry.parameters));
    let table = "architecture";
    let own = Parameters {
        table,
        method,
        list,
    }
    .read(own)?;
    Ok(match name {
        "ring" => Schedule::Ring,
        "recursive-doubling" => Schedule::RecursiveDoubling,
        "halving-doubling" => Schedule::HalvingDoubling,
        "binary-tree" => Schedule::BinaryTree,
        "double-tree" => Schedule::DoubleTree,
        "torus" => Schedule::Torus,
        "hierarchical" => Schedule::Hierarchical {
            island: own[0] as u16,
        },
        _ => Schedule::Butterfly,
    })
}

impl Architecture {
    /// Writes a schedule down.
    pub(super) fn set_schedule(&mut self, schedule: Schedule) {
        self.schedule = Some(schedule.name().to_owned());
        if let Schedule::Hierarchical { island } = schedule {
            let group = toml::Value::Integer(i64::from(island));
            self.parameters.insert(GROUP.name.to_owned(), group);
        }
    }
}

/// Refuses what a schedule that passes partial sums on cannot do.
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
            "a robust rule needs the contributions apart, and this schedule adds them up on their way",
            "use \"butterfly\", or rule = \"weighted-mean\"",
        );
    }
    let sums = strategy.codec().aggregate().properties();
    if sums.stochastic || sums.error > ERROR_MAX {
        return refused(
            "every member on the way would round partial sums of this codec coarsely, and no error feedback makes up for that",
            "use \"butterfly\", or codec = \"bf16\"",
        );
    }
    Ok(())
}
