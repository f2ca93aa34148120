//! What a member knows of ballots above zero: the one that it coordinates, and the question of
//! another coordinator.

use super::ballot::Versions;
use super::ballot::{Ballot, Held};
use crate::{Members, PeerId};
use std::collections::BTreeMap;

/// A ballot that this peer coordinates.
#[derive(Debug)]
pub(super) struct Coordination {
    pub(super) ballot: Ballot,
    pub(super) promises: BTreeMap<usize, Promised>,
    /// Whether the plan is made. Promises that come later change nothing: the members may already
    /// have voted on it.
    pub(super) planned: bool,
}

/// What a member promised.
#[derive(Clone, Debug)]
pub(super) struct Promised {
    /// Its vote in the highest ballot, which the plan must keep if it is the highest of all.
    pub(super) voted: Option<(Ballot, Versions)>,
    pub(super) held: Vec<Held>,
    /// Members that it still waits for.
    pub(super) hopeful: Members,
}

/// Ballots above zero: the one that this peer coordinates, and another coordinator's question.
#[derive(Debug, Default)]
pub(super) struct Ballots {
    pub(super) coordination: Option<Coordination>,
    /// A coordinator's question, answered once this peer's reductions are done.
    pub(super) asked: Option<(PeerId, Ballot)>,
    /// The last ballot whose results were waited for after its contributions.
    pub(super) extended: u8,
}

impl Ballots {
    /// Whether this peer coordinates this ballot or a higher one already.
    pub(super) fn coordinates(&self, ballot: Ballot) -> bool {
        let current = self.coordination.as_ref();
        current.is_some_and(|coordination| coordination.ballot >= ballot)
    }

    /// The members that have promised in a ballot that this peer coordinates and has no plan for
    /// yet; `None` where there is no such ballot.
    pub(super) fn promised_so_far(&self) -> Option<Members> {
        let open = self.coordination.as_ref().filter(|c| !c.planned)?;
        Some(open.promises.keys().copied().collect())
    }
}
