//! Agreement: a strict majority of the group must hold, and vote for, the same versions.
//!
//! What was promised, voted and decided is in `agreement`. Here members send and take votes, fetch
//! what they lack of the decided versions, and end the exchange.

use super::ballot::Versions;
use super::ballot::{Ballot, ShardVersion};
use super::fragment::FragmentRound;
use super::message::{FragmentMessage, Scoped};
use super::state::FragmentStage;
use super::value::vote_of;
use crate::core::FetchId;
use crate::core::context::Context;
use crate::limits::{SEARCHES_MAX, VOTE_NAMES_MAX};
use crate::{Attempt, Digest, Members, Output, PeerError, PeerId, Wait};

impl FragmentRound {
    /// Votes in the current ballot once every shard is here in the version it is about.
    pub(super) fn vote(&mut self, cx: &mut Context) {
        if self.agreement.signed.is_some() {
            self.vote_signed(cx);
            self.settle_signed(cx);
            return;
        }
        if !self.agreement.may_vote() {
            return;
        }
        let ballot = self.agreement.ballot;
        // All or nothing: a vote tells the others that this peer can serve every one of these
        // bytes.
        let versions: Option<Versions> = (0..self.scope.of).map(|s| self.fitting(s)).collect();
        let Some(versions) = versions else { return };
        self.agreement.voted = Some((ballot, versions.clone()));
        let value = vote_of(&versions);
        for (_, peer) in self.scope.group.others() {
            let vote = match versions.len() <= VOTE_NAMES_MAX {
                true => FragmentMessage::Vote {
                    ballot,
                    versions: versions.clone(),
                },
                false => FragmentMessage::VoteFor { ballot, value },
            };
            cx.send(peer, self.scope.scoped(vote));
        }
        let group = &self.scope.group;
        self.agreement
            .count(ballot, group.me, (value, Some(&versions)), group.quorum);
    }

    /// Another member's vote, with the versions that it is for.
    pub(super) fn on_vote(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: Ballot,
        versions: &[ShardVersion],
    ) -> Result<(), PeerError> {
        if versions.len() != usize::from(self.scope.of) {
            return Err(PeerError::Unexpected {
                what: format!(
                    "a vote on {} shards instead of {}",
                    versions.len(),
                    self.scope.of
                ),
            });
        }
        let named = (vote_of(versions), Some(versions));
        self.note_vote(cx, from, ballot, named)
    }

    /// Another member's vote for a value.
    pub(super) fn on_vote_for(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: Ballot,
        value: Digest,
    ) -> Result<(), PeerError> {
        self.note_vote(cx, from, ballot, (value, None))
    }

    fn note_vote(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: Ballot,
        vote: (Digest, Option<&[ShardVersion]>),
    ) -> Result<(), PeerError> {
        let Some(index) = self.scope.group.index(from) else {
            return Ok(());
        };
        // Votes are counted for each ballot. If several members could open a ballot zero, votes for
        // the same versions would be spread over all of them.
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
        let quorum = self.scope.group.quorum;
        self.agreement.count(ballot, index, vote, quorum);
        self.advance(cx);
        Ok(())
    }

    /// Asks a voter which versions a majority voted for, if this peer cannot tell.
    fn ask_for_names(&mut self, cx: &mut Context) {
        let group = &self.scope.group;
        let Some((value, voters)) = self.agreement.unnamed(group.quorum) else {
            return;
        };
        let waited_for = |peer: &PeerId| group.index(*peer).is_some_and(|i| self.hopeful.has(i));
        if self.transfers.asked.as_ref().is_some_and(waited_for) {
            return;
        }
        // Members ask different voters, because every answer names all shards.
        let after = |voter: &usize| (voter + group.members.len() - group.me) % group.members.len();
        let voters = (voters & self.hopeful).without(Members::one(group.me));
        if let Some(voter) = voters.iter().min_by_key(after) {
            let peer = group.peer(voter);
            self.transfers.asked = Some(peer);
            cx.send(peer, self.scope.scoped(FragmentMessage::Query { value }));
        }
    }

    /// Tells a member what it asks for: the versions that a value stands for, or how the exchange ended.
    pub(super) fn answer(&self, cx: &mut Context, from: PeerId, body: &FragmentMessage) {
        let answer = match body {
            FragmentMessage::Query { value } => self.own_vote(*value).or_else(|| self.decision()),
            body if body.asks() => self.decision(),
            _ => None,
        };
        if let Some(answer) = answer {
            cx.send(from, answer);
        }
    }

    /// This peer's vote with its versions, if it is for this value.
    fn own_vote(&self, value: Digest) -> Option<Scoped> {
        let voted = self.agreement.voted.clone();
        let (ballot, versions) = voted.filter(|(_, versions)| vote_of(versions) == value)?;
        let vote = FragmentMessage::Vote { ballot, versions };
        Some(self.scope.scoped(vote))
    }

    /// A member that has ended the exchange says how.
    pub(super) fn on_decided(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: u8,
        versions: &[ShardVersion],
    ) {
        if versions.len() == usize::from(self.scope.of) && self.agreement.decided.is_none() {
            self.agreement.told(from, ballot, versions.to_vec());
            self.fetch_missing(cx, from);
        }
        self.advance(cx);
    }

    /// Ends the exchange once versions are decided and all of their bytes are here.
    pub(super) fn conclude(&mut self, cx: &mut Context) {
        let Some((number, versions)) = self.agreement.decided.clone() else {
            self.ask_for_names(cx);
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
        // A living owner is still pushing its bytes. Those of a dead one must be fetched from a
        // voter.
        let holder = self.holders_of(&versions).first().copied();
        // While a schedule runs, its aggregates are on their way too.
        let handed_on = self.pipeline.is_none() || (self.pipelining() && !self.broken());
        for (shard, version) in lacking {
            let owner = self.scope.group.index(version.owner);
            let coming = owner.is_some_and(|i| self.hopeful.has(i))
                && (version.attempt > Attempt::FIRST || handed_on);
            if !coming && let Some(holder) = holder {
                self.fetch(cx, shard, &version, holder);
            }
        }
    }

    /// Decided bytes are still missing although their owners live: fetches them from a member that
    /// holds them, each time from another one. After [`SEARCHES_MAX`] times this peer takes over a
    /// newer state instead.
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
            .filter(|(s, v)| !here(*s, v) && !self.scope.left_out(v))
            .map(|(s, v)| (s, *v))
            .collect()
    }

    /// Other members that voted for these versions and therefore hold them all.
    fn holders_of(&self, versions: &Versions) -> Vec<PeerId> {
        let group = &self.scope.group;
        let holders = self.agreement.voters_for(versions).into_iter();
        let others = holders.filter(|index| *index != group.me);
        others.map(|index| group.peer(index)).collect()
    }

    /// Fetches decided versions that are not here.
    pub(super) fn fetch_missing(&mut self, cx: &mut Context, holder: PeerId) {
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
        let slice = self.scope.aggregate(shard, version);
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
