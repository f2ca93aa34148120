//! Exchange `parameter-server`: some peers own the shards. In mode `bsp` all members work on the
//! same round and agree; in the other modes peers do not wait, and a center applies contributions
//! as they arrive.

use super::super::StrategyError;
use super::super::entry::Entry;
use super::super::tables::Tables;
use super::super::validate::does_not_apply;
use super::keys::{ENOUGH, FRACTION, GRACE, GRACE_MS, LIARS, keys_of};
use super::server_rules;
use super::spec::{Chosen, Costs, ExchangeSpec, Given};
use crate::compress::{Codec, F32};
use crate::executor::{CenterRule, Mixing};
use crate::grid::Strategy;
use crate::outer::StalenessWeight;
use crate::parameter::{Parameter, Range, Values};
use murmurate_protocol::{CenterPlan, Contribution, ExchangeKind, LeadPlan, ServerPlan};

const OWNERS: Parameter = Parameter {
    name: "owners",
    range: Range::Whole(1, 64),
    default: Some(1.0),
    about: "peers that own a shard of each fragment",
};

const PARTS: Parameter = Parameter {
    name: "parts",
    range: Range::Whole(0, 64),
    default: Some(0.0),
    about: "bsp: parts of a fragment, of which each owner takes as many as its line carries; 0: a shard for each owner, all equal",
};

const LEAD: Parameter = Parameter {
    name: "lead",
    range: Range::Whole(1, 1_000_000),
    default: Some(3.0),
    about: "rounds that the fastest may be ahead of the slowest",
};

/// At least `lead`, which [`leads`] checks.
const LEAD_MOST: Parameter = Parameter {
    name: "lead_most",
    range: Range::Whole(1, 1_000_000),
    default: Some(15.0),
    about: "rounds, `lead` or more, that the fastest may be ahead of the slowest where that saves time",
};

const BUFFER: Parameter = Parameter {
    name: "buffer",
    range: Range::Whole(1, 64),
    default: Some(1.0),
    about: "contributions that a shard combines into one move of the center",
};

/// In the order of [`STALENESS_WEIGHTS`].
const STALENESS: Parameter = Parameter {
    name: "staleness",
    range: Range::Choice(&["constant", "inverse", "inverse-root"]),
    default: Some(0.0),
    about: "the weight of a late contribution",
};

const STALENESS_WEIGHTS: [StalenessWeight; 3] = [
    StalenessWeight::Constant,
    StalenessWeight::Inverse,
    StalenessWeight::InverseRoot,
];

const COMPENSATION: Parameter = Parameter {
    name: "compensation",
    range: Range::AtLeast(0.0),
    default: Some(0.0),
    about: "DC-ASGD's lambda: late gradients are corrected for how far the center has moved",
};

pub(super) const SPEC: ExchangeSpec = ExchangeSpec {
    name: "parameter-server",
    summary: "k peers own the shards, by rendezvous hash, or parts by what their lines carry; when one dies, its successor holds the center",
    equation: "a' = outer(a, C(sum_i w_i C(d_i) / sum_i w_i)), shard s at the peer of the s-th highest hash",
    source: "Li et al., OSDI 2014; Jiang et al., OSDI 2020; Chen et al., arXiv 1604.00981",
    keys: &[LIARS],
    parameters: &[OWNERS, PARTS],
    modes: &[BSP, SSP, DYNAMIC_SSP, ASP],
    contribution: Contribution::Delta,
    label: |kind| match kind {
        ExchangeKind::Server(_) => Some(SPEC.name),
        ExchangeKind::Center(center) => Some(mode_of(center).name),
        _ => None,
    },
    read,
    write,
    check: |strategy| {
        if strategy.exchange().agrees() {
            server_rules::in_parts(strategy).and_then(|()| super::agreed::check(strategy))
        } else {
            server_rules::check(strategy)
        }
    },
    mixing: |strategy| match strategy.exchange() {
        ExchangeKind::Center(plan) => Mixing::Center {
            plan,
            rule: strategy.center(),
        },
        _ => Mixing::Agreed {
            rule: strategy.aggregation().build(),
        },
    },
    costs: Costs {
        aggregate: |kind, codec| match kind {
            // The center itself travels to peers that are not in the same round.
            ExchangeKind::Center(_) => F32.bytes_bound(),
            _ => codec.aggregate().bytes_bound(),
        },
        traffic: server_rules::traffic,
        stores: |strategy, of| {
            if strategy.exchange().agrees() {
                super::agreed::stores(strategy, of)
            } else {
                server_rules::center_stores(of)
            }
        },
    },
};

const BSP: Entry = Entry {
    name: "bsp",
    summary: "all in the same round, or the first n of m and those that arrive within a grace",
    equation: "a' = outer(a, sum_i w_i d_i / sum_i w_i), i over those in time; the late are part of the next round",
    source: "Valiant 1990; Chen et al., arXiv 1604.00981",
    keys: &[ENOUGH, GRACE, GRACE_MS, FRACTION],
    parameters: &[],
};

const SSP: Entry = Entry {
    name: "ssp",
    summary: "as asp, and the fastest waits for the slowest when it is too far ahead",
    equation: "c' = outer(c, sum_k w(tau_k) d_k / K), begin round r when min_i r_i >= r - lead",
    source: "Ho et al., NeurIPS 2013",
    keys: &[],
    parameters: &[LEAD, BUFFER, STALENESS, COMPENSATION],
};

