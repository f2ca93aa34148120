//! Exchange `pull`: ask the round's partners for what they published last, for the iterate of the
//! round, or for the mean of a group.

use super::super::error::refuse;
use super::super::{Strategy, StrategyError};
use super::neighbours::{self, MIXES};
use super::spec::{Chosen, Costs, ExchangeSpec, Given};
use crate::executor::Mixing;
use crate::parameter::{Parameter, Range};
use crate::plan::{Cluster, Store, Traffic, UnderWay};
use murmurate_protocol::limits::{GROUP_MEANS_MAX, PULL_QUEUE_BYTES_MAX, PULL_QUEUE_MAX};
use murmurate_protocol::{ExchangeKind, Plan, PullAnswers, PullPlan, Round, Topology};
use std::collections::BTreeSet;

const UNBOUNDED: f64 = PullPlan::UNBOUNDED as f64;

/// Answers, in the order of their names. `None` is the iterate that was published last.
const ANSWERS: [Option<PullAnswers>; 3] = [
    None,
    Some(PullAnswers::OfTheRound),
    Some(PullAnswers::GroupMean),
];

const PARAMETERS: [Parameter; 6] = [
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
    Parameter {
        name: "answers",
        range: Range::Choice(&["newest", "of-the-round", "group-mean"]),
        default: Some(0.0),
        about: "what is asked for: what a partner published last, its iterate of the asker's round (Hop), or one mean for all members of a group (WAGMA)",
    },
];

pub(super) const SPEC: ExchangeSpec = ExchangeSpec {
    name: "pull",
    summary: "ask the round's partners, mix what they published last; peers send only answers",
    equation: "x_i' = (1 - sum_j W_ij) x_i + sum_j W_ij C(x_j) over the partners j that answered, with x_j of whichever round, or at most `staleness` rounds before: rows sum to one, columns need not; of the round k: shares W_ij (round of x_j - k + `staleness` + 1), divided by their sum",
    source: "Demers et al., PODC 1987; Karp et al., FOCS 2000; Tsitsiklis et al., IEEE Trans. Autom. Control 1986; bounds: Luo et al., ASPLOS 2019; Li et al., IEEE TPDS 2021",
    parameters: &PARAMETERS,
    label: |kind| {
        matches!(kind, ExchangeKind::Pull(_) | ExchangeKind::PullBy(..)).then_some("pull")
    },
    read: |given| Ok(Chosen::plain(kind(given))),
    write: |strategy, tables| {
        let values = values(strategy.exchange());
        let given = PARAMETERS.iter().zip(values);
        let given = given.filter(|(parameter, value)| parameter.default != Some(*value));
        let named = given.map(|(key, value)| key.entry(value));
        tables.architecture.parameters.extend(named);
    },
    check,
    mixing: |strategy| match plan(strategy.exchange()).1 {
        Some(PullAnswers::GroupMean) => Mixing::Grouped,
        _ => Mixing::Gossip {
            rule: strategy.aggregation().build(),
            parts: neighbours::mixes_parts(strategy),
        },
    },
    costs: Costs {
        traffic,
        stores,
        ..MIXES.costs
    },
    ..MIXES
};

fn kind(given: &Given) -> ExchangeKind {
    let own = SPEC.parameters();
    let of = |name| own.number(&given.parameters, name) as u32;
    let bounds = PullPlan {
        staleness: of("staleness"),
        backup: of("backup"),
        lead: of("lead"),
        skip: of("skip"),
        sync_every: of("sync_every"),
    };
    match ANSWERS[of("answers") as usize] {
        None => ExchangeKind::Pull(bounds),
        Some(answers) => ExchangeKind::PullBy(bounds, answers),
    }
}

fn plan(kind: ExchangeKind) -> (PullPlan, Option<PullAnswers>) {
    match kind {
        ExchangeKind::Pull(bounds) => (bounds, None),
        ExchangeKind::PullBy(bounds, answers) => (bounds, Some(answers)),
        _ => (PullPlan::FREE, None),
    }
}

/// In the order of [`PARAMETERS`].
fn values(kind: ExchangeKind) -> [f64; 6] {
    let (bounds, answers) = plan(kind);
    let PullPlan {
        staleness,
        backup,
        lead,
        skip,
        sync_every,
    } = bounds;
    let answers = ANSWERS.iter().position(|known| *known == answers);
    let answers = answers.unwrap_or(0) as u32;
    [staleness, backup, lead, skip, sync_every, answers].map(f64::from)
}

fn check(strategy: &Strategy) -> Result<(), StrategyError> {
    let (bounds, answers) = plan(strategy.exchange());
    match answers {
        Some(PullAnswers::GroupMean) => neighbours::parameters_as_they_are(strategy)?,
        _ => neighbours::clipped_or_not(strategy)?,
    }
    refuse(
        bounds.lead < PullPlan::UNBOUNDED && bounds.backup == 0,
        "architecture.lead",
        "without backup partners a round waits for all of them, and `staleness` bounds how far they differ",
        "set `backup`, or use `staleness`",
    )?;
    refuse(
        bounds.sync_every == 1,
        "architecture.sync_every",
        "a mean over all peers in every round leaves nothing to the topology",
        "use topology = \"complete\" with exchange = \"gossip\", or a larger `sync_every`",
    )?;
    match answers {
        None => Ok(()),
        Some(PullAnswers::OfTheRound) => check_queue(bounds),
        Some(PullAnswers::GroupMean) => check_groups(strategy, bounds),
    }
}

