//! What a schedule asks of a peer in its group, and how far the peer is in carrying it out.

use super::group::Group;
use super::member::ShardVersion;
use crate::schedule::{LinkCodes, LinkPlan, Program, Role, Solution};
use crate::sorted::SortedMap;
use crate::{Digest, Event, Members, PeerId, Plan, Round, SliceMeta};
use std::sync::Arc;

/// One fragment's way through a schedule.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) program: Arc<Program>,
    /// Ballot zero is still on.
    pub(super) open: bool,
    /// A value is known never to come.
    pub(super) failed: bool,
    pub(super) works: Vec<Work>,
}

/// One shard of it at this member.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) stage: usize,
    /// Whose contributions are in this peer's value.
    pub(super) set: Members,
    /// Encoded bytes of this peer's value, once it has been encoded.
    pub(super) bytes: Option<u64>,
    pub(super) sent: bool,
    /// The next value is being made.
    pub(super) busy: bool,
    /// Values of others, by member and stage: whose contributions are in them.
    pub(super) arrived: SortedMap<(usize, u8), Members>,
    pub(super) left_out: Members,
    /// The version of the aggregate, as its owner made it.
    pub(super) told: Option<ShardVersion>,
    /// An aggregate that is here, and who brought it, until the owner has told.
    pub(super) came: Option<Came>,
}

/// An aggregate that another member passed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    pub(super) from: PeerId,
    pub(super) meta: SliceMeta,
    /// Whose contributions are in it, as its tag says.
    pub(super) members: Members,
    pub(super) digest: Digest,
}

impl Pipeline {
    /// Nothing is done yet. If a member is known to be lost, the schedule fails at once.
    pub(super) fn new(program: Arc<Program>, lost: bool) -> Self {
        let mut works = Vec::new();
        works.resize_with(program.shards(), Work::default);
        Self {
            program,
            open: true,
            failed: lost,
            works,
        }
    }

    /// A value or aggregate will never come from those that are given up.
    pub(super) fn is_broken(&self, hopeful: Members, holds: impl Fn(u16) -> bool) -> bool {
        let lost = |member: usize| !hopeful.has(member);
        let stuck = |(shard, work): (u16, &Work)| {
            let Some(role) = self.program.role(shard) else {
                return false;
            };
            let missing = work.missing(role, hopeful);
            let unserved = role.server.is_some_and(lost) && work.came.is_none();
            // Without its owner's word an aggregate is not accepted, whichever member brings it.
            let untold = work.told.is_none() && lost(self.program.owner(shard));
            missing.into_iter().any(lost) || (!holds(shard) && (unserved || untold))
        };
        self.open && (self.failed || (0u16..).zip(&self.works).any(stuck))
    }

    /// This peer's part is done.
    pub(super) fn finished(&self) -> bool {
        (0u16..).zip(&self.works).all(|(shard, work)| {
            let role = self.program.role(shard);
            let ended = role.is_none_or(|role| work.stage >= role.stages.len());
            ended && !work.busy && work.bytes.is_some()
        })
    }
}

impl Work {
    /// The values of the present stage that are waited for.
    pub(super) fn missing(&self, role: &Role, hopeful: Members) -> Vec<usize> {
        let Some(stage) = role.stages.get(self.stage) else {
            return Vec::new();
        };
        // Both partners of a swap must sum the same values, so neither may leave a member out.
        let one_way = stage.to.is_none();
        let lacking = stage.from.iter().filter(|source| {
            let gone = self.left_out.has(source.member) || !hopeful.has(source.member);
            let here = self.arrived.contains_key(&(source.member, source.value));
            !(here || one_way && source.alone && gone)
        });
        lacking.map(|source| source.member).collect()
    }
}

/// On what a schedule depends beside the plan.
#[derive(Debug, PartialEq, Eq)]
struct InGroup {
    members: usize,
    /// This peer's index.
    me: usize,
    /// The sites of the members; empty where the schedule does not go by them.
    sites: Vec<u8>,
    /// The links of the members, where the schedule goes by them and this round does not measure them.
    links: Option<LinkCodes>,
}

impl InGroup {
    fn of(plan: &Plan, group: &Group, round: Round) -> Self {
        let sites = group.around.places.iter().map(|place| place.site);
        let links = plan.schedule.link_plan();
        let links = links.filter(|links| !links.measures_in(round));
        Self {
            members: group.len(),
            me: group.me,
            sites: sites.filter(|_| plan.schedule.goes_by_sites()).collect(),
            links: links.and_then(|links| links_of(links, group)),
        }
    }
}

/// The links that a group goes by: those that its proposer named, or, where members sign, the plan's.
fn links_of(plan: &LinkPlan, group: &Group) -> Option<LinkCodes> {
    let codes = match &group.around.links {
        Some(agreed) => agreed.read(group.len()),
        None => Some(plan.start),
    };
    codes.filter(|codes| codes.members() == group.len() && !codes.is_unknown())
}

/// This peer's part in the schedule of its last group. Finding trees takes long, and groups of many rounds
/// are alike.
#[derive(Debug, Default)]
pub(super) struct Programs {
    last: Option<(InGroup, Arc<Program>)>,
    solved: Option<(LinkCodes, Arc<Solution>)>,
}

impl Programs {
    /// This peer's part in the plan's schedule; none if every member sends to all others.
    pub(super) fn of(&mut self, plan: &Plan, group: &Group, round: Round) -> Option<Arc<Program>> {
        if !plan.schedule.relays() || group.len() < 2 || !group.follows_plan() {
            return None;
        }
        let seat = InGroup::of(plan, group, round);
        let known = self.last.take().filter(|(known, _)| *known == seat);
        let (seat, program) = known.unwrap_or_else(|| {
            let program = Arc::new(self.program(plan, &seat));
            (seat, program)
        });
        self.last = Some((seat, program.clone()));
        Some(program)
    }

    fn program(&mut self, plan: &Plan, seat: &InGroup) -> Program {
        let (n, me) = (seat.members, seat.me);
        match (plan.schedule.link_plan(), seat.links) {
            (Some(links), Some(codes)) => {
                Program::solved(&self.solution(plan, links, &codes), n, me)
            }
            (Some(_), None) => Program::solved(&Solution::butterfly(n), n, me),
            _ if seat.sites.is_empty() => Program::new(plan.schedule, n, me),
            _ => Program::at_sites(plan.schedule, &seat.sites, me),
        }
    }

    fn solution(&mut self, plan: &Plan, links: &LinkPlan, codes: &LinkCodes) -> Arc<Solution> {
        let known = self.solved.take().filter(|(of, _)| of == codes);
        let solve = || Arc::new(links.solve(codes, plan.largest_aggregate()));
        let solution = known.map_or_else(solve, |(_, solution)| solution);
        self.solved = Some((*codes, solution.clone()));
        solution
    }

    /// The event of a group that goes by other links than the one before it.
    pub(super) fn change(&mut self, plan: &Plan, group: &Group, round: Round) -> Option<Event> {
        let links = plan.schedule.link_plan()?;
        let named = group.around.links.as_ref();
        // The first group has no links before it to differ from.
        named.filter(|named| named.since == round && round > Round(0))?;
        let codes = links_of(links, group)?;
        let certificate = self.solution(plan, links, &codes).certificate;
        Some(Event::Rescheduled { round, certificate })
    }
}