const DYNAMIC_SSP: Entry = Entry {
    name: "dynamic-ssp",
    summary: "as ssp, and each peer chooses its lead round by round: the smallest with the shortest expected wait",
    equation: "begin round r when min_i r_i >= r - s, s = min argmin W over lead..lead_most, W(s) = the wait of the next lead_most - lead rounds by how long rounds take",
    source: "Zhao et al., ICDCS 2019",
    keys: &[],
    parameters: &[LEAD, LEAD_MOST, BUFFER, STALENESS, COMPENSATION],
};

const ASP: Entry = Entry {
    name: "asp",
    summary: "no peer waits: contributions are combined as they arrive",
    equation: "c' = outer(c, sum_k w(tau_k) d_k / K), w(tau) = 1, 1 / max(1, tau) or (1 + tau)^(-1/2); late gradients as g + lambda g g (c - c_pulled)",
    source: "Dean et al., NeurIPS 2012; Lian et al., NeurIPS 2015; Zhang et al., IJCAI 2016; Zheng et al., ICML 2017; Nguyen et al., AISTATS 2022",
    keys: &[],
    parameters: &[BUFFER, STALENESS, COMPENSATION],
};

/// The mode that makes such a center.
const fn mode_of(center: CenterPlan) -> &'static Entry {
    match center.lead {
        None => &ASP,
        Some(LeadPlan { least, most }) if least < most => &DYNAMIC_SSP,
        Some(_) => &SSP,
    }
}

fn read(given: &Given) -> Result<Chosen, StrategyError> {
    let owners = SPEC.parameters().number(&given.parameters, OWNERS.name) as u16;
    let parts = SPEC.parameters().number(&given.parameters, PARTS.name) as u16;
    let Some((mode, values)) = given.mode.filter(|(mode, _)| mode.name != BSP.name) else {
        return Ok(Chosen {
            parts,
            ..Chosen::plain(ExchangeKind::Server(ServerPlan { owners }))
        });
    };
    if parts > 0 {
        return Err(does_not_apply("architecture", PARTS.name, mode.name));
    }
    let own = keys_of(mode);
    let center = CenterPlan {
        owners,
        lead: leads(mode, &values)?,
        buffer: own.number(&values, BUFFER.name) as u16,
    };
    Ok(Chosen {
        arrivals: CenterRule {
            staleness: STALENESS_WEIGHTS[own.number(&values, STALENESS.name) as usize],
            compensation: own.number(&values, COMPENSATION.name),
            ..CenterRule::default()
        },
        ..Chosen::plain(ExchangeKind::Center(center))
    })
}

/// The range of leads from which a peer chooses; a mode without [`LEAD_MOST`] has one lead.
fn leads(mode: &Entry, values: &Values) -> Result<Option<LeadPlan>, StrategyError> {
    let has = |key: Parameter| mode.parameters.iter().any(|p| p.name == key.name);
    let number = |key: Parameter| keys_of(mode).number(values, key.name) as u32;
    if !has(LEAD) {
        return Ok(None);
    }
    let least = number(LEAD);
    if !has(LEAD_MOST) {
        return Ok(Some(LeadPlan::fixed(least)));
    }
    let most = number(LEAD_MOST);
    if most < least {
        let needed = "from `synchronization.lead` to a million";
        return Err(StrategyError::range(
            "synchronization.lead_most",
            most,
            needed,
        ));
    }
    Ok(Some(LeadPlan { least, most }))
}

fn write(strategy: &Strategy, tables: &mut Tables) {
    let kind = strategy.exchange();
    let owners = [(OWNERS.name, f64::from(kind.owners().unwrap_or(1)))];
    set(&mut tables.architecture.parameters, &[OWNERS], &owners);
    let when = &mut tables.synchronization;
    let ExchangeKind::Center(center) = kind else {
        let parts = [(PARTS.name, f64::from(strategy.architecture.parts))];
        set(&mut tables.architecture.parameters, &[PARTS], &parts);
        when.mode = Some(BSP.name.to_owned());
        return;
    };
    let mode = mode_of(center);
    when.mode = Some(mode.name.to_owned());
    let rule = strategy.center();
    let staleness = STALENESS_WEIGHTS
        .iter()
        .position(|w| *w == rule.staleness)
        .unwrap_or(0);
    let lead = center.lead.unwrap_or(LeadPlan::fixed(1));
    let values = [
        (LEAD.name, f64::from(lead.least)),
        (LEAD_MOST.name, f64::from(lead.most)),
        (BUFFER.name, f64::from(center.buffer)),
        (STALENESS.name, staleness as f64),
        (COMPENSATION.name, rule.compensation),
    ];
    set(&mut when.parameters, mode.parameters, &values);
}

/// Writes the values of a list of parameters into a table.
fn set(table: &mut toml::Table, list: &[Parameter], values: &[(&str, f64)]) {
    for parameter in list {
        if let Some((_, value)) = values.iter().find(|(name, _)| *name == parameter.name) {
            table.insert(parameter.name.to_owned(), parameter.range.to_toml(*value));
        }
    }
}
