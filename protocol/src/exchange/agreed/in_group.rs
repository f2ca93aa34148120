//! A peer's place in a group, as far as schedules depend on it, and what it does there by the schedule.

use super::group::Group;
use crate::schedule::{LinkCodes, LinkPlan, Program, Solution};
use crate::{Event, Plan, Round};
use std::sync::Arc;

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

/// What the schedule asks of this peer in its last group. Finding trees takes long, and groups of many rounds
/// are alike.
#[derive(Debug, Default)]
pub(super) struct Programs {
    last: Option<(InGroup, Arc<Program>)>,
    solved: Option<(LinkCodes, Arc<Solution>)>,
}

impl Programs {
    /// This peer's part in the plan's schedule; none if every member sends to all others.
    pub(super) fn of(&mut self, plan: &Plan, group: &Group, round: Round) -> Option<Arc<Program>> {
        if !plan.schedule.relays() || group.len() < 2 || group.merges() {
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

    /// What to report of a group that goes by other links than the one before it.
    pub(super) fn change(&mut self, plan: &Plan, group: &Group, round: Round) -> Option<Event> {
        let links = plan.schedule.link_plan()?;
        let named = group.around.links.as_ref();
        named.filter(|named| named.since == round && round > Round(0))?;
        let codes = links_of(links, group)?;
        let certificate = self.solution(plan, links, &codes).certificate;
        Some(Event::Rescheduled { round, certificate })
    }
}
