//! How a fragment's round begins: owners, duties, this peer's contributions.

use super::agreement::Agreement;
use super::ballot::Ballot;
use super::ballots::Ballots;
use super::duty::Duty;
use super::fragment::FragmentRound;
use super::group::Group;
use super::pipeline::Pipeline;
use super::scope::{Scope, Within};
use super::signed::Testimony;
use super::state::{FragmentStage, Reduction, Target, Task, Transfers};
use crate::core::context::Context;
use crate::schedule::Program;
use crate::{Attempt, ExchangeKind, FragmentId, Members, Order, Passes, Round, Wait};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

impl FragmentRound {
    /// Starts. Members in `lost` were given up in another fragment of the round, and this one does
    /// not wait for them again.
    pub(super) fn new(
        cx: &mut Context,
        fragment: FragmentId,
        group: Group,
        program: Option<Arc<Program>>,
        lost: Members,
    ) -> Self {
        let len = cx.plan.fragment(fragment).map_or(1, |f| f.len);
        let shards = program.as_ref().map(|program| program.shards() as u64);
        let of = match shards.filter(|shards| *shards <= len) {
            Some(shards) => shards as u16,
            None => super::server::parts(cx, &group, len),
        };
        Self::cut_into(cx, fragment, group, (program, of), lost, None)
    }

    /// The same for a group that agrees on one shard of the fragment, cut into `of` parts. What this
    /// member contributes is known later.
    pub(super) fn within(
        cx: &mut Context,
        fragment: FragmentId,
        group: Group,
        of: u16,
        lost: Members,
        within: Within,
    ) -> Self {
        Self::cut_into(cx, fragment, group, (None, of), lost, Some(within))
    }

    fn cut_into(
        cx: &mut Context,
        fragment: FragmentId,
        group: Group,
        (program, of): (Option<Arc<Program>>, u16),
        lost: Members,
        within: Option<Within>,
    ) -> Self {
        let len = cx.plan.fragment(fragment).map_or(1, |f| f.len);
        // A schedule cannot cut a fragment that has fewer values than shards: members push
        // directly.
        let program = program.filter(|program| program.shards() as u64 <= len);
        let scoring = cx.plan.agreement.scoring.filter(|_| !group.merges());
        let owners = match &within {
            Some(within) => rotated(cx.round, &within.owners, of),
            // Each member owns its contribution, and what it says about those of the others.
            None if scoring.is_some() => (0..group.len()).chain(0..group.len()).collect(),
            None => super::server::owners(cx, &group, of),
        };
        let first = Ballot {
            number: 0,
            coordinator: group.peer(0),
        };
        let allowed = match &within {
            Some(within) => {
                let awaited = group.others().filter(|(i, _)| !lost.has(*i));
                let rows = awaited.map(|(_, peer)| peer);
                cx.deadlines.allow_mates(Wait::Contributions, rows) + within.longer
            }
            None => allowed(cx, &group, program.as_deref(), lost),
        };
        let targets = targets(of, program.as_deref(), &owners);
        let pipeline =
            program.map(|program| Pipeline::new(program, !(lost & group.all()).is_empty()));
        let merges = group.merges();
        let (hopeful, mut first) = (group.all().without(lost), Agreement::new(first));
        first.signed = testimony(cx, &group);
        let mut this = Self {
            scope: Scope {
                round: cx.round,
                fragment,
                group,
                of,
                gathered: cx.plan.exchange == ExchangeKind::Gathered && !merges,
                scoring,
                // Branches are averaged as they are.
                passes: match merges {
                    true => Passes::One,
                    false => cx.plan.agreement.passes,
                },
                within,
            },
            stage: FragmentStage::Collecting,
            hopeful,
            since: cx.now,
            deadline: cx.wait_in(fragment, Wait::Contributions, allowed),
            reduction: Reduction::default(),
            pipeline,
            held: BTreeMap::new(),
            targets,
            agreement: first,
            ballots: Ballots::default(),
            transfers: Transfers::default(),
            ending: None,
            missed: None,
            told: false,
        };
        if this.scope.gathered {
            this.offer(cx);
            if this.scope.scoring.is_some() {
                this.take_scoring_duty();
            }
            return this;
        }
        if this.pipeline.is_none() {
            this.take_duties(owners);
        }
        if this.scope.within.is_none() {
            this.encode_all(cx);
        }
        this
    }

