//! What a member has promised, voted for and seen decided in one fragment.
//!
//! This is single-decree Paxos per fragment. Ballot zero needs no coordinator because there is only one thing to vote
//! for: every shard as its first owner reduced it. Higher ballots are in `vote`. A version vector with a strict
//! majority of votes in one ballot is decided; no member ever decides anything else, because a coordinator first
//! hears a strict majority and keeps the vote of the highest ballot it hears of.
//!
//! A vote is for a value: the digest of the versions. A member that hears of a majority for a value and cannot name
//! its versions is like one that did not hear the votes: it does not act on them. It asks a voter for the names.
//!
//! **Source:** Lamport 2001, "Paxos Made Simple", section 2.2.

use super::member::{Ballot, ShardVersion, Versions, vote_of};
use super::message::Promise;
use super::testimony::Testimony;
use crate::limits::{BALLOTS_MAX, BALLOTS_SIGNED_MAX};
use crate::sorted::{SortedMap, SortedSet};
use crate::{Digest, Members, PeerId, Time};
use core::time::Duration;

/// The votes of one ballot: each value with the members that voted for it.
#[derive(Debug, Default)]
struct Votes(Vec<(Digest, Members)>);

impl Votes {
    /// Counts a member's vote, if it is its first.
    fn add(&mut self, index: usize, value: Digest) {
        // A second vote could complete a second majority.
        if self.0.iter().any(|(_, voters)| voters.has(index)) {
            return;
        }
        let known = self.0.iter_mut().find(|(voted, _)| *voted == value);
        match known {
            Some((_, voters)) => *voters |= Members::one(index),
            None => self.0.push((value, Members::one(index))),
        }
    }

    /// A value that this number of members voted for, with its voters.
    fn majority(&self, quorum: usize) -> Option<(Digest, Members)> {
        let found = self.0.iter().find(|(_, voters)| voters.count() >= quorum);
        found.copied()
    }
}

/// A ballot that this peer coordinates.
#[derive(Debug)]
pub(super) struct Coordination {
    pub(super) ballot: Ballot,
    pub(super) promises: SortedMap<usize, Promise>,
    /// The plan is made. The members may have voted on it, so later promises change nothing.
    pub(super) planned: bool,
}

/// Promises, votes and the decision.
#[derive(Debug)]
pub(super) struct Agreement {
    /// The ballot whose targets are being followed.
    pub(super) ballot: Ballot,
    /// No vote is given below this ballot.
    pub(super) promised: Ballot,
    pub(super) voted: Option<(Ballot, Versions)>,
    votes: SortedMap<Ballot, Votes>,
    /// The versions that values stand for, of values that some member voted for.
    names: SortedMap<Digest, Versions>,
    /// The decision, with the number of its ballot.
    pub(super) decided: Option<(u8, Versions)>,
    /// The peer that said so, where this peer did not count the votes itself.
    pub(super) told_by: Option<PeerId>,
    pub(super) coordination: Option<Coordination>,
    /// A coordinator's question, answered once this peer's reductions are done.
    pub(super) asked: Option<(PeerId, Ballot)>,
    /// The last ballot whose results were waited for after its contributions.
    pub(super) extended: u8,
    /// Signed statements, where the group survives liars. Then votes are counted there.
    pub(super) signed: Option<Box<Testimony>>,
}

impl Agreement {
    pub(super) fn new(first: Ballot, signed: Option<Box<Testimony>>) -> Self {
        Self {
            ballot: first,
            promised: first,
            voted: None,
            votes: SortedMap::new(),
            names: SortedMap::new(),
            decided: None,
            told_by: None,
            coordination: None,
            asked: None,
            extended: 0,
            signed,
        }
    }

    /// Members sign: what follows for votes and ballots is in `signed`.
    pub(super) const fn signs(&self) -> bool {
        self.signed.is_some()
    }

    /// The number after the last ballot that a shard may be reduced in.
    pub(super) const fn ballots_max(&self) -> u8 {
        if self.signs() {
            BALLOTS_SIGNED_MAX
        } else {
            BALLOTS_MAX
        }
    }

    /// Time of the next look, beside the deadlines of the fragment's stages.
    pub(super) fn due(&self) -> Option<Time> {
        self.signed.as_ref()?.due()
    }

