//! Agreement: a strict majority of the group must hold, and vote for, the same versions.
//!
//! This is single-decree Paxos per fragment. Ballot zero needs no coordinator because there is
//! only one thing to vote for: every shard as its first owner reduced it. Higher ballots are
//! `repair`'s. A version vector with a strict majority of votes in one ballot is decided; no member
//! ever decides anything else, because a coordinator first hears a strict majority and keeps the
//! vote of the highest ballot it hears of.
//!
//! **Source:** Lamport 2001, "Paxos Made Simple", section 2.2.

use super::fragment::FragmentRound;
use super::state::FragmentStage;
use crate::core::FetchId;
use crate::core::context::Context;
use crate::limits::SEARCHES_MAX;
use crate::wire::{Ballot, FragmentMessage, ShardVersion};
use crate::{Output, PeerError, PeerId, Wait};
use std::collections::{BTreeMap, BTreeSet};

/// A vote: one version for each shard.
type Versions = Vec<ShardVersion>;

/// What was promised, voted and decided.
#[derive(Debug)]
pub(super) struct Agreement {
    /// The ballot whose targets are being followed.
    pub(super) ballot: Ballot,
    /// No vote is given below this ballot.
    pub(super) promised: Ballot,
    /// This peer's vote in the highest ballot.
    pub(super) voted: Option<(Ballot, Versions)>,
    votes: BTreeMap<Ballot, BTreeMap<usize, Versions>>,
    /// What was decided, and in which ballot's number.
    pub(super) decided: Option<(u8, Versions)>,
    /// Who said so, where it was not the votes.
    told_by: Option<PeerId>,
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
        }
    }

    /// What a strict majority voted for in one ballot.
    fn majority(&self, ballot: Ballot, enough: impl Fn(usize) -> bool) -> Option<&Versions> {
        let votes = self.votes.get(&ballot)?;
        votes
            .values()
            .find(|v| enough(votes.values().filter(|w| w == v).count()))
    }
}

impl FragmentRound {
    /// Votes in the current ballot once every shard is here in the version it is about.
    pub(super) fn vote(&mut self, cx: &mut Context) {
        let ballot = self.agreement.ballot;
        let stale = ballot < self.agreement.promised;
        let voted = self
            .agreement
            .voted
            .as_ref()
            .is_some_and(|(b, _)| *b >= ballot);
        if stale || voted || self.agreement.decided.is_some() {
            return;
        }
        let versions: Option<Versions> = (0..self.scope.of).map(|s| self.fitting(s)).collect();
        let Some(versions) = versions else { return };
        self.agreement.voted = Some((ballot, versions.clone()));
        for (_, peer) in self.scope.group.others() {
            let versions = versions.clone();
            cx.send(
                peer,
                self.scoped(FragmentMessage::Vote { ballot, versions }),
            );
        }
        self.count(ballot, self.scope.group.me, versions);
    }

    /// Another member's vote.
    pub(super) fn on_vote(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: Ballot,
        versions: &[ShardVersion],
    ) -> Result<(), PeerError> {
        let Some(index) = self.scope.group.index(from) else {
            return Ok(());
        };
        if versions.len() != usize::from(self.scope.of) {
            return Err(PeerError::Unexpected {
                what: format!(
                    "a vote on {} shards instead of {}",
                    versions.len(),
                    self.scope.of
                ),
            });
        }
        let unled = ballot.number == 0 && ballot.coordinator != self.scope.group.peer(0);
        if unled || self.scope.group.index(ballot.coordinator).is_none() {
            return Err(PeerError::Unexpected {
                what: "a vote in a ballot that no member of the group coordinates".to_owned(),
            });
        }
        if self.stage != FragmentStage::Repairing {
            let since = if self.stage == FragmentStage::Gathering {
                self.since
            } else {
                cx.now
            };
            cx.deadlines
                .record(Wait::Agreement, from, cx.now.since(since));
        }
        self.count(ballot, index, versions.to_vec());
        self.advance(cx);
        Ok(())
    }

    fn count(&mut self, ballot: Ballot, index: usize, versions: Versions) {
        let votes = self.agreement.votes.entry(ballot).or_default();
        votes.entry(index).or_insert(versions);
        let majority = self
            .agreement
            .majority(ballot, |count| self.scope.group.majority(count));
        if self.agreement.decided.is_none()
            && let Some(versions) = majority.cloned()
        {
            self.agreement.decided = Some((ballot.number, versions));
        }
    }

