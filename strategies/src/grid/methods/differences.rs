//! Exchange `differences`: every peer sends all neighbours the same encoded differences to one copy of itself.

use super::super::error::refuse;
use super::super::{Strategy, StrategyError};
use super::neighbours::{self, MIXES};
use super::spec::{Chosen, Costs, ExchangeSpec};
use crate::compress::{Codec, F32};
use crate::executor::Mixing;
use crate::parameter::{Parameter, Range};
use murmurate_protocol::{CopyPlan, ExchangeKind};

/// The kinds of copy, in the order of their names.
const COPIES: [CopyPlan; 2] = [CopyPlan::Parameters, CopyPlan::Estimates];

const COPY: Parameter = Parameter {
    name: "copy",
    range: Range::Choice(&["parameters", "estimate"]),
    default: Some(0.0),
    about: "what neighbours hold of a peer: its parameters (DCD-PSGD), or an estimate that averages the codec's errors (ECD-PSGD)",
};

pub(super) const SPEC: ExchangeSpec = ExchangeSpec {
    name: "differences",
    summary: "every peer sends all neighbours the same numbered differences to one copy of itself",
    equation: "h_i' = h_i + C(x_i - h_i), x_i' = h_i' + sum_j W_ij (h_j' - h_i'); with estimates h_i' = (1 - 2/t) h_i + (2/t) C(x_i_old + (t/2) (x_i - x_i_old))",
    source: "Tang et al., NeurIPS 2018",
    parameters: &[COPY],
    label: |kind| matches!(kind, ExchangeKind::Differences(_)).then_some("differences"),
    read: |given| {
        let copy = SPEC.parameters().number(&given.parameters, COPY.name);
        let plan = COPIES[copy as usize];
        Ok(Chosen::plain(ExchangeKind::Differences(plan)))
    },
    write: |strategy, tables| {
        if let ExchangeKind::Differences(plan) = strategy.exchange() {
            let at = COPIES.iter().position(|copy| *copy == plan);
            let copy = COPY.entry(at.unwrap_or(0) as f64);
            tables.architecture.parameters.extend([copy]);
        }
    },
    check,
    mixing: |strategy| match strategy.exchange() {
        ExchangeKind::Differences(plan) => Mixing::Differences(plan),
        _ => Mixing::Differences(CopyPlan::Parameters),
    },
    costs: Costs {
        // A neighbour that holds no copy gets it whole.
        aggregate: |_, _| F32.bytes_bound(),
        // The differences that are kept, and the last and the next one of two neighbours.
        stores: |_, of| vec![("encoded slices", 8.0 * of.contribution)],
        ..MIXES.costs
    },
    ..MIXES
};

fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    neighbours::mixing(strategy)?;
    neighbours::both_ways(strategy)?;
    refuse(
        !strategy.topology_kind().is_some_and(|k| k.spec().spans),
        "architecture.topology",
        "neighbours hold copies of each other, and in this topology they change with the round",
        "use \"ring\", \"torus\" or \"hypercube\"",
    )?;
    let properties = strategy.codec().properties();
    refuse(
        strategy.error_feedback(),
        "compression.error_feedback",
        "the next difference does not contain what the codec left out of this one, so a residual is wrong",
        "set it to false, or use exchange = \"replicas\"",
    )?;
    refuse(
        !properties.unbiased || properties.error >= 1.0 || properties.planes > 0,
        "compression.codec",
        "what the codec leaves out is lost, so its errors must be small and have no bias",
        "use \"int8\" or \"int4\", or exchange = \"replicas\", which accepts any contractive codec",
    )?;
    let estimates = strategy.exchange() == ExchangeKind::Differences(CopyPlan::Estimates);
    refuse(
        estimates && !properties.stochastic && !properties.lossless,
        "compression.codec",
        "estimates average the codec's errors over the rounds, and this codec makes the same error of \
             equal values in every round",
        "use \"qsgd\" with levels = 127, which rounds at random, or copy = \"parameters\"",
    )
}