    /// This peer reduces its shards from the contributions of all members that trained.
    fn take_duties(&mut self, owners: Vec<usize>) {
        let (me, bringing) = (self.scope.group.me, self.scope.group.bringing());
        let own = (0u16..).zip(owners).filter(|(_, owner)| *owner == me);
        self.reduction
            .duties
            .extend(own.map(|(shard, _)| (shard, Duty::new(Attempt::FIRST, bringing))));
    }

    /// Encodes every shard of this peer's contribution: in the order of the schedule, or, for the
    /// butterfly, beginning with the next member's, so that members begin with different receivers.
    pub(super) fn encode_all(&mut self, cx: &mut Context) {
        let bringing = self.scope.group.bringing();
        let merges = self.scope.group.merges();
        // Branches are averaged, whatever the rule for contributions is.
        let too_few = match merges {
            true => bringing.is_empty(),
            false => cx.plan.too_few(bringing.count()),
        };
        if too_few {
            // There is no mean if no member trained, and a robust rule needs more than one.
            self.void(cx);
        }
        if too_few || (self.pipeline.is_none() && !bringing.has(self.scope.group.me)) {
            return;
        }
        let (me, of) = (self.scope.group.me as u16, self.scope.of);
        let order = match &self.pipeline {
            Some(pipeline) => pipeline.program.order(),
            None => (1..=of).map(|step| (me + step) % of).collect(),
        };
        for shard in order {
            let order = Order::Encode {
                store: self.scope.source(),
                slice: self.scope.contribution(shard, self.scope.group.me),
                of: self.scope.cut(),
            };
            let order = cx.order(order);
            self.reduction
                .tasks
                .insert(order, Task::Contribution(shard));
        }
    }
}

/// How long to wait for contributions.
fn allowed(cx: &Context, group: &Group, program: Option<&Program>, lost: Members) -> Duration {
    let senders = program.map_or(!Members::NONE, Program::neighbours);
    let peers = group
        .others()
        .filter(|(i, _)| senders.without(lost).has(*i));
    let peers = peers.map(|(_, p)| p);
    match program {
        Some(p) => cx.deadlines.allow_chain(Wait::Contributions, peers, p.hops),
        None => cx.deadlines.allow(Wait::Contributions, peers),
    }
}

/// The owners of a column's parts: as many members as there are parts, others in each round.
fn rotated(round: Round, members: &[usize], of: u16) -> Vec<usize> {
    let of = usize::from(of);
    let first = (round.0 as usize).wrapping_mul(of);
    (0..of)
        .filter_map(|part| {
            members
                .get(first.wrapping_add(part) % members.len().max(1))
                .copied()
        })
        .collect()
}

/// The signed side of the agreement, where the group survives liars.
fn testimony(cx: &Context, group: &Group) -> Option<Box<Testimony>> {
    let sealed = group.sealed.clone()?;
    let ranked = sealed.words.coordinators(&cx.plan.run, cx.round);
    Some(Box::new(Testimony::new(group, sealed, ranked)))
}

/// The first target of each shard: its owner along the program, or that of direct pushes.
fn targets(of: u16, program: Option<&Program>, owners: &[usize]) -> Vec<Target> {
    let direct = |s: u16| owners.get(usize::from(s)).copied().unwrap_or(0);
    let owner = |s: u16| program.map_or_else(|| direct(s), |program| program.owner(s));
    (0..of)
        .map(|s| Target {
            owner: owner(s),
            attempt: Attempt::FIRST,
            exact: None,
        })
        .collect()
}
