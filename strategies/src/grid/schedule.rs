//! Schedules of an all-reduce: from the written table to the plan, and back.

use super::StrategyError;
use super::registry::{ISLANDS, LINK_LATENCY, LINK_ROUNDS, LINKS, SCHEDULES};
use super::tables::Architecture;
use super::validate::{absent, choose, refuse_foreign};
use crate::parameter::{self, Parameters};
use crate::topology::ISLAND;
use murmurate_protocol::{LinkCodes, LinkPlan, LinkTable, Schedule};

const KEY: &str = "architecture.schedule";

/// Set for the key of a schedule.
pub(super) fn has(key: &str) -> bool {
    parameter_names().contains(&key)
}

/// The names of all keys of schedules.
pub(super) fn parameter_names() -> Vec<&'static str> {
    parameter::names(SCHEDULES.iter().map(|entry| entry.parameters))
}

/// The schedule of an exchange without one: refuses its keys.
pub(super) fn none(table: &Architecture, exchange: &str) -> Result<Schedule, StrategyError> {
    absent(&table.schedule, KEY, exchange)?;
    absent(&table.link_mbit, LINKS.name, exchange)?;
    Ok(Schedule::Butterfly)
}

/// A schedule by its name, with its own keys, and the links that it was found for.
pub(super) fn read(
    written: &Architecture,
    own: &toml::Table,
) -> Result<(Schedule, Option<LinkTable>), StrategyError> {
    let name = choose(&written.schedule, "butterfly", KEY, &SCHEDULES)?;
    refuse_foreign("architecture", written, &SCHEDULES, name)?;
    let entry = SCHEDULES.iter().find(|entry| entry.name == name);
    let (method, list) = entry.map_or(("", &[][..]), |entry| (entry.name, entry.parameters));
    let own = Parameters::new("architecture", method, list).read(own)?;
    let schedule = match name {
        "ring" => Schedule::Ring,
        "recursive-doubling" => Schedule::RecursiveDoubling,
        "halving-doubling" => Schedule::HalvingDoubling,
        "binary-tree" => Schedule::BinaryTree,
        "double-tree" => Schedule::DoubleTree,
        "torus" => Schedule::Torus,
        "hierarchical" => {
            let island = own[0] as u16;
            if own[1] == 0.0 {
                Schedule::Hierarchical { island }
            } else {
                Schedule::Sites { island }
            }
        }
        "synthesized" => {
            if own[0] > 0.0 {
                return measured(&written.link_mbit, (own[0], own[1]));
            }
            let links = links(&written.link_mbit)?;
            return Ok((Schedule::synthesized(&links), Some(links)));
        }
        _ => Schedule::Butterfly,
    };
    Ok((schedule, None))
}

/// A schedule that is found again for what peers measure. It begins with the links that are given, if any are.
fn measured(
    given: &Option<toml::Value>,
    (every, latency_ms): (f64, f64),
) -> Result<(Schedule, Option<LinkTable>), StrategyError> {
    let table = given.as_ref().map(|_| links(given)).transpose()?;
    let plan = LinkPlan {
        every: every as u16,
        latency_micros: (1_000.0 * latency_ms) as u32,
        start: table.as_ref().map(LinkCodes::of).unwrap_or_default(),
    };
    Ok((Schedule::Measured(plan), table))
}

fn links(value: &Option<toml::Value>) -> Result<LinkTable, StrategyError> {
    let Some(value) = value else {
        return Err(StrategyError::missing(LINKS.name, LINKS.range));
    };
    let range = |found: String| StrategyError::range(LINKS.name, found, LINKS.range);
    let rows: Result<Vec<Vec<u32>>, _> = value.clone().try_into();
    let rows = rows.map_err(|_| range(value.to_string()))?;
    LinkTable::new(rows).map_err(|error| range(format!("no such table ({error})")))
}

impl Architecture {
    pub(super) fn set_schedule(&mut self, schedule: Schedule, links: Option<&LinkTable>) {
        // Links for which the butterfly is best are still links to find a schedule for.
        let name = links.map_or(schedule.name(), |_| "synthesized");
        self.schedule = Some(name.to_owned());
        if let Schedule::Hierarchical { island } | Schedule::Sites { island } = schedule {
            let sites = f64::from(u8::from(schedule.goes_by_sites()));
            let islands = [ISLAND.entry(island.into()), ISLANDS.entry(sites)];
            self.parameters.extend(islands);
        }
        let plan = schedule.link_plan();
        if links.is_some() || plan.is_some() {
            let own = plan.map(|plan| {
                let latency = f64::from(plan.latency_micros) / 1_000.0;
                [f64::from(plan.every), latency]
            });
            for (index, key) in [LINK_ROUNDS, LINK_LATENCY].into_iter().enumerate() {
                let value = own.map_or(key.default.unwrap_or_default(), |own| own[index]);
                self.parameters.extend([key.entry(value)]);
            }
        }
        self.link_mbit = links.map(|links| {
            let row = |row: &Vec<u32>| {
                let rates = row.iter().map(|rate| toml::Value::from(i64::from(*rate)));
                toml::Value::Array(rates.collect())
            };
            toml::Value::Array(links.rows().iter().map(row).collect())
        });
    }
}
