//! Exchanges: one value each, in a file of its own or beside its relatives, with name, keys, parsing, refusals,
//! cost and the line of the registry.
//! The rest of the grid uses the exchange's [`ExchangeSpec`] or the facts of its kind
//! ([`ExchangeFacts`](murmurate_protocol::ExchangeFacts)).
//!
//! A new exchange needs its file and its line in [`EXCHANGES`], and a mixer of the executor if its
//! arithmetic is new.

mod agreed;
mod all_reduce;
mod cells;
mod differences;
mod gathered;
mod keys;
mod neighbours;
mod parameter_server;
mod pull;
mod relay_sum;
mod replicas;
mod server_rules;
mod spec;

use keys::keys_of;
pub(super) use keys::{CELL, DEALING, ENOUGH, FRACTION, GRACE, GRACE_MS, GROUPING, LIARS, ROW};
pub(super) use spec::{Chosen, ExchangeSpec, Given};

use super::StrategyError;
use super::entry::{Entry, names_of};
use super::paces::PaceSpec;
use super::tables::Synchronization;
use super::validate::{absent, choose_of, does_not_apply, others};
use crate::parameter;
use murmurate_protocol::ExchangeKind;

/// All exchanges. One line each. Random scenarios are drawn from this list: a new entry goes to its
/// end, and no entry moves.
pub(super) const EXCHANGES: &[&ExchangeSpec] = &[
    &spec::NONE,
    &neighbours::GOSSIP,
    &replicas::SPEC,
    &neighbours::PAIRS,
    &neighbours::PUSH,
    &relay_sum::SPEC,
    &pull::SPEC,
    &all_reduce::SPEC,
    &gathered::SPEC,
    &parameter_server::SPEC,
    &cells::SPEC,
    &differences::SPEC,
];

/// The exchange of a configuration that names none.
pub(super) const DEFAULT: &ExchangeSpec = &all_reduce::SPEC;

/// The name of the exchange over cells, and of the grouping that stands for it.
pub(super) const CELLS: &str = cells::SPEC.name;

/// The exchange that a grouping makes of one: an all-reduce in cells is the exchange over cells.
pub(super) fn grouped(
    spec: &'static ExchangeSpec,
    grouping: Option<&str>,
) -> &'static ExchangeSpec {
    if grouping == Some(CELLS) && spec.name == DEFAULT.name {
        &cells::SPEC
    } else {
        spec
    }
}

pub(super) const MODES: &[Entry] = parameter_server::SPEC.modes;

/// The exchange of a kind.
///
/// # Panics
/// When no exchange of the list has this kind; a test goes through all kinds.
pub(super) fn of(kind: ExchangeKind) -> &'static ExchangeSpec {
    let mut all = EXCHANGES.iter().copied();
    all.find(|spec| (spec.label)(kind).is_some())
        .expect("every kind is an exchange's")
}

/// The name of a kind in messages.
pub(super) fn label(kind: ExchangeKind) -> &'static str {
    (of(kind).label)(kind).unwrap_or(of(kind).name)
}

/// The names of all own keys of exchanges in `[architecture]`.
pub(super) fn parameter_names() -> Vec<&'static str> {
    parameter::names(EXCHANGES.iter().map(|spec| spec.parameters))
}

/// The names of all own keys of modes in `[synchronization]`.
pub(super) fn mode_parameter_names() -> Vec<&'static str> {
    parameter::names(MODES.iter().map(|mode| mode.parameters))
}

/// Reads an exchange: its own keys of `[architecture]`, its mode and the keys of that.
pub(super) fn read(
    spec: &'static ExchangeSpec,
    own: &toml::Table,
    when: &Synchronization,
) -> Result<Chosen, StrategyError> {
    let parameters = spec.parameters().read(own)?;
    let of_mode = others::<PaceSpec>(&when.parameters);
    let Some(first) = spec.modes.first() else {
        absent(&when.mode, "synchronization.mode", spec.name)?;
        if let Some(key) = of_mode.keys().next() {
            return Err(does_not_apply("synchronization", key, spec.name));
        }
        let mode = None;
        return (spec.read)(&Given { parameters, mode });
    };
    let known = names_of(spec.modes.iter().map(|mode| mode.name));
    let name = choose_of(&when.mode, first.name, "synchronization.mode", &known)?;
    let mode = spec.modes.iter().find(|mode| mode.name == name);
    let mode = mode.unwrap_or(first);
    let values = keys_of(mode).read(&of_mode)?;
    let mode = Some((mode, values));
    (spec.read)(&Given { parameters, mode })
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::{CenterPlan, CopyPlan, PullPlan, ServerPlan};

    #[test]
    fn every_kind_belongs_to_exactly_one_exchange() {
        let center = CenterPlan {
            owners: 1,
            lead: None,
            buffer: 1,
        };
        let kinds = [
            ExchangeKind::None,
            ExchangeKind::Gossip,
            ExchangeKind::AllReduce,
            ExchangeKind::Gathered,
            ExchangeKind::Server(ServerPlan { owners: 1 }),
            ExchangeKind::Replicas,
            ExchangeKind::Pairs,
            ExchangeKind::Push,
            ExchangeKind::Center(center),
            ExchangeKind::Pull(PullPlan::FREE),
            ExchangeKind::RelaySum,
            ExchangeKind::Cells,
            ExchangeKind::Differences(CopyPlan::Parameters),
        ];
        for kind in kinds {
            let labels = EXCHANGES.iter().filter_map(|spec| (spec.label)(kind));
            assert_eq!(labels.count(), 1, "{kind:?}");
        }
        for spec in EXCHANGES {
            let has = |kind: &&ExchangeKind| (spec.label)(**kind).is_some();
            assert!(kinds.iter().any(|kind| has(&kind)), "{}", spec.name);
        }
    }
}
