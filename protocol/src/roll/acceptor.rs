//! A registrar's part in choosing the first roll, and a founder's: single-decree Paxos with quorums of
//! more than two thirds.
//!
//! Two founders may have different lists of registrars. A majority of each would not do: {1, 2} of
//! {1, 2, 3} and {3, 4} of {2, 3, 4} have no registrar in common. Two quorums of more than two
//! thirds share one while the lists share more than a third of their lengths added together: lists of
//! equal length may differ in just under a third of their registrars.
//!
//! **Source:** Lamport 2001, "Paxos Made Simple", section 2.2.

use super::{FoundingBallot, RollName};
use crate::PeerId;
use crate::sorted::{SortedMap, SortedSet};

pub(super) type Accepted = (FoundingBallot, RollName);

/// How many of a number of registrars decide: more than two thirds.
pub(super) const fn quorum(registrars: usize) -> usize {
    2 * registrars / 3 + 1
}

/// What a registrar has promised and accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Acceptor {
    pub(super) promised: FoundingBallot,
    pub(super) accepted: Option<Accepted>,
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

    /// Accepts, unless a higher proposal has its promise, or it accepted another roll in this one: a
    /// founder that came back may have forgotten its proposal.
    pub(super) fn accept(&mut self, ballot: FoundingBallot, roll: RollName) -> bool {
        let other = |(of, named): Accepted| of == ballot && named != roll;
        let may = !self.accepted.is_some_and(other) && self.prepare(ballot);
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
    /// The roll that it proposes unless another was accepted; none where it only asks for those.
    pub(super) own: Option<RollName>,
    /// The registrars of its own roll, of which a quorum decides.
    pub(super) registrars: SortedSet<PeerId>,
    pub(super) quorum: usize,
    pub(super) promises: SortedMap<PeerId, Option<Accepted>>,
    /// The roll that it asks the registrars to accept.
    pub(super) value: Option<RollName>,
    pub(super) accepted: SortedSet<PeerId>,
}

impl Proposal {
    pub(super) const fn new(
        ballot: FoundingBallot,
        own: Option<RollName>,
        registrars: SortedSet<PeerId>,
        quorum: usize,
    ) -> Self {
        Self {
            ballot,
            own,
            registrars,
            quorum,
            promises: SortedMap::new(),
            value: None,
            accepted: SortedSet::new(),
        }
    }

    /// Once a quorum has promised: the value, which may be chosen already.
    pub(super) fn promised(
        &mut self,
        from: PeerId,
        accepted: Option<Accepted>,
    ) -> Option<RollName> {
        let above = accepted.is_some_and(|(of, _)| of > self.ballot);
        // Only its own registrars count, and the value of a proposal is fixed once.
        if !self.registrars.contains(&from) || self.value.is_some() || above {
            return None;
        }
        self.promises.insert(from, accepted);
        if self.promises.len() < self.quorum {
            return None;
        }
        // The highest that was accepted may be chosen already; lower ones are not.
        let highest = self.promises.values().flatten().max();
        self.value = highest.map(|(_, roll)| *roll).or(self.own);
        self.value
    }

    /// A registrar that said that it accepted a roll: it can serve it.
    pub(super) fn holder(&self, roll: RollName) -> Option<PeerId> {
        let holds = |accepted: &Option<Accepted>| accepted.is_some_and(|(_, of)| of == roll);
        let mut all = self.promises.iter();
        all.find(|(_, accepted)| holds(accepted))
            .map(|(peer, _)| *peer)
    }

    /// A registrar has accepted: gives the chosen roll, once a quorum has.
    pub(super) fn accepted(&mut self, from: PeerId) -> Option<RollName> {
        if self.registrars.contains(&from) {
            self.accepted.insert(from);
        }
        self.value.filter(|_| self.accepted.len() >= self.quorum)
    }
}
