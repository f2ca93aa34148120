//! Exchange `replicas`: neighbours exchange encoded differences to replicas of each other.

use super::super::error::refuse;
use super::super::{Strategy, StrategyError};
use super::neighbours::{self, MIXES};
use super::spec::{Chosen, Costs, ExchangeSpec, Given};
use crate::compress::{Codec, F32};
use crate::correct::Needs;
use crate::executor::{Keeps, Mixing};
use crate::parameter::{Parameter, ParameterError, Range};
use murmurate_protocol::ExchangeKind;

const RATE: Parameter = Parameter {
    name: "rate",
    range: Range::OpenClosed(0.0, 1.0),
    default: Some(1.0),
    about: "how far neighbours move towards each other: small for coarse codecs",
};

pub(super) const SPEC: ExchangeSpec = ExchangeSpec {
    name: "replicas",
    summary: "neighbours exchange differences to replicas of each other",
    equation: "h_i' = h_i + C(x_i - h_i), x_i' = x_i + rate sum_j W_ij (h_j - h_i), as much to one end as from the other",
    source: "Koloskova et al., ICML 2019",
    parameters: &[RATE],
    label: |kind| matches!(kind, ExchangeKind::Replicas).then_some("replicas"),
    read,
    write: |strategy, tables| {
        if let Some(rate) = strategy.architecture.rate {
            tables.architecture.parameters.extend([RATE.entry(rate)]);
        }
    },
    check,
    mixing,
    costs: Costs {
        // A session between neighbours begins with whole parameters.
        aggregate: |_, _| F32.bytes_bound(),
        // Own slices until the other ends have confirmed them, and theirs, for two neighbours.
        stores: |_, of| vec![("encoded slices", 4.0 * of.contribution)],
        ..MIXES.costs
    },
    ..MIXES
};

fn read(given: &Given) -> Result<Chosen, StrategyError> {
    let own = SPEC.parameters();
    let rate = own.number(&given.parameters, RATE.name);
    // The arithmetic is in f32, where a rate above zero can still round to zero.
    if rate as f32 <= 0.0 {
        return Err(StrategyError::Parameter(ParameterError::Range {
            table: own.table,
            parameter: RATE.name,
            method: own.method,
            found: rate.to_string(),
            needed: RATE.range,
        }));
    }
    Ok(Chosen {
        rate: Some(rate),
        ..Chosen::plain(ExchangeKind::Replicas)
    })
}

fn mixing(strategy: &Strategy) -> Mixing {
    let (rate, corrects) = strategy.replicas().unwrap_or((1.0, false));
    Mixing::Replicas {
        rate,
        keeps: match (corrects, strategy.error_feedback()) {
            (true, _) => Keeps::Moves,
            (false, true) => Keeps::Residual,
            (false, false) => Keeps::Replicas,
        },
    }
}

fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    neighbours::mixing(strategy)?;
    neighbours::both_ways(strategy)?;
    let kind = strategy.topology_kind();
    refuse(
        kind.is_some_and(|kind| kind.spec().random_pairs),
        "architecture.topology",
        "every peer meets every other after some rounds, and would keep a replica of each",
        "use \"ring\", \"torus\" or \"matcha\"",
    )?;
    refuse(
        strategy.error_feedback() && strategy.correction_kind().needs() == Needs::Moves,
        "compression.error_feedback",
        "a residual would add values later that exact diffusion has already counted",
        "set it to false",
    )?;
    let properties = strategy.codec().properties();
    refuse(
        properties.error >= 1.0 || properties.planes > 0 || properties.decay < 1.0,
        "compression.codec",
        "a replica approaches the parameters only with a contractive codec that keeps no momentum",
        "use \"top-k\", \"ef-sign\" or \"int8\"",
    )
}
