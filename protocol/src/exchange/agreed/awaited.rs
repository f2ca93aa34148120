//! Which peers an agreed exchange waits for, for people to see.

use super::cell_round::CellRound;
use super::column::Column;
use super::fragment::FragmentRound;
use super::grouping::Grouping;
use super::state::FragmentStage;
use super::{Agreed, meeting};
use crate::core::context::Context;
use crate::{FragmentId, Members, PeerId, Wait};

impl Agreed {
    /// The peers behind a wait of this exchange.
    pub(super) fn awaited_peers(
        &self,
        cx: &Context,
        wait: Wait,
        fragment: FragmentId,
    ) -> Vec<PeerId> {
        match wait {
            Wait::Group if self.grouping.meeting.active() => {
                meeting::silent(cx, &self.grouping.meeting)
            }
            Wait::Group => self.grouping.awaited(cx),
            _ => awaited_in(&self.fragment_rounds, fragment),
        }
    }
}

/// The peers that a fragment's exchange waits for.
fn awaited_in(open: &[FragmentRound], fragment: FragmentId) -> Vec<PeerId> {
    let found = open.iter().find(|open| open.scope.fragment == fragment);
    found.map(FragmentRound::awaited).unwrap_or_default()
}

impl Grouping {
    /// Live peers that are not ready; once no more are waited for, the proposer.
    fn awaited(&self, cx: &Context) -> Vec<PeerId> {
        match self.closed {
            true => self.proposer.into_iter().collect(),
            false => self.missing(cx),
        }
    }
}

impl FragmentRound {
    /// Members whose part is missing: contributions to this peer's shards, then aggregates of theirs,
    /// then votes.
    pub(super) fn awaited(&self) -> Vec<PeerId> {
        let members = match self.stage {
            FragmentStage::Collecting => match self.pipelining() {
                true => self.missing_in_pipeline(),
                false => self.missing_contributors(),
            },
            FragmentStage::Gathering => match self.missing_owners() & self.hopeful {
                // Without a vote of its own, a member may still wait for others itself.
                owners if owners.is_empty() => self.silent_voters(),
                owners => owners,
            },
            FragmentStage::Repairing => self.silent_voters(),
        };
        let others = members.without(Members::one(self.scope.group.me));
        others.iter().map(|i| self.scope.group.peer(i)).collect()
    }

    /// Members whose vote in the current ballot is not here.
    fn silent_voters(&self) -> Members {
        self.hopeful.without(self.agreement.voters())
    }

    /// Members whose value is next in the schedule.
    fn missing_in_pipeline(&self) -> Members {
        let Some(pipeline) = &self.pipeline else {
            return Members::NONE;
        };
        let works = (0u16..).zip(&pipeline.works);
        let missing = works.filter_map(|(shard, work)| {
            let role = pipeline.program.role(shard)?;
            Some(work.missing(role, self.hopeful).into_iter())
        });
        missing.flatten().collect()
    }
}

impl CellRound {
    /// The members that a fragment waits for.
    pub(in crate::exchange) fn awaited(&self, fragment: FragmentId) -> Vec<PeerId> {
        awaited_in(self.open_fragments(), fragment)
    }
}

impl Column {
    /// The members that the column waits for.
    pub(in crate::exchange) fn awaited(&self) -> Vec<PeerId> {
        self.fragment_round().awaited()
    }
}
