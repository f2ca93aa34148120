//! Exchange `none`: every peer trains alone.

use super::spec::{Chosen, Costs, ExchangeSpec};
use crate::executor::Mixing;
use crate::plan::Traffic;
use murmurate_protocol::{Contribution, ExchangeKind};

/// Its entry in the list.
pub(super) const SPEC: ExchangeSpec = ExchangeSpec {
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
