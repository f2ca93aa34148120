//! The description of an exchange for the grid: one value for each, in the exchange's own file.

use super::super::entry::{Entry, Key};
use super::super::tables::Tables;
use super::super::{Strategy, StrategyError};
use crate::compress::Codec;
use crate::executor::{CenterRule, Mixing};
use crate::parameter::{Parameter, Parameters, Values};
use crate::plan::{Cluster, Store, Traffic, UnderWay};
use murmurate_protocol::{BytesBound, Contribution, ExchangeKind, Plan};

/// One exchange: its configuration, checks, mixer and costs.
#[derive(Clone, Copy)]
pub(in crate::grid) struct ExchangeSpec {
    pub(in crate::grid) name: &'static str,
    /// Its description, in a line.
    pub(in crate::grid) summary: &'static str,
    /// The rule, in a line.
    pub(in crate::grid) equation: &'static str,
    /// Where it comes from.
    pub(in crate::grid) source: &'static str,
    /// Keys of other tables that apply to it.
    pub(in crate::grid) keys: &'static [Key],
    /// Its own keys of `[architecture]`.
    pub(in crate::grid) parameters: &'static [Parameter],
    /// Its modes, values of `synchronization.mode`; most have none. Parameters of a mode are its own keys of
    /// `[synchronization]`.
    pub(in crate::grid) modes: &'static [Entry],
    /// What peers contribute where the configuration does not say.
    pub(in crate::grid) contribution: Contribution,
    /// What messages call an exchange of this kind; `None` for the kinds of other exchanges.
    pub(in crate::grid) label: fn(ExchangeKind) -> Option<&'static str>,
    /// Makes its kind from its keys.
    pub(in crate::grid) read: fn(&Given) -> Result<Chosen, StrategyError>,
    /// Writes its keys down, beside its name.
    pub(in crate::grid) write: fn(&Strategy, &mut Tables),
    /// Refuses a strategy whose other choices do not work with it.
    pub(in crate::grid) check: fn(&Strategy) -> Result<(), StrategyError>,
    /// The mixer that does its arithmetic.
    pub(in crate::grid) mixing: fn(&Strategy) -> Mixing,
    /// Its costs: bytes of an aggregate, traffic and memory.
    pub(in crate::grid) costs: Costs,
}

/// Exchange `none`: every peer trains alone. Others are made of it where they have no keys, modes or checks.
pub(super) const NONE: ExchangeSpec = ExchangeSpec {
    name: "none",
    summary: "every peer trains alone",
    equation: "x_i' = x_i",
    source: "-",
    keys: &[],
    parameters: &[],
    modes: &[],
    contribution: Contribution::Delta,
    label: |kind| matches!(kind, ExchangeKind::None).then_some("none"),
    read: |_| Ok(Chosen::plain(ExchangeKind::None)),
    write: |_, _| {},
    check: |_| Ok(()),
    mixing: |_| Mixing::Gossip {
        rule: None,
        parts: false,
    },
    costs: Costs {
        aggregate: |_, codec| codec.aggregate().bytes_bound(),
        traffic: |_, _, _| Traffic::default(),
        stores: |_, _| Vec::new(),
    },
};

#[derive(Clone, Copy)]
pub(in crate::grid) struct Costs {
    /// The bound of what members receive for their contributions: of an encoded aggregate.
    pub(in crate::grid) aggregate: fn(ExchangeKind, &dyn Codec) -> BytesBound,
    pub(in crate::grid) traffic: fn(&Strategy, &Plan, &Cluster) -> Traffic,
    /// Its stores in memory beside those of the method.
    pub(in crate::grid) stores: fn(&Strategy, &UnderWay) -> Vec<Store>,
}

impl ExchangeSpec {
    pub(in crate::grid) const fn parameters(&self) -> Parameters {
        Parameters::new("architecture", self.name, self.parameters)
    }

    /// Its line in the registry.
    pub(in crate::grid) const fn entry(&self) -> Entry {
        Entry::new(self.name, self.summary, self.equation, self.source)
            .with(self.keys)
            .taking(self.parameters)
    }
}

/// The values of an exchange's own keys, with defaults filled in.
pub(in crate::grid) struct Given {
    /// Its keys of `[architecture]`.
    pub(in crate::grid) parameters: Values,
    /// Its mode and the mode's keys; `None` where it has no modes.
    pub(in crate::grid) mode: Option<(&'static Entry, Values)>,
}

/// The result of reading an exchange's keys.
pub(in crate::grid) struct Chosen {
    /// The kind that the plan carries.
    pub(in crate::grid) kind: ExchangeKind,
    /// How a center combines arrivals; the default where there is no center.
    pub(in crate::grid) arrivals: CenterRule,
    /// How far neighbours with replicas move towards each other.
    pub(in crate::grid) rate: Option<f64>,
    /// Parts of a fragment that owners share by their lines; zero where each owns a shard.
    pub(in crate::grid) parts: u16,
}

impl Chosen {
    pub(super) fn plain(kind: ExchangeKind) -> Self {
        Self {
            kind,
            arrivals: CenterRule::default(),
            rate: None,
            parts: 0,
        }
    }
}
