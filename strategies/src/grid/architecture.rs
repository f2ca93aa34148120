//! The `[architecture]` table: exchange, schedule, contribution and topology. Each key of a method
//! is read by the chosen method that has it; a key that no chosen method has is refused.

use super::error::refuse;
use super::rates::PATTERNS_MAX;
use super::registry::{CONTRIBUTIONS, EXCHANGES, TOPOLOGIES};
use super::strategy::Architecture;
use super::tables::{Architecture as Table, Tables};
use super::validate::{absent, choose, does_not_apply};
use super::{StrategyError, methods, schedule};
use crate::topology::{self, TopologyKind};
use murmurate_protocol::Contribution;

const CONTRIBUTION_NAMES: [(&str, Contribution); 3] = [
    ("gradient", Contribution::Gradient),
    ("delta", Contribution::Delta),
    ("parameters", Contribution::Parameters),
];

fn contribution_name(contribution: Contribution) -> &'static str {
    let mut all = CONTRIBUTION_NAMES.iter();
    let found = all.find(|(_, known)| *known == contribution);
    found.map_or("delta", |(name, _)| name)
}

/// Reads the table, and the keys of `[synchronization]` that an exchange's mode takes.
pub(super) fn read(tables: &Tables) -> Result<Architecture, StrategyError> {
    let table = &tables.architecture;
    let key = "architecture.exchange";
    let name = choose(&table.exchange, methods::DEFAULT.name, key, &EXCHANGES)?;
    let spec = methods::EXCHANGES.iter().find(|spec| spec.name == name);
    let spec = spec.copied().unwrap_or(methods::DEFAULT);
    let spec = methods::grouped(spec, tables.agreement.grouping.as_deref());
    let key = "architecture.contribution";
    let default = contribution_name(spec.contribution);
    let contribution = choose(&table.contribution, default, key, &CONTRIBUTIONS)?;
    let mut all = CONTRIBUTION_NAMES.iter();
    let contribution = all.find(|(known, _)| *known == contribution);

    let has = |key: &str| spec.parameters.iter().any(|p| p.name == key);
    let own = only(table, |key| has(key));
    let chosen = methods::read(spec, &own, &tables.synchronization)?;
    let facts = chosen.kind.facts();
    let topologies = topology::parameter_names();
    let of_topology = |key: &str| facts.has_neighbours && topologies.contains(&key);
    let of_schedule = |key: &str| facts.has_schedule && schedule::has(key);
    let mut keys = table.parameters.keys();
    let foreign = keys.find(|key| !has(key) && !of_topology(key) && !of_schedule(key));
    if let Some(key) = foreign {
        return Err(does_not_apply("architecture", key, spec.name));
    }
    let topology = if facts.has_neighbours {
        Some(read_topology(table, &only(table, of_topology))?)
    } else {
        absent(&table.topology, "architecture.topology", spec.name)?;
        None
    };
    let (schedule, links) = if facts.has_schedule {
        schedule::read(table, &only(table, of_schedule))?
    } else {
        (schedule::none(table, spec.name)?, None)
    };
    Ok(Architecture {
        schedule,
        links,
        kind: chosen.kind,
        arrivals: chosen.arrivals,
        contribution: contribution.map_or(spec.contribution, |(_, kind)| *kind),
        topology,
        rate: chosen.rate,
        local: local(table, contribution.map(|(_, kind)| *kind))?,
        parts: chosen.parts,
    })
}

/// The patterns of names of tensors that do not travel.
fn local(table: &Table, sent: Option<Contribution>) -> Result<Vec<String>, StrategyError> {
    const KEY: &str = "architecture.local";
    let patterns = table.local.clone().unwrap_or_default();
    refuse(
        !patterns.is_empty() && sent == Some(Contribution::Gradient),
        KEY,
        "peers that exchange gradients step with the mean of these, and nothing would step what stays",
        "leave it out, or use contribution = \"delta\"",
    )?;
    if patterns.len() > PATTERNS_MAX {
        let found = format!("a list of {} patterns", patterns.len());
        return Err(StrategyError::range(
            KEY,
            found,
            "a list of at most 64 patterns",
        ));
    }
    Ok(patterns)
}

/// The keys of methods for which `has` holds.
fn only(table: &Table, has: impl Fn(&str) -> bool) -> toml::Table {
    let all = table.parameters.iter();
    all.filter(|(key, _)| has(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn read_topology(table: &Table, own: &toml::Table) -> Result<TopologyKind, StrategyError> {
    let default = topology::DEFAULT.name;
    let name = choose(
        &table.topology,
        default,
        "architecture.topology",
        &TOPOLOGIES,
    )?;
    Ok(TopologyKind::from_table(name, own)?)
}

impl Tables {
    pub(super) fn set_architecture(&mut self, of: &Architecture) {
        let table = &mut self.architecture;
        table.exchange = Some(methods::of(of.kind).name.to_owned());
        table.contribution = Some(contribution_name(of.contribution).to_owned());
        table.local = (!of.local.is_empty()).then(|| of.local.clone());
        if let Some(kind) = &of.topology {
            table.topology = Some(kind.name().to_owned());
            table.parameters.extend(kind.to_table());
        }
    }
}
