//! Exchange `pull`: ask the round's partners for what they published last.

use super::super::error::refused;
use super::super::{Strategy, StrategyError};
use super::neighbours::{self, MIXES};
use super::spec::{Chosen, Costs, ExchangeSpec, Given};
use crate::executor::Mixing;
use crate::parameter::{Parameter, Range};
use crate::plan::{Cluster, Traffic};
use murmurate_protocol::{ExchangeKind, Plan, PullPlan};

const UNBOUNDED: f64 = PullPlan::UNBOUNDED as f64;

const PARAMETERS: [Parameter; 5] = [
    Parameter {
        name: "staleness",
        range: Range::Whole(0, PullPlan::UNBOUNDED),
        default: Some(UNBOUNDED),
        about: "rounds that an answer may be behind the round of the question",
    },
    Parameter {
        name: "backup",
        range: Range::Whole(0, 31),
        default: Some(0.0),
        about: "partners of a round that are not waited for once the others have answered",
    },
    Parameter {
        name: "lead",
        range: Range::Whole(1, PullPlan::UNBOUNDED),
        default: Some(UNBOUNDED),
        about: "a partner that is this many rounds behind is waited for all the same",
    },
    Parameter {
        name: "skip",
        range: Range::Whole(0, PullPlan::UNBOUNDED),
        default: Some(0.0),
        about: "a peer that is this many rounds behind the others continues in their round; 0 is never",
    },
    Parameter {
        name: "sync_every",
        range: Range::Whole(0, PullPlan::UNBOUNDED),
        default: Some(0.0),
        about: "one in this many rounds is a mean over all peers of that round; 0 is none",
    },
];

/// Its entry in the list.
pub(super) const SPEC: ExchangeSpec = ExchangeSpec {
    name: "pull",
    summary: "ask the round's partners, mix what they published last; peers send only answers",
    equation: "x_i' = (1 - sum_j W_ij) x_i + sum_j W_ij C(x_j) over the partners j that answered, with x_j of whichever round, or at most `staleness` rounds before: rows sum to one, columns need not",
    source: "Demers et al., PODC 1987; Karp et al., FOCS 2000; Tsitsiklis et al., IEEE Trans. Autom. Control 1986; bounds: Luo et al., ASPLOS 2019; Li et al., IEEE TPDS 2021",
    parameters: &PARAMETERS,
    label: |kind| matches!(kind, ExchangeKind::Pull(_)).then_some("pull"),
    read: |given| Ok(Chosen::plain(ExchangeKind::Pull(bounds(given)))),
    write: |strategy, tables| {
        let values = values(strategy.exchange());
        let given = PARAMETERS.iter().zip(values);
        let given = given.filter(|(parameter, value)| parameter.default != Some(*value));
        let named = given.map(|(key, value)| (key.name.to_owned(), key.range.to_toml(value)));
        tables.architecture.parameters.extend(named);
    },
    check,
    mixing: |strategy| Mixing::Gossip {
        rule: strategy.aggregation().build(),
        parts: neighbours::mixes_parts(strategy),
    },
    costs: Costs {
        traffic,
        ..MIXES.costs
    },
    ..MIXES
};

fn bounds(given: &Given) -> PullPlan {
    let own = SPEC.parameters();
    let of = |name| own.number(&given.parameters, name) as u32;
    PullPlan {
        staleness: of("staleness"),
        backup: of("backup"),
        lead: of("lead"),
        skip: of("skip"),
        sync_every: of("sync_every"),
    }
}

fn plan(kind: ExchangeKind) -> PullPlan {
    match kind {
        ExchangeKind::Pull(bounds) => bounds,
        _ => PullPlan::FREE,
    }
}

/// In the order of [`PARAMETERS`].
fn values(kind: ExchangeKind) -> [f64; 5] {
    let PullPlan {
        staleness,
        backup,
        lead,
        skip,
        sync_every,
    } = plan(kind);
    [staleness, backup, lead, skip, sync_every].map(f64::from)
}

fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    neighbours::clipped_or_not(strategy)?;
    let bounds = plan(strategy.exchange());
    if bounds.lead < PullPlan::UNBOUNDED && bounds.backup == 0 {
        return refused(
            "architecture.lead",
            "without backup partners a round waits for all of them, and `staleness` bounds how far they differ",
            "set `backup`, or use `staleness`",
        );
    }
    if bounds.sync_every == 1 {
        return refused(
            "architecture.sync_every",
            "a mean over all peers in every round leaves nothing to the topology",
            "use topology = \"complete\" with exchange = \"gossip\", or a larger `sync_every`",
        );
    }
    Ok(())
}

/// As a push to each partner, and a question that travels before every answer. A round that mixes
/// all counts as one in `sync_every` of them.
fn traffic(strategy: &Strategy, plan_of_run: &Plan, cluster: &Cluster) -> Traffic {
    let few = neighbours::traffic(strategy, plan_of_run, cluster);
    let latency = cluster.link.latency.as_secs_f64();
    let every = plan(strategy.exchange()).sync_every;
    let (contribution, _) = Traffic::encoded(plan_of_run);
    let others = cluster.peers.saturating_sub(1) as f64;
    let share = if every == 0 {
        0.0
    } else {
        1.0 / f64::from(every)
    };
    let mixed = |few: f64, all: f64| few + share * (all - few);
    let bytes = mixed(few.up, others * contribution);
    let slower = cluster.link.up.min(cluster.link.down);
    Traffic {
        up: bytes,
        down: bytes,
        seconds: bytes / slower + 2.0 * latency,
        values: mixed(few.values, (2.0 + others) * cluster.parameters as f64),
        // The round with the most of them must fit.
        held: if every == 0 {
            few.held
        } else {
            (1.0 + others) * contribution
        },
    }
}
