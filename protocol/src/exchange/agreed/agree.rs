//! Agreement: a strict majority of the group must hold, and vote for, the same versions.
//!
//! What was promised, voted and decided is in `agreement`. Here members send and take votes, ask
//! which versions the majority's digest stands for, fetch what they lack of the decided versions, and
//! end the exchange.

use super::ballot::Versions;
use super::ballot::{Ballot, ShardVersion};
use super::fragment::FragmentRound;
use super::message::FragmentMessage;
use super::state::FragmentStage;
use super::value::vote_of;
use crate::core::FetchId;
use crate::core::context::Context;
use crate::limits::SEARCHES_MAX;
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
        let value = self.vote_of(&versions);
        self.agreement.voted = Some((ballot, versions));
        for (_, peer) in self.scope.group.others() {
            let vote = FragmentMessage::Vote { ballot, value };
            cx.send(peer, self.scope.scoped(vote));
        }
        let group = &self.scope.group;
        self.agreement.count(ballot, group.me, value, group.quorum);
    }

    /// What a vote for these versions names.
    fn vote_of(&self, versions: &[ShardVersion]) -> Digest {
        let scope = &self.scope;
        vote_of(scope.round, scope.fragment, scope.group.tag, versions)
    }

    /// Another member's vote.
    pub(super) fn on_vote(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: Ballot,
        value: Digest,
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
        self.agreement.count(ballot, index, value, quorum);
        self.advance(cx);
        Ok(())
    }

    /// Another member has a majority of votes for this value and cannot name its versions.
    pub(super) fn on_query(&mut self, cx: &mut Context, from: PeerId, value: Digest) {
        // Where there is a majority for one value, no member votes for another one in a higher ballot.
        let voted = self.agreement.voted.clone();
        let voted = voted.filter(|(_, versions)| self.vote_of(versions) == value);
        let answer = match voted {
            Some((ballot, versions)) => Some(self.decided_message(ballot.number, versions)),
            None => self.decision(),
        };
        if let Some(answer) = answer {
            cx.send(from, answer);
        }
    }

    /// A member that has ended the exchange says how.
    pub(super) fn on_decided(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        ballot: u8,
        versions: &[ShardVersion],
    ) {
        let unnamed = self.agreement.unnamed();
        // Nothing but what a majority has voted for can be decided.
        let agrees = unnamed.is_none_or(|(_, value)| self.vote_of(versions) == value);
        let fits = versions.len() == usize::from(self.scope.of) && agrees;
        if fits && self.agreement.decided.is_none() {
            self.agreement.told(from, ballot, versions.to_vec());
            if unnamed.is_some() && self.transfers.searches > 0 {
                // The clock that runs is that of an answer, and bytes take longer.
                cx.waited_in(self.scope.fragment, Wait::Repair, false);
                self.deadline =
                    cx.wait_in(self.scope.fragment, Wait::Repair, cx.deadlines.ceiling());
            }
            self.fetch_missing(cx, from);
        }
        self.advance(cx);
    }

    /// Finds the versions that a majority voted for among those that this peer knows: what it voted
    /// for, what it holds, and what the plan of the ballot keeps. It does not use the plan of a higher
    /// ballot before it has the bytes, because then it still votes there: the others may need the vote.
    fn name(&mut self) {
        let Some((number, value)) = self.agreement.unnamed() else {
            return;
        };
        let planned = |shard: u16| {
            let target = self.targets.get(usize::from(shard));
            target
                .filter(|_| self.agreement.ballot.number <= number)?
                .exact
        };
        let known = |shard: u16| self.fitting(shard).or_else(|| planned(shard));
        let known: Option<Versions> = (0..self.scope.of).map(known).collect();
        let voted = self
            .agreement
            .voted
            .iter()
            .map(|(_, versions)| versions.clone());
        let mut all = voted.chain(known);
        if let Some(versions) = all.find(|versions| self.vote_of(versions) == value) {
            self.agreement.name(versions);
        }
    }

    /// A member voted for these versions: perhaps they are those that a majority voted for.
    pub(super) fn learn(&mut self, cx: &mut Context, versions: &Versions) {
        let unnamed = self.agreement.unnamed();
        if unnamed.is_some_and(|(_, value)| self.vote_of(versions) == value) {
            self.agreement.name(versions.clone());
            self.advance(cx);
        }
    }

    /// A majority voted for versions that this peer cannot name: asks a voter, unless all that is
    /// missing is still on its way.
    fn ask_unless_coming(&mut self, cx: &mut Context) {
        let Some((_, value)) = self.agreement.unnamed() else {
            return;
        };
        let handed_on = self.hands_on();
        let coming = |shard: &u16| {
            let target = self.targets.get(usize::from(*shard));
            target.is_some_and(|target| {
                let fetched = target.exact.is_some_and(|version| {
                    let slice = self.scope.aggregate(*shard, &version);
                    self.transfers.fetching.contains(&slice)
                });
                let pushed = target.attempt > Attempt::FIRST || handed_on;
                fetched || (pushed && self.hopeful.has(target.owner))
            })
        };
        let missing = (0..self.scope.of).filter(|shard| self.fitting(*shard).is_none());
        let missing: Vec<u16> = missing.collect();
        let hopeful = |peer: &PeerId| {
            let index = self.scope.group.index(*peer);
            index.is_some_and(|index| self.hopeful.has(index))
        };
        let asked = self.transfers.asked.as_ref().is_some_and(hopeful);
        if asked || (!missing.is_empty() && missing.iter().all(coming)) {
            return;
        }
        let voter = self.voters_for(&value).into_iter().find(hopeful);
        if let Some(voter) = voter {
            self.ask(cx, voter, value);
        }
    }

    /// Asks a voter which versions were decided.
    fn ask(&mut self, cx: &mut Context, voter: PeerId, value: Digest) {
        self.transfers.asked = Some(voter);
        cx.send(voter, self.scope.scoped(FragmentMessage::Query { value }));
    }

    /// Whether aggregates of ballot zero are still on their way: pushed by their owners, or handed on
    /// while a schedule runs.
    fn hands_on(&self) -> bool {
        self.pipeline.is_none() || (self.pipelining() && !self.broken())
    }

    /// Ends the exchange once versions are decided and all of their bytes are here.
    pub(super) fn conclude(&mut self, cx: &mut Context) {
        self.name();
        let Some((number, versions)) = self.agreement.decided.clone() else {
            self.ask_unless_coming(cx);
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
        let handed_on = self.hands_on();
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
    /// holds them, each time from another one. Where this peer does not know which versions were
    /// decided, it asks that member first. After [`SEARCHES_MAX`] times it takes over a newer state
    /// instead.
    pub(super) fn search(&mut self, cx: &mut Context) {
        let unnamed = self.agreement.unnamed();
        let holders = match (unnamed, &self.agreement.decided) {
            (Some((_, value)), _) => self.voters_for(&value),
            (None, Some((_, versions))) => self.holders_of(versions),
            (None, None) => return,
        };
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
        let allowed = match unnamed {
            Some(_) => cx.deadlines.answer(),
            None => cx.deadlines.ceiling(),
        };
        self.deadline = cx.wait_in(self.scope.fragment, Wait::Repair, allowed);
        match (next, unnamed) {
            (Some(voter), Some((_, value))) => self.ask(cx, *voter, value),
            (Some(holder), None) => self.fetch_missing(cx, *holder),
            (None, _) => {}
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
        match &self.agreement.signed {
            Some(signed) => self.others(signed.holders(versions)),
            None => self.voters_for(&self.vote_of(versions)),
        }
    }

    /// Other members that voted for this value.
    fn voters_for(&self, value: &Digest) -> Vec<PeerId> {
        self.others(self.agreement.voters_for(value))
    }

    fn others(&self, members: Members) -> Vec<PeerId> {
        let group = &self.scope.group;
        let others = members.without(Members::one(group.me)).iter();
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