    /// No ballot is left in which something could be decided.
    pub(super) fn is_spent(&self) -> bool {
        self.signed.as_ref().is_some_and(|signed| signed.end == 0)
    }

    /// Promises not to vote below a ballot.
    pub(super) fn enter(&mut self, ballot: Ballot) {
        if let Some(signed) = &mut self.signed
            && ballot > self.promised
        {
            signed.begins_ballot();
        }
        // A promise is never taken back, also not for a lower ballot that arrives later.
        self.promised = self.promised.max(ballot);
    }

    /// The wait of a step of the present ballot.
    pub(super) fn stretch(&self, allowed: Duration, ceiling: Duration) -> Duration {
        match &self.signed {
            // As long as waits are too short here, ballots that follow each other decide nothing.
            Some(signed) => (allowed * signed.patience()).min(ceiling.max(allowed)),
            None => allowed,
        }
    }

    /// The ballot that a message without a proof names; the number of a signed one says nothing.
    pub(super) fn first(&self) -> Ballot {
        let number = if self.signs() {
            0
        } else {
            self.promised.number
        };
        Ballot {
            number,
            ..self.promised
        }
    }

    /// This peer may still vote in the current ballot.
    ///
    /// Not below a promise: the coordinator of the higher ballot plans on the votes that it was
    /// told of, and a later vote in a lower ballot could decide something else. Not twice in one
    /// ballot: two different votes of one member could complete two different majorities.
    pub(super) fn may_vote(&self) -> bool {
        let stale = self.ballot < self.promised;
        let voted = self.voted.as_ref().is_some_and(|(b, _)| *b >= self.ballot);
        !stale && !voted && self.decided.is_none()
    }

    /// Counts a member's vote for a value, with its versions where they are known. `quorum` equal votes
    /// decide, once this peer can name the versions. The first vote of a member in a ballot stands, so
    /// that a member that sends two different ones is counted for one of them only.
    pub(super) fn count(
        &mut self,
        ballot: Ballot,
        index: usize,
        (value, versions): (Digest, Option<&[ShardVersion]>),
        quorum: usize,
    ) {
        self.votes.entry(ballot).or_default().add(index, value);
        let mut values = self.votes.values().flat_map(|votes| &votes.0);
        // Names only of what some member voted for: otherwise one peer could fill the memory with
        // them.
        if let Some(versions) = versions
            && values.any(|(voted, _)| *voted == value)
        {
            let name = self.names.entry(value);
            name.or_insert_with(|| versions.to_vec());
        }
        if self.decided.is_none() {
            self.decided = self.votes.iter().find_map(|(ballot, votes)| {
                let (value, _) = votes.majority(quorum)?;
                let versions = self.names.get(&value)?;
                Some((ballot.number, versions.clone()))
            });
        }
    }

    /// The members whose vote in the current ballot is here.
    pub(super) fn voters(&self) -> Members {
        let votes = self.votes.get(&self.ballot);
        let votes = votes.into_iter().flat_map(|votes| &votes.0);
        votes.fold(Members::NONE, |all, (_, voters)| all | *voters)
    }

    /// A value that a majority voted for although this peer cannot name it, with its voters.
    pub(super) fn unnamed(&self, quorum: usize) -> Option<(Digest, Members)> {
        if self.decided.is_some() {
            return None;
        }
        let mut all = self.votes.values().filter_map(|v| v.majority(quorum));
        all.find(|(value, _)| !self.names.contains_key(value))
    }

    pub(super) fn coordinates(&self, ballot: Ballot) -> bool {
        let current = self.coordination.as_ref();
        current.is_some_and(|coordination| coordination.ballot >= ballot)
    }

    /// The members that have promised in a ballot that this peer coordinates and has no plan for.
    pub(super) fn promised_so_far(&self) -> Option<Members> {
        let open = self.coordination.as_ref().filter(|c| !c.planned)?;
        Some(open.promises.keys().copied().collect())
    }

    /// The members that voted for these versions in any ballot.
    pub(super) fn voters_for(&self, versions: &Versions) -> SortedSet<usize> {
        if let Some(signed) = &self.signed {
            return signed.holders(versions).iter().collect();
        }
        let value = vote_of(versions);
        let votes = self.votes.values().flat_map(|votes| &votes.0);
        let equal = votes.filter(|(voted, _)| *voted == value);
        equal.flat_map(|(_, voters)| voters.iter()).collect()
    }
}
