//! What a member has promised, voted for and seen decided in one fragment.
//!
//! This is single-decree Paxos per fragment. Ballot zero needs no coordinator because there is only
//! one thing to vote for: every shard as its first owner reduced it. Higher ballots are in
//! `repair`. A version vector with a strict majority of votes in one ballot is decided; no member
//! ever decides anything else, because a coordinator first hears a strict majority and keeps the
//! vote of the highest ballot it hears of.
//!
//! Votes name a digest of the version vector, so that they stay small in large groups. A digest with a
//! majority is *chosen*. It becomes *decided* once this peer knows the versions behind it: because it
//! holds them, voted for them, or was told. Promises and repairs carry whole vectors.
//!
//! **Source:** Lamport 2001, "Paxos Made Simple", section 2.2.

use super::ballot::{Ballot, Versions};
use super::signed::Testimony;
use crate::{Digest, Members, PeerId};
use std::collections::BTreeMap;

/// What was promised, voted and decided.
#[derive(Debug)]
pub(super) struct Agreement {
    /// The ballot whose targets are being followed.
    pub(super) ballot: Ballot,
    /// No vote is given below this ballot.
    pub(super) promised: Ballot,
    /// This peer's vote in the highest ballot.
    pub(super) voted: Option<(Ballot, Versions)>,
    votes: BTreeMap<Ballot, BTreeMap<usize, Digest>>,
    /// What a majority voted for, and in which ballot's number.
    chosen: Option<(u8, Digest)>,
    /// What was decided, and in which ballot's number.
    pub(super) decided: Option<(u8, Versions)>,
    /// The peer that said so, where this peer did not count the votes itself.
    pub(super) told_by: Option<PeerId>,
    /// What was signed, where the group survives liars. Then votes are counted there.
    pub(super) signed: Option<Box<Testimony>>,
}

impl Agreement {
    pub(super) fn new(first: Ballot) -> Self {
        Self {
            ballot: first,
            promised: first,
            voted: None,
            votes: BTreeMap::new(),
            chosen: None,
            decided: None,
            told_by: None,
            signed: None,
        }
    }

    /// The ballot that a message without a proof names: in signed ballots the number may be higher
    /// than in others, and says nothing.
    pub(super) fn first(&self) -> Ballot {
        match self.signed {
            Some(_) => Ballot {
                number: 0,
                ..self.promised
            },
            None => self.promised,
        }
    }

    /// Whether this peer may still vote in the current ballot.
    ///
    /// Not below a promise: the coordinator of the higher ballot plans on the votes that it was
    /// told of, and a later vote in a lower ballot could decide something else. Not twice in one
    /// ballot: two different votes of one member could complete two different majorities. Not where
    /// this ballot has its majority already: the vote would be of no use.
    pub(super) fn may_vote(&self) -> bool {
        let stale = self.ballot < self.promised;
        let voted = self.voted.as_ref().is_some_and(|(b, _)| *b >= self.ballot);
        let chosen = self.chosen.is_some_and(|(n, _)| n >= self.ballot.number);
        !stale && !voted && !chosen && self.decided.is_none()
    }

    /// Whether it is known that nothing else can be decided any more, though perhaps not yet what was.
    pub(super) fn is_settled(&self) -> bool {
        self.decided.is_some() || self.chosen.is_some()
    }

    /// What a majority voted for, and in which ballot's number, as long as this peer does not know
    /// the versions.
    pub(super) fn unnamed(&self) -> Option<(u8, Digest)> {
        self.chosen.filter(|_| self.decided.is_none())
    }

    /// Counts a member's vote; `quorum` equal ones decide. The first vote of a member in a ballot
    /// stands, so that a member that sends two different ones is counted for one of them only.
    pub(super) fn count(&mut self, ballot: Ballot, index: usize, value: Digest, quorum: usize) {
        let votes = self.votes.entry(ballot).or_default();
        votes.entry(index).or_insert(value);
        if !self.is_settled()
            && let Some(value) = self.majority(ballot, quorum)
        {
            self.chosen = Some((ballot.number, value));
        }
    }

    /// What this number of members voted for in one ballot.
    fn majority(&self, ballot: Ballot, quorum: usize) -> Option<Digest> {
        let votes = self.votes.get(&ballot)?;
        let same = |value: &Digest| votes.values().filter(|other| *other == value).count();
        votes.values().find(|value| same(value) >= quorum).copied()
    }

    /// The versions behind the digest that a majority voted for.
    pub(super) fn name(&mut self, versions: Versions) {
        if let Some((number, _)) = self.unnamed() {
            self.decided = Some((number, versions));
        }
    }

    /// A peer that knows the decision says what it is.
    pub(super) fn told(&mut self, by: PeerId, ballot: u8, versions: Versions) {
        let number = self.chosen.map_or(ballot, |(number, _)| number);
        self.decided = Some((number, versions));
        self.told_by = Some(by);
    }

    /// The members that voted for this value in any ballot.
    pub(super) fn voters_for(&self, value: &Digest) -> Members {
        let votes = self.votes.values().flatten();
        let equal = votes.filter(|(_, voted)| *voted == value);
        equal.map(|(index, _)| *index).collect()
    }
}
