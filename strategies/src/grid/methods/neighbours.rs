//! Common parts of exchanges between neighbours, which mix parameters with the peers that a
//! topology names.

use super::super::error::refused;
use super::super::{Strategy, StrategyError};
use super::spec::{Chosen, Costs, ExchangeSpec};
use crate::aggregate::Nature;
use crate::executor::Mixing;
use crate::outer;
use crate::plan::{Cluster, Traffic};
use murmurate_protocol::{Contribution, ExchangeKind, Plan, Round};

/// Ranks and rounds over which a topology's pushes are averaged.
const SAMPLED: usize = 8;

/// The common entry of exchanges that mix encoded parameters. Each replaces name, texts, kind and
/// other differences.
pub(super) const MIXES: ExchangeSpec = ExchangeSpec {
    name: "",
    summary: "",
    equation: "",
    source: "",
    keys: &[],
    parameters: &[],
    modes: &[],
    contribution: Contribution::Parameters,
    label: |_| None,
    read: |_| Ok(Chosen::plain(ExchangeKind::None)),
    write: |_, _| {},
    check: parameters_as_they_are,
    mixing: |strategy| Mixing::Gossip {
        rule: strategy.aggregation().build(),
        parts: false,
    },
    costs: Costs {
        aggregate: |_, codec| codec.aggregate().bytes_bound(),
        traffic,
        // This peer's parameters, encoded, and those of two partners.
        stores: |_, of| vec![("encoded slices", 3.0 * of.contribution)],
    },
};

/// Refuses choices that do not work with mixing parameters.
pub(super) fn mixing(strategy: &Strategy) -> Result<(), StrategyError> {
    weighted_mean(strategy)?;
    parameters(strategy)
}

/// Refuses robust rules.
fn weighted_mean(strategy: &Strategy) -> Result<(), StrategyError> {
    if !strategy.aggregation().is_mean() {
        return refused(
            "aggregation.rule",
            "gossip conserves the sum of the parameters, and a robust rule does not",
            "use \"weighted-mean\", \"clipped-gossip\" with exchange = \"pull\", or exchange = \"all-reduce\"",
        );
    }
    Ok(())
}

/// Refuses other choices that do not work with mixing parameters.
fn parameters(strategy: &Strategy) -> Result<(), StrategyError> {
    if strategy.contribution() != Contribution::Parameters {
        return refused(
            "architecture.contribution",
            "gossip of deltas or gradients without an agreed anchor diverges",
            "use \"parameters\", or exchange = \"all-reduce\"",
        );
    }
    if !matches!(
        strategy.outer_kind().spec().nature,
        outer::Nature::Average | outer::Nature::Pairs
    ) {
        return refused(
            "outer.optimizer",
            "gossip mixes parameters and has no agreed delta for an outer optimizer",
            "use \"average\" or \"no-lo-co\", or exchange = \"all-reduce\"",
        );
    }
    Ok(())
}

/// Refuses choices that do not work with sending the parameters themselves.
pub(super) fn parameters_as_they_are(strategy: &Strategy) -> Result<(), StrategyError> {
    weighted_mean(strategy)?;
    clipped_or_not(strategy)
}

/// As [`parameters_as_they_are`], where partners may be clipped: where nothing is conserved anyway.
pub(super) fn clipped_or_not(strategy: &Strategy) -> Result<(), StrategyError> {
    if strategy.aggregation().nature() != Nature::Partners {
        weighted_mean(strategy)?;
    }
    parameters(strategy)?;
    let mixed_in_parts = mixes_parts(strategy);
    if mixed_in_parts {
        weighted_mean(strategy)?;
    }
    if !strategy.codec().properties().dense && !mixed_in_parts {
        return refused(
            "compression.codec",
            "the parameters themselves would lose too much with a coarse or sparse codec; only differences to replicas work with it",
            "use \"int8\", or exchange = \"replicas\" or \"all-reduce\"",
        );
    }
    if strategy.error_feedback() {
        return refused(
            "compression.error_feedback",
            "the next parameters do not contain what a codec left out of these, so a residual is wrong",
            "set it to false, or use exchange = \"all-reduce\"",
        );
    }
    Ok(())
}

/// Whether slices are parts of the parameters.
pub(super) fn mixes_parts(strategy: &Strategy) -> bool {
    strategy.codec().properties().masks && strategy.exchange().facts().mixes_parts
}

/// Refuses topologies in which only one end of a link pushes.
pub(super) fn both_ways(strategy: &Strategy) -> Result<(), StrategyError> {
    let kind = strategy.topology_kind();
    match kind.is_some_and(|kind| !kind.spec().symmetric) {
        true => refused(
            "architecture.topology",
            "both ends of a link must move, and in this topology a receiver does not push back",
            "use \"ring\", \"torus\" or \"hypercube\", or exchange = \"gossip\"",
        ),
        false => Ok(()),
    }
}

/// The whole contribution to each of d partners, and one from each; d pushes share the uplink:
/// T = d C / min(up, down) + latency.
pub(super) fn traffic(strategy: &Strategy, plan: &Plan, cluster: &Cluster) -> Traffic {
    let (contribution, _) = Traffic::encoded(plan);
    let degree = strategy.topology(0).map_or(0.0, |topology| {
        let ranks = cluster.peers.min(SAMPLED);
        let pushes = (0..ranks * SAMPLED).map(|draw| {
            let round = Round((draw / ranks) as u64);
            topology
                .partners(round, draw % ranks, cluster.peers)
                .send
                .len()
        });
        pushes.sum::<usize>() as f64 / (ranks * SAMPLED) as f64
    });
    let bytes = degree * contribution;
    let slower = cluster.link.up.min(cluster.link.down);
    Traffic {
        up: bytes,
        down: bytes,
        seconds: bytes / slower + cluster.link.latency.as_secs_f64(),
        // Encode once, mix one's own and each partner's.
        values: (2.0 + degree) * cluster.parameters as f64,
        held: (1.0 + degree) * contribution,
    }
}
