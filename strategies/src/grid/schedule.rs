//! Schedules of an all-reduce: from the written table to the plan, and back.

use super::StrategyError;
use super::registry::{GROUP, SCHEDULES};
use super::tables::Architecture;
use super::validate::{absent, choose};
use crate::parameter::{self, Parameters};
use murmurate_protocol::Schedule;

const KEY: &str = "architecture.schedule";

/// Whether a schedule has such a key.
pub(super) fn has(key: &str) -> bool {
    parameter_names().contains(&key)
}

/// The names of all keys of schedules.
pub(super) fn parameter_names() -> Vec<&'static str> {
    parameter::names(SCHEDULES.iter().map(|entry| entry.parameters))
}

/// The schedule of an exchange without one: refuses the key.
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
