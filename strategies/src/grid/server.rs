//! Parameter servers between the written tables and their plans.

use super::StrategyError;
use super::registry::{MODES, hint};
use super::tables::{Synchronization, Tables};
use super::validate::{absent, choose, count, not_negative};
use crate::executor::CenterRule;
use crate::outer::StalenessWeight;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use murmurate_protocol::{CenterPlan, ExchangeKind, LeadPlan, ServerPlan};

/// One owner.
pub(super) const IN_STEP: ServerPlan = ServerPlan { owners: 1 };

/// Staleness weights by name.
const STALENESS: [(&str, StalenessWeight); 3] = [
    ("constant", StalenessWeight::Constant),
    ("inverse", StalenessWeight::Inverse),
    ("inverse-root", StalenessWeight::InverseRoot),
];

/// What the tables say of a parameter server; of others that they say nothing.
pub(super) fn exchange(
    kind: ExchangeKind,
    tables: &Tables,
) -> Result<(ExchangeKind, CenterRule), StrategyError> {
    let (of, when) = (&tables.architecture, &tables.synchronization);
    let ExchangeKind::Server(_) = kind else {
        let name = name_of(kind);
        absent(&of.owners, "architecture.owners", name)?;
        absent(&when.mode, "synchronization.mode", name)?;
        others_absent(tables, name, &[])?;
        return Ok((kind, CenterRule::default()));
    };
    let owners = of.owners.unwrap_or(usize::from(IN_STEP.owners));
    let owners = members("architecture.owners", owners, 1)?;
    let mode = choose(&when.mode, "bsp", "synchronization.mode", &MODES)?;
    if mode == "bsp" {
        others_absent(tables, mode, &[])?;
        let server = ServerPlan { owners };
        return Ok((ExchangeKind::Server(server), CenterRule::default()));
    }
    let apply: &[&str] = match mode {
        "ssp" => &["lead", "buffer", "staleness", "compensation"],
        "dynamic-ssp" => &["lead", "lead_most", "buffer", "staleness", "compensation"],
        _ => &["buffer", "staleness", "compensation"],
    };
    others_absent(tables, mode, apply)?;
    let center = CenterPlan {
        owners,
        lead: lead(mode, when)?,
        buffer: members("synchronization.buffer", when.buffer.unwrap_or(1), 1)?,
    };
    let (key, lambda) = ("synchronization.compensation", when.compensation);
    let rule = CenterRule {
        staleness: staleness(when.staleness.as_deref().unwrap_or("constant"))?,
        compensation: not_negative(key, lambda.unwrap_or(0.0))?,
        ..CenterRule::default()
    };
    Ok((ExchangeKind::Center(center), rule))
}

/// The largest lead that can be asked for.
const LEAD_MAX: usize = 1_000_000;

/// Between which leads is chosen; one alone is both.
fn lead(mode: &str, when: &Synchronization) -> Result<Option<LeadPlan>, StrategyError> {
    if mode == "asp" {
        return Ok(None);
    }
    let (key, least) = ("synchronization.lead", when.lead.unwrap_or(3));
    let least = count(key, least, [1, LEAD_MAX], "from 1 to a million")?;
    if mode == "ssp" {
        return Ok(Some(LeadPlan::fixed(least as u32)));
    }
    let (key, most) = ("synchronization.lead_most", when.lead_most.unwrap_or(15));
    let needed = "from `synchronization.lead` to a million";
    let most = count(key, most, [least, LEAD_MAX], needed)?;
    Ok(Some(LeadPlan {
        least: least as u32,
        most: most as u32,
    }))
}

pub(super) fn members(key: &str, value: usize, least: usize) -> Result<u16, StrategyError> {
    let needed = ["from 0 to 64", "from 1 to 64"][least];
    Ok(count(key, value, [least, GROUP_MEMBERS_MAX], needed)? as u16)
}

fn staleness(name: &str) -> Result<StalenessWeight, StrategyError> {
    let found = STALENESS.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, weight)| *weight)
        .ok_or_else(|| StrategyError::UnknownValue {
            key: "synchronization.staleness".to_owned(),
            found: name.to_owned(),
            hint: hint(name, &STALENESS.map(|(known, _)| known)),
        })
}

/// Refuses the keys of other modes.
fn others_absent(tables: &Tables, method: &str, apply: &[&str]) -> Result<(), StrategyError> {
    let when = &tables.synchronization;
    let numbers = [
        ("synchronization.lead", when.lead.is_some()),
        ("synchronization.lead_most", when.lead_most.is_some()),
        ("synchronization.buffer", when.buffer.is_some()),
        ("synchronization.staleness", when.staleness.is_some()),
        ("synchronization.compensation", when.compensation.is_some()),
    ];
    for (key, given) in numbers {
        let applies = apply.iter().any(|name| key.ends_with(name));
        absent(&(given && !applies).then_some(()), key, method)?;
    }
    Ok(())
}

/// What the configuration calls a center's bound.
pub(super) const fn mode_of(center: CenterPlan) -> &'static str {
    match center.lead {
        None => "asp",
        Some(LeadPlan { least, most }) if least < most => "dynamic-ssp",
        Some(_) => "ssp",
    }
}

/// The exchange's name in the configuration.
pub(super) const fn name_of(kind: ExchangeKind) -> &'static str {
    match kind {
        ExchangeKind::None => "none",
        ExchangeKind::Gossip => "gossip",
        ExchangeKind::Replicas => "replicas",
        ExchangeKind::Pairs => "pairs",
        ExchangeKind::Push => "push",
        ExchangeKind::Relay => "relay-sum",
        ExchangeKind::Pull => "pull",
        ExchangeKind::AllReduce => "all-reduce",
        ExchangeKind::Gathered => "gathered",
        ExchangeKind::Server(_) | ExchangeKind::Center(_) => "parameter-server",
    }
}

impl Tables {
    /// Writes an exchange down.
    pub(super) fn set_exchange(&mut self, kind: ExchangeKind, rule: CenterRule) {
        self.architecture.exchange = Some(name_of(kind).to_owned());
        let when = &mut self.synchronization;
        match kind {
            ExchangeKind::Server(server) => {
                self.architecture.owners = Some(usize::from(server.owners));
                when.mode = Some("bsp".to_owned());
            }
            ExchangeKind::Center(center) => {
                self.architecture.owners = Some(usize::from(center.owners));
                let mode = mode_of(center);
                when.mode = Some(mode.to_owned());
                when.lead = center.lead.map(|lead| lead.least as usize);
                if mode == "dynamic-ssp" {
                    when.lead_most = center.lead.map(|lead| lead.most as usize);
                }
                when.buffer = Some(usize::from(center.buffer));
                let name = STALENESS
                    .iter()
                    .find(|(_, weight)| *weight == rule.staleness);
                when.staleness = name.map(|(name, _)| (*name).to_owned());
                when.compensation = Some(rule.compensation);
            }
            _ => {}
        }
    }
}
