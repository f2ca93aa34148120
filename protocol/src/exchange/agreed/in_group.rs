//! A peer's place in a group, as far as schedules depend on it.

use super::group::Group;
use crate::Plan;
use crate::schedule::Program;

/// On what a schedule depends beside the plan.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InGroup {
    members: usize,
    /// This peer's index.
    me: usize,
    /// The sites of the members; empty where the schedule does not go by them.
    sites: Vec<u8>,
}

impl InGroup {
    pub(super) fn of(plan: &Plan, group: &Group) -> Self {
        let sites = group.places.iter().map(|place| place.site);
        Self {
            members: group.len(),
            me: group.me,
            sites: sites.filter(|_| plan.schedule.goes_by_sites()).collect(),
        }
    }

    /// What the schedule of the plan asks of this peer.
    pub(super) fn program(&self, plan: &Plan) -> Program {
        match self.sites.is_empty() {
            true => Program::new(plan.schedule, self.members, self.me),
            false => Program::at_sites(plan.schedule, &self.sites, self.me),
        }
    }
}