    /// Somebody who ended the exchange says how.
    pub(super) fn on_decided(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: u8,
        versions: &[ShardVersion],
    ) {
        if versions.len() == usize::from(self.scope.of) && self.agreement.decided.is_none() {
            self.agreement.decided = Some((ballot, versions.to_vec()));
            self.agreement.told_by = Some(from);
            self.fetch_missing(cx, from);
        }
        self.advance(cx);
    }

    /// Ends the exchange when something is decided and all of it is here.
    pub(super) fn conclude(&mut self, cx: &mut Context) {
        let Some((number, versions)) = self.agreement.decided.clone() else {
            return;
        };
        let lacking = self.lacking(&versions);
        if lacking.is_empty() {
            for wait in [Wait::Contributions, Wait::Agreement, Wait::Repair] {
                cx.waited_in(self.scope.fragment, wait, false);
            }
            self.apply(cx, number, &versions);
            return;
        }
        // The bytes of a living owner are on their way; those of a dead one are not.
        let holder = self.holders_of(&versions).first().copied();
        // So are those of a schedule, while it goes on.
        let handed_on = self.pipeline.is_none() || (self.pipelining() && !self.broken());
        for (shard, version) in lacking {
            let owner = self.scope.group.index(version.owner);
            let coming =
                owner.is_some_and(|i| self.hopeful.has(i)) && (version.attempt > 0 || handed_on);
            if !coming && let Some(holder) = holder {
                self.fetch(cx, shard, &version, holder);
            }
        }
    }

    /// What is decided is still not here though its owners live: take it from a member that holds
    /// it, each time from another; after [`SEARCHES_MAX`] times from a newer state.
    pub(super) fn search(&mut self, cx: &mut Context) {
        let Some((_, versions)) = self.agreement.decided.clone() else {
            return;
        };
        let holders = self.holders_of(&versions);
        let told_by = self.agreement.told_by.filter(|p| !holders.contains(p));
        let holders: Vec<PeerId> = holders.into_iter().chain(told_by).collect();
        self.transfers.searches += 1;
        for wait in [Wait::Contributions, Wait::Agreement, Wait::Repair] {
            cx.waited_in(self.scope.fragment, wait, true);
        }
        let next = holders.get(usize::from(self.transfers.searches) % holders.len().max(1));
        if self.transfers.searches > SEARCHES_MAX || next.is_none() {
            let first = holders.first().copied();
            self.missed = first.or_else(|| self.scope.group.others().map(|(_, p)| p).next());
            if self.missed.is_none() {
                self.void(cx);
            }
            return;
        }
        self.deadline = cx.wait_in(self.scope.fragment, Wait::Repair, cx.deadlines.ceiling());
        if let Some(holder) = next {
            self.fetch_missing(cx, *holder);
        }
    }

    fn lacking(&self, versions: &[ShardVersion]) -> Vec<(u16, ShardVersion)> {
        let here = |shard: u16, v: &ShardVersion| {
            self.held
                .get(&shard)
                .is_some_and(|versions| versions.contains(v))
        };
        (0u16..)
            .zip(versions)
            .filter(|(s, v)| !here(*s, v) && !self.left_out(v))
            .map(|(s, v)| (s, *v))
            .collect()
    }

    /// Members that voted for these versions and therefore hold them all.
    fn holders_of(&self, versions: &Versions) -> Vec<PeerId> {
        let votes = self.agreement.votes.values().flatten();
        let holders = votes.filter(|(i, v)| **i != self.scope.group.me && *v == versions);
        let indices: BTreeSet<usize> = holders.map(|(i, _)| *i).collect();
        indices
            .into_iter()
            .map(|i| self.scope.group.peer(i))
            .collect()
    }

    /// Fetches decided versions that are not here.
    fn fetch_missing(&mut self, cx: &mut Context, holder: PeerId) {
        let Some((_, versions)) = self.agreement.decided.clone() else {
            return;
        };
        for (shard, version) in self.lacking(&versions) {
            self.fetch(cx, shard, &version, holder);
        }
    }

    /// Fetches one version from a member that holds it.
    pub(super) fn fetch(
        &mut self,
        cx: &mut Context,
        shard: u16,
        version: &ShardVersion,
        holder: PeerId,
    ) {
        let slice = self.aggregate(shard, version);
        if self.transfers.fetching.insert(slice) {
            let deadline = cx.now + cx.deadlines.ceiling();
            cx.put(Output::Fetch {
                what: FetchId::Slice(slice),
                from: vec![holder],
                deadline,
            });
        }
    }
}
