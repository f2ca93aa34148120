//! A registrar's part in choosing the first roll, and a founder's: single-decree Paxos.
//!
//! **Source:** Lamport 2001, "Paxos Made Simple", section 2.2.

use super::{FoundingBallot, Roll, RollName};
use crate::PeerId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a registrar has promised and accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Acceptor {
    pub(super) promised: FoundingBallot,
    pub(super) accepted: Option<(FoundingBallot, RollName)>,
}

impl Acceptor {
    /// Promises, unless a higher proposal has its promise.
    pub(super) fn prepare(&mut self, ballot: FoundingBallot) -> bool {
        let may = ballot >= self.promised;
        if may {
            self.promised = ballot;
        }
        may
    }

    /// Accepts, unless a higher proposal has its promise.
    pub(super) fn accept(&mut self, ballot: FoundingBallot, roll: RollName) -> bool {
        let may = self.prepare(ballot);
        if may {
            self.accepted = Some((ballot, roll));
        }
        may
    }
}

/// A proposal that this peer makes.
#[derive(Clone, Debug)]
pub(super) struct Proposal {
    pub(super) ballot: FoundingBallot,
    /// The roll that it proposes if no registrar has accepted another.
    pub(super) own: Arc<Roll>,
    /// The registrars of its own roll: a majority of them decides.
    pub(super) registrars: BTreeSet<PeerId>,
    pub(super) promises: BTreeMap<PeerId, Option<(FoundingBallot, RollName)>>,
    /// What it asks the registrars to accept.
    pub(super) value: Option<RollName>,
    pub(super) accepted: BTreeSet<PeerId>,
}

impl Proposal {
    pub(super) fn new(
        ballot: FoundingBallot,
        own: Arc<Roll>,
        registrars: BTreeSet<PeerId>,
    ) -> Self {
        Self {
            ballot,
            own,
            registrars,
            promises: BTreeMap::new(),
            value: None,
            accepted: BTreeSet::new(),
        }
    }

    fn is_majority(&self, count: usize) -> bool {
        2 * count > self.registrars.len()
    }

    /// Once a majority has promised: what must be proposed. A roll that one of them has accepted may be
    /// chosen already.
    pub(super) fn promised(
        &mut self,
        from: PeerId,
        accepted: Option<(FoundingBallot, RollName)>,
    ) -> Option<RollName> {
        if !self.registrars.contains(&from) || self.value.is_some() {
            return None;
        }
        self.promises.insert(from, accepted);
        if !self.is_majority(self.promises.len()) {
            return None;
        }
        let highest = self.promises.values().flatten().max();
        let value = highest.map_or(self.own.name(), |(_, roll)| *roll);
        self.value = Some(value);
        Some(value)
    }

    /// Once a majority has accepted: what is chosen.
    pub(super) fn accepted(&mut self, from: PeerId) -> Option<RollName> {
        if self.registrars.contains(&from) {
            self.accepted.insert(from);
        }
        self.value.filter(|_| self.is_majority(self.accepted.len()))
    }
}