/// A queue must hold what the slowest partner may still ask for.
fn check_queue(bounds: PullPlan) -> Result<(), StrategyError> {
    refuse(
        bounds.gap() as usize >= PULL_QUEUE_MAX,
        "architecture.answers",
        "peers keep an iterate for each round that a partner may be behind, and 31 rounds at most",
        "set `staleness` to 30 or less, and `lead` to 31 or less where there are backup partners",
    )
}

/// A mean that is the same for all members needs groups, and waits for none of them.
fn check_groups(strategy: &Strategy, bounds: PullPlan) -> Result<(), StrategyError> {
    refuse(
        bounds.backup > 0,
        "architecture.backup",
        "the mean of a group waits for no member that still trains, so none needs a backup",
        "leave it out, or use answers = \"of-the-round\"",
    )?;
    refuse(
        bounds.skip > 0,
        "architecture.skip",
        "a peer that is further behind than a mean over all allows continues with the others anyway",
        "leave it out, or use answers = \"of-the-round\"",
    )?;
    let groups = strategy
        .topology(0)
        .is_some_and(|dealt| deals_groups(&*dealt));
    refuse(
        !groups,
        "architecture.topology",
        "the mean of a group is the same for all members, and in this topology partners of one peer have other partners",
        "use \"moshpit\", \"random-groups\" or \"complete\", or answers = \"newest\"",
    )
}

/// Set where each round deals the peers into groups: partners of one peer are partners of each other.
fn deals_groups(topology: &dyn Topology) -> bool {
    let group = |round, rank, count| {
        let partners = topology.partners(Round(round), rank, count).receive;
        partners.into_iter().chain([rank]).collect::<BTreeSet<_>>()
    };
    let swarms = (2..=9_usize).chain([16]);
    let mut swarms = swarms.flat_map(|count| (0..8).map(move |round| (count, round)));
    swarms.all(|(count, round)| {
        (0..count).all(|rank| {
            let own = group(round, rank, count);
            own.iter().all(|mate| group(round, *mate, count) == own)
        })
    })
}

/// As a push to each partner, and a question that travels before every answer. A round that mixes
/// all counts as one in `sync_every` of them.
fn traffic(strategy: &Strategy, plan_of_run: &Plan, cluster: &Cluster) -> Traffic {
    let (bounds, answers) = plan(strategy.exchange());
    let few = neighbours::traffic(strategy, plan_of_run, cluster);
    let latency = cluster.link.latency.as_secs_f64();
    let (contribution, aggregate) = Traffic::encoded(plan_of_run);
    let others = cluster.peers.saturating_sub(1) as f64;
    let share = match bounds.sync_every {
        0 => 0.0,
        every => 1.0 / f64::from(every),
    };
    let mixed = |few: f64, all: f64| few + share * (all - few);
    let slower = cluster.link.up.min(cluster.link.down);
    if answers == Some(PullAnswers::GroupMean) {
        // Of g members one makes the mean of a fragment: the others push their part of it and get
        // the mean. Over fragments each makes as many; with few fragments one makes all of a round.
        let count = few.up / contribution;
        let bytes = |count: f64| count / (count + 1.0) * (contribution + aggregate);
        let makers = |count: f64| (count + 1.0).min(plan_of_run.fragments.len() as f64);
        let seconds = |count: f64| count * (contribution + aggregate) / makers(count) / slower;
        let bytes = mixed(bytes(count), bytes(others));
        return Traffic {
            up: bytes,
            down: bytes,
            seconds: mixed(seconds(count), seconds(others)) + 3.0 * latency,
            // Encode, sum one's share of the parts, encode that, mix.
            values: 4.0 * cluster.parameters as f64,
            held: contribution + aggregate + count.max(others * share.ceil()) * contribution,
        };
    }
    let bytes = mixed(few.up, others * contribution);
    let every = bounds.sync_every;
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

/// This peer's parameters, encoded, and those of two partners. With queues its last iterates. Of
/// groups: this peer's last two, the parts of a group of four whose mean it makes, that mean and one
/// that it got, and means that it keeps for late members, of which it makes one in four.
fn stores(strategy: &Strategy, of: &UnderWay) -> Vec<Store> {
    let (bounds, answers) = plan(strategy.exchange());
    match answers {
        None => (MIXES.costs.stores)(strategy, of),
        Some(PullAnswers::OfTheRound) => {
            let queue = of.queue(bounds.queue(), PULL_QUEUE_BYTES_MAX);
            vec![("encoded slices", 2.0 * of.contribution + queue)]
        }
        Some(PullAnswers::GroupMean) => {
            let kept = (f64::from(bounds.staleness) / 4.0).min(GROUP_MEANS_MAX as f64);
            let slices = 5.0 * of.contribution + (2.0 + kept) * of.aggregate;
            vec![("encoded slices", slices), ("shard reductions", 1.0)]
        }
    }
}
