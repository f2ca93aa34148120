//! Agreement: a strict majority of the group must hold, and vote for, the same versions.
//!
//! Promises, votes and the decision are in `agreement`. Here a fragment's round hears its members, votes, fetches the
//! slices that it lacks of the decided versions, and ends. This is where it asks whether members sign: in groups that
//! survive liars they vote in `signed`, in others here and in `repair`.

use super::ballot::{Ballot, ShardVersion, Versions, vote_of};
use super::fragment::FragmentRound;
use super::message::{FragmentMessage, Scoped};
use super::state::FragmentStage;
use crate::core::context::Context;
use crate::exchange::broke;
use crate::limits::{SEARCHES_MAX, VOTE_NAMES_MAX};
use crate::{Attempt, Digest, Members, PeerError, PeerId, Wait};

impl FragmentRound {
    /// A message of a member, which is answered where the exchange has ended.
    ///
    /// # Errors
    /// When its sender broke a rule.
    pub(in crate::exchange) fn hear(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        body: &FragmentMessage,
    ) -> Result<(), PeerError> {
        if self.over() {
            self.answer(cx, from, body);
            return Ok(());
        }
        let signs = self.agreement.signs();
        match body {
            FragmentMessage::Reduced { shard, version } => {
                return self.on_reduced(cx, from, *shard, *version);
            }
            FragmentMessage::Signed(signed) if signs => return self.on_signed(cx, from, signed),
            FragmentMessage::Signed(_) => {
                return broke("a signed message in a group that signs nothing");
            }
            // An answer about a round that the sender replayed has no proof.
            _ if signs => {}
            FragmentMessage::Vote { ballot, versions } => {
                return self.on_vote(cx, from, *ballot, versions);
            }
            FragmentMessage::VoteFor { ballot, value } => {
                return self.note_vote(cx, from, *ballot, (*value, None));
            }
            FragmentMessage::Query { .. } => self.answer(cx, from, body),
            FragmentMessage::Prepare { ballot } => return self.on_prepare(cx, from, *ballot),
            FragmentMessage::Promise(promise) => return self.on_promise(cx, from, promise),
            FragmentMessage::Repair {
                ballot,
                alive,
                shards,
            } => return self.on_repair(cx, from, *ballot, *alive, shards),
            FragmentMessage::Void { ballot } => self.on_void(cx, from, *ballot),
            FragmentMessage::EmptyRow if self.scope.within.is_some() => {
                if let Some(index) = self.scope.group.index(from) {
                    self.brings_nothing(index);
                    self.advance(cx);
                }
            }
            FragmentMessage::EmptyRow => return broke("an empty row in a group that has none"),
            FragmentMessage::Tally(entries) => return self.scope.on_tally(from, entries),
            FragmentMessage::Collected { .. } => {
                return broke("the results of columns in a group that has none");
            }
            FragmentMessage::Decided {
                ballot, versions, ..
            } => self.on_decided(cx, from, *ballot, versions),
        }
        Ok(())
    }

    /// Votes in the current ballot once every shard is here in the version it is about.
    pub(super) fn vote(&mut self, cx: &mut Context) {
        if self.agreement.signs() {
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
        let Some(versions) = self.all_fitting() else {
            return;
        };
        self.agreement.voted = Some((ballot, versions.clone()));
        let value = vote_of(&versions);
        let group = &self.scope.group;
        self.agreement
            .count(ballot, group.me, (value, Some(&versions)), group.quorum);
        let vote = if versions.len() <= VOTE_NAMES_MAX {
            FragmentMessage::Vote { ballot, versions }
        } else {
            FragmentMessage::VoteFor { ballot, value }
        };
        self.scope.send_all(cx, &vote);
    }

    /// The versions that the current ballot is about, if all of them are here.
    pub(super) fn all_fitting(&self) -> Option<Versions> {
        (0..self.scope.of).map(|s| self.fitting(s)).collect()
    }

    /// Another member's vote, with the versions that it is for.
    fn on_vote(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: Ballot,
        versions: &[ShardVersion],
    ) -> Result<(), PeerError> {
        let (count, of) = (versions.len(), self.scope.of);
        if count != usize::from(of) {
            return broke(&format!("a vote on {count} shards instead of {of}"));
        }
        let named = (vote_of(versions), Some(versions));
        self.note_vote(cx, from, ballot, named)
    }

    /// Another member's vote for a value, with its versions where it names them.
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
            return broke("a vote in a ballot that no member of the group coordinates");
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
            self.scope.send(cx, peer, FragmentMessage::Query { value });
        }
    }

    /// Answers a member's question: with the versions that a value stands for, or with the decision.
    fn answer(&self, cx: &mut Context, from: PeerId, body: &FragmentMessage) {
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

    /// The decision as a message, once there is one and all of it is here.
    pub(super) fn decision(&self) -> Option<Scoped> {
        if self.agreement.signs() {
            return self.proof();
        }
        self.plain_decision()
    }

    /// The decision as a message without a proof.
    pub(super) fn plain_decision(&self) -> Option<Scoped> {
        let (ballot, versions) = self.agreement.decided.clone()?;
        let signs = self.agreement.signs();
        Some(self.scope.scoped(FragmentMessage::Decided {
            ballot: if signs { 0 } else { ballot },
            members: self.scope.group.members.clone(),
            versions,
        }))
    }

    /// A member that has ended the exchange says how.
    fn on_decided(
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

    /// Ends the exchange once versions are decided and all of their bytes are here.
    pub(super) fn conclude(&mut self, cx: &mut Context) {
        let Some((number, versions)) = self.agreement.decided.clone() else {
            self.ask_for_names(cx);
            return;
        };
        let lacking = self.lacking(&versions);
        if lacking.is_empty() {
            self.stop_waiting(cx);
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
        self.stop_waiting(cx);
        let next = holders.get(usize::from(self.transfers.searches) % holders.len().max(1));
        let Some(holder) = next.filter(|_| self.transfers.searches <= SEARCHES_MAX) else {
            let first = holders.first().copied();
            self.missed = first.or_else(|| self.scope.group.other_peers().next());
            if self.missed.is_none() {
                self.void(cx);
            }
            return;
        };
        self.deadline = cx.wait_in(self.scope.fragment, Wait::Repair, cx.deadlines.ceiling());
        self.fetch_missing(cx, *holder);
    }

    /// Decided versions whose bytes are not here.
    fn lacking(&self, versions: &[ShardVersion]) -> Vec<(u16, ShardVersion)> {
        let here = |shard: u16, v: &ShardVersion| {
            let held = self.held.get(&shard);
            held.is_some_and(|versions| versions.contains(v))
        };
        let all = (0u16..).zip(versions.iter().copied());
        all.filter(|(s, v)| !here(*s, v) && !self.scope.left_out(v))
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
}
