//! What a member has promised, voted for and seen decided in one fragment.
//!
//! This is single-decree Paxos per fragment. Ballot zero needs no coordinator because there is only
//! one thing to vote for: every shard as its first owner reduced it. Higher ballots are in
//! `repair`. A version vector with a strict majority of votes in one ballot is decided; no member
//! ever decides anything else, because a coordinator first hears a strict majority and keeps the
//! vote of the highest ballot it hears of.
//!
//! **Source:** Lamport 2001, "Paxos Made Simple", section 2.2.

use super::ballot::{Ballot, ShardVersion, Versions};
use super::signed::Testimony;
use crate::{Members, PeerId};
use std::collections::{BTreeMap, BTreeSet};

/// The votes of one ballot: what was voted for, each with the members that did.
///
/// Members vote for the same as a rule, so it is kept and compared once and not for every member.
#[derive(Debug, Default)]
struct Votes(Vec<(Versions, Members)>);

impl Votes {
    /// Counts a member's vote, if it is its first.
    fn add(&mut self, index: usize, versions: &[ShardVersion]) {
        if self.0.iter().any(|(_, voters)| voters.has(index)) {
            return;
        }
        let known = self.0.iter_mut().find(|(voted, _)| *voted == versions);
        match known {
            Some((_, voters)) => *voters |= Members::one(index),
            None => self.0.push((versions.to_vec(), Members::one(index))),
        }
    }

    /// What this number of members voted for.
    fn majority(&self, quorum: usize) -> Option<&Versions> {
        let found = self.0.iter().find(|(_, voters)| voters.count() >= quorum);
        found.map(|(versions, _)| versions)
    }
}

/// What was promised, voted and decided.
#[derive(Debug)]
pub(super) struct Agreement {
    /// The ballot whose targets are being followed.
    pub(super) ballot: Ballot,
    /// No vote is given below this ballot.
    pub(super) promised: Ballot,
    /// This peer's vote in the highest ballot.
    pub(super) voted: Option<(Ballot, Versions)>,
    votes: BTreeMap<Ballot, Votes>,
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
    /// ballot: two different votes of one member could complete two different majorities.
    pub(super) fn may_vote(&self) -> bool {
        let stale = self.ballot < self.promised;
        let voted = self.voted.as_ref().is_some_and(|(b, _)| *b >= self.ballot);
        !stale && !voted && self.decided.is_none()
    }

    /// Counts a member's vote; `quorum` equal ones decide. The first vote of a member in a ballot
    /// stands, so that a member that sends two different ones is counted for one of them only.
    pub(super) fn count(
        &mut self,
        ballot: Ballot,
        index: usize,
        versions: &[ShardVersion],
        quorum: usize,
    ) {
        let votes = self.votes.entry(ballot).or_default();
        votes.add(index, versions);
        if self.decided.is_none()
            && let Some(versions) = votes.majority(quorum)
        {
            self.decided = Some((ballot.number, versions.clone()));
        }
    }

    /// A peer that knows the decision says what it is.
    pub(super) fn told(&mut self, by: PeerId, ballot: u8, versions: Versions) {
        self.decided = Some((ballot, versions));
        self.told_by = Some(by);
    }

    /// The members that voted for these versions in any ballot.
    pub(super) fn voters_for(&self, versions: &Versions) -> BTreeSet<usize> {
        if let Some(signed) = &self.signed {
            return signed.holders(versions).iter().collect();
        }
        let votes = self.votes.values().flat_map(|votes| &votes.0);
        let equal = votes.filter(|(voted, _)| voted == versions);
        equal.flat_map(|(_, voters)| voters.iter()).collect()
    }
}
