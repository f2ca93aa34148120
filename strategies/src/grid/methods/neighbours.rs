//! Exchanges between neighbours, which mix parameters with the peers that a topology names: `gossip`, `push`
//! and `pairs`, and what others share with them.

use super::super::error::refuse;
use super::super::{Strategy, StrategyError};
use super::spec::{Chosen, Costs, ExchangeSpec, NONE};
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
    contribution: Contribution::Parameters,
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
    ..NONE
};

/// Exchange `gossip`: push-sum with the round's partners.
pub(super) const GOSSIP: ExchangeSpec = ExchangeSpec {
    name: "gossip",
    summary: "push to the round's partners, mix what arrived",
    equation: "x_i' = (m_i x_i + sum_k m_k C(x_k)) / (m_i + sum_k m_k), m_i = w_i - sum_j W_ji w_i, m_k the masses that arrived",
    source: "Lian et al., NeurIPS 2017; push-sum: Kempe et al., FOCS 2003; Assran et al., ICML 2019",
    label: |kind| matches!(kind, ExchangeKind::Gossip).then_some("gossip"),
    read: |_| Ok(Chosen::plain(ExchangeKind::Gossip)),
    ..MIXES
};

/// Exchange `push`: gossip without waiting.
pub(super) const PUSH: ExchangeSpec = ExchangeSpec {
    name: "push",
    summary: "gossip without waiting: mix what has already arrived",
    equation: "x_i' = (m_i x_i + sum_k m_k C(x_k)) / (m_i + sum_k m_k) over the slices k that are there, of any round",
    source: "overlapped SGP: Assran et al., ICML 2019; GoSGD: Blot et al., arXiv 1611.09726",
    label: |kind| matches!(kind, ExchangeKind::Push).then_some("push"),
    read: |_| Ok(Chosen::plain(ExchangeKind::Push)),
    costs: Costs {
        // No peer waits for an exchange, so it takes no time of a round.
        traffic: |strategy, plan, cluster| Traffic {
            seconds: 0.0,
            ..traffic(strategy, plan, cluster)
        },
        ..MIXES.costs
    },
    ..MIXES
};

/// Exchange `pairs`: two neighbours average their parameters whenever one of them starts an exchange.
///
/// Its traffic: in every round a peer begins one exchange and answers one, on average, and waits
/// for neither: T = 0.
pub(super) const PAIRS: ExchangeSpec = ExchangeSpec {
    name: "pairs",
    summary: "push-pull: two neighbours average whenever one of them begins to; no peer waits",
    equation: "x_i' = x_i + w (C(x_j) - C(x_i)), x_j' = x_j - w (C(x_j) - C(x_i)), w = 1/2, less where several are under way",
    source: "Lian et al., ICML 2018",
    label: |kind| matches!(kind, ExchangeKind::Pairs).then_some("pairs"),
    read: |_| Ok(Chosen::plain(ExchangeKind::Pairs)),
    check: |strategy| {
        both_ways(strategy)?;
        parameters_as_they_are(strategy)
    },
    costs: Costs {
        traffic: |_, plan, cluster| {
            let (contribution, _) = Traffic::encoded(plan);
            Traffic {
                up: contribution,
                down: contribution,
                seconds: 0.0,
                // Encode, and mix one's own and the other's.
                values: 3.0 * cluster.parameters as f64,
                held: 2.0 * contribution,
            }
        },
        // Own slices until the other ends have confirmed them, and theirs, for two neighbours.
        stores: |_, of| vec![("encoded slices", 4.0 * of.contribution)],
        ..MIXES.costs
    },
    ..MIXES
};

/// Refuses choices that do not work with mixing parameters.
pub(super) fn mixing(strategy: &Strategy) -> Result<(), StrategyError> {
    weighted_mean(strategy)?;
    parameters(strategy)
}

/// Refuses robust rules.
fn weighted_mean(strategy: &Strategy) -> Result<(), StrategyError> {
    refuse(
        !strategy.aggregation().is_mean(),
        "aggregation.rule",
        "gossip conserves the sum of the parameters, and a robust rule does not",
        "use \"weighted-mean\", \"clipped-gossip\" with exchange = \"pull\", or exchange = \"all-reduce\"",
    )
}

/// Refuses other choices that do not work with mixing parameters.
fn parameters(strategy: &Strategy) -> Result<(), StrategyError> {
    refuse(
        strategy.contribution() != Contribution::Parameters,
        "architecture.contribution",
        "gossip of deltas or gradients without an agreed anchor diverges",
        "use \"parameters\", or exchange = \"all-reduce\"",
    )?;
    refuse(
        !matches!(
            strategy.outer_kind().spec().nature,
            outer::Nature::Average | outer::Nature::Pairs
        ),
        "outer.optimizer",
        "gossip mixes parameters and has no agreed delta for an outer optimizer",
        "use \"average\" or \"no-lo-co\", or exchange = \"all-reduce\"",
    )
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
    refuse(
        !strategy.codec().properties().dense && !mixed_in_parts,
        "compression.codec",
        "the parameters themselves would lose too much with a coarse or sparse codec; only differences to replicas work with it",
        "use \"int8\", or exchange = \"replicas\" or \"all-reduce\"",
    )?;
    refuse(
        strategy.error_feedback(),
        "compression.error_feedback",
        "the next parameters do not contain what a codec left out of these, so a residual is wrong",
        "set it to false, or use exchange = \"all-reduce\"",
    )
}

/// Set where slices are parts of the parameters.
pub(super) fn mixes_parts(strategy: &Strategy) -> bool {
    strategy.codec().properties().masks && strategy.exchange().facts().mixes_parts
}

/// Refuses topologies in which only one end of a link pushes.
pub(super) fn both_ways(strategy: &Strategy) -> Result<(), StrategyError> {
    let kind = strategy.topology_kind();
    refuse(
        kind.is_some_and(|kind| !kind.spec().symmetric),
        "architecture.topology",
        "both ends of a link must move, and in this topology a receiver does not push back",
        "use \"ring\", \"torus\" or \"hypercube\", or exchange = \"gossip\"",
    )
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
