//! Agreement in groups that survive liars, on one fragment: votes, locks and what they decide, then promises and
//! proposals in ballots above zero, at a member and at the coordinator.
//!
//! The rules of signing and deciding are in `rule`; the statements that this member has signed and heard are in
//! `testimony`. Contributions, aggregates, fetches and the rest of a fragment's round are as in other groups.

use super::decision::proven;
use super::fragment::FragmentRound;
use super::member::{Held, ShardPlan, ShardVersion, Versions};
use super::message::{FragmentMessage, Promise, Scoped};
use super::rule::{Choice, Claim, Ledger, choose, justified};
use super::scope::Scope;
use super::signed_message::{Pledge, SignedMessage, Stated, VoteCertificate};
use super::state::FragmentStage;
use super::testimony::{Testimony, by_peer, read, statement};
use crate::core::context::Context;
use crate::exchange::broke;
use crate::limits::{BALLOTS_UNTIL_VOID, LOCK_AFTER_MIN};
use crate::sorted::SortedMap;
use crate::{Attempt, Checked, Digest, Members, PeerId, Signature, Wait};

const MINE: Signature = Signature::BLANK;

impl FragmentRound {
    /// The signed side of the agreement, and its scope. Where messages, votes and deadlines come in it is
    /// asked once whether members sign; what follows from them here is reached in no other group.
    fn sealed(&mut self) -> (&mut Testimony, &Scope) {
        let signed = self.agreement.signed.as_deref_mut();
        (
            signed.expect("only members that sign come here"),
            &self.scope,
        )
    }

    pub(super) fn on_signed(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &SignedMessage,
    ) -> Checked {
        let Some(index) = self.scope.group.index(from) else {
            return Ok(());
        };
        match message {
            SignedMessage::Vote(said) => self.on_testimony(cx, index, said, false),
            SignedMessage::Lock(said) => self.on_testimony(cx, index, said, true),
            SignedMessage::Prepare { ballot } => {
                self.asked_for(cx, index, *ballot);
                self.advance(cx);
                Ok(())
            }
            SignedMessage::Promise {
                ballot,
                pledge,
                certificate,
                versions,
                held,
            } => {
                let shown = (certificate.as_deref(), versions.as_slice());
                self.on_signed_promise(cx, index, (*ballot, **pledge), shown, held)
            }
            SignedMessage::Repair {
                ballot,
                pledges,
                certificate,
                shards,
            } => self.on_signed_repair(cx, index, *ballot, (pledges, certificate), shards),
            SignedMessage::Decided { .. } => self.on_proof(cx, from, message),
            SignedMessage::Heard { ballot, votes } => {
                let (signed, scope) = self.sealed();
                signed.on_heard(cx, scope, *ballot, votes)
            }
        }
    }

    fn say(&mut self, cx: &mut Context, to: Option<PeerId>, message: SignedMessage) {
        let (signed, scope) = self.sealed();
        signed.say(cx, scope, to, message);
    }

    /// A wait has ended without a result; true if this peer first repeats its statements, once.
    pub(super) fn repeats(&mut self, cx: &mut Context) -> bool {
        let signed = self.agreement.signed.as_mut();
        let Some(signed) = signed.filter(|signed| signed.statements.may_be_repeated()) else {
            return false;
        };
        signed.repeat(cx, &self.scope);
        self.wait_for_repair(cx, cx.deadlines.answer());
        true
    }

    /// Votes in the current ballot once every shard is here in the version it is about.
    pub(super) fn vote_signed(&mut self, cx: &mut Context) {
        let ballot = self.agreement.ballot.number;
        let decided = self.agreement.decided.is_some();
        let (signed, _) = self.sealed();
        // A vote binds this peer to the group, and a group that lacks a quorum decides nothing.
        if decided || !signed.joined || !signed.ledger.may_vote(ballot) {
            return;
        }
        let versions = if signed.void == Some(ballot) {
            Some(Versions::new())
        } else {
            self.all_fitting()
        };
        let Some(versions) = versions else { return };
        let (signed, scope) = self.sealed();
        let (me, value) = (scope.group.me, signed.value(&versions));
        // Into the ledger before it is sent: what is signed twice proves that this peer lies.
        signed.ledger.vote(ballot, value);
        signed.ledger.heard_vote(me, ballot, value, MINE);
        signed.known.insert(value, versions.clone());
        let vote = SignedMessage::Vote(Stated {
            ballot,
            value,
            versions,
            signature: MINE,
        });
        signed.say(cx, scope, None, vote);
        signed.show_votes(cx, scope, ballot, me);
    }

    /// Another member's vote or lock. A second one for something else proves that it lies.
    fn on_testimony(
        &mut self,
        cx: &mut Context,
        index: usize,
        said: &Stated,
        locks: bool,
    ) -> Checked {
        let (ballot, value, versions) = (said.ballot, said.value, &said.versions);
        let fits = self.scope.may_decide(versions.len());
        let (signed, scope) = self.sealed();
        if !fits || signed.value(versions) != value {
            return broke("a vote whose value is not that of its versions");
        }
        let signature = said.signature;
        let saying = (statement(locks, ballot, value), signature);
        // A liar's second statement counts for nothing; its first one stands.
        if signed.compare(cx, scope, index, saying) {
            return Ok(());
        }
        if locks {
            signed.ledger.heard_lock(index, ballot, value, signature);
        } else {
            signed.ledger.heard_vote(index, ballot, value, signature);
        }
        signed.known.insert(value, versions.clone());
        // Another member misses votes: there is no point in waiting longer.
        signed.overdue |= locks;
        if !locks && ballot == 0 {
            let peer = scope.group.peer(index);
            // Where something is missing, others wait for it too: that is not how long one of them takes.
            let waits = self.stage == FragmentStage::Gathering && self.missing_owners().is_empty();
            if waits && self.transfers.overdue.is_empty() {
                let waited = cx.now.since(self.since);
                cx.deadlines.record(Wait::Agreement, peer, waited);
            }
            // Only ballot zero is about bytes that were handed out by their owners.
            self.compare_bytes(cx, peer, versions);
        }
        if !locks {
            let (signed, scope) = self.sealed();
            signed.show_votes(cx, scope, ballot, index);
        }
        self.advance(cx);
        Ok(())
    }

    /// A member votes for a version of its own other than the one that it gave this member. No other
    /// member can tell, so this one cuts it off by itself.
    fn compare_bytes(&self, cx: &mut Context, peer: PeerId, versions: &[ShardVersion]) {
        let given = |part: u16| self.transfers.given.get(&part).copied();
        let other = (0u16..).zip(versions).find(|(shard, version)| {
            let own = version.owner == peer && version.attempt == Attempt::FIRST;
            own && !self.scope.left_out(version)
                && given(*shard).is_some_and(|given| given != version.digest)
        });
        if let Some((shard, _)) = other {
            let what =
                format!("it gave this member other bytes of shard {shard} than it voted for");
            cx.convict(peer, what);
        }
    }

    /// Decides or locks, if the statements that are here allow it.
    pub(super) fn settle_signed(&mut self, cx: &mut Context) {
        if self.over() || self.agreement.decided.is_some() || self.decide(cx) {
            return;
        }
        let (since, most) = (self.since, cx.deadlines.answer());
        let (signed, scope) = self.sealed();
        let Some((ballot, value)) = signed.ledger.may_lock() else {
            return;
        };
        // In ballot zero all votes decide without a lock, which would be another message to all. The
        // last votes may take as long as the others took.
        if ballot == 0 && !signed.overdue && signed.awaits_votes() {
            let patience = cx.now.since(since).max(LOCK_AFTER_MIN).min(most);
            signed.lock_at.get_or_insert(cx.now + patience);
            return;
        }
        signed.lock_at = None;
        signed.ledger.lock(ballot);
        signed
            .ledger
            .heard_lock(scope.group.me, ballot, value, MINE);
        let versions = signed.known.get(&value).cloned().unwrap_or_default();
        let lock = SignedMessage::Lock(Stated {
            ballot,
            value,
            versions,
            signature: MINE,
        });
        signed.say(cx, scope, None, lock);
        self.decide(cx);
    }

    /// Takes over a decision of the ledger whose versions are known. Returns `true` if there is one.
    fn decide(&mut self, cx: &mut Context) -> bool {
        let (signed, scope) = self.sealed();
        let Some(decision) = signed.ledger.decided() else {
            return false;
        };
        // Signatures alone name no bytes: a member that knows the versions will show them.
        let Some(versions) = signed.known.get(&decision.value).cloned() else {
            return false;
        };
        let proof = SignedMessage::Decided {
            ballot: decision.ballot,
            value: decision.value,
            group: signed.group.words.clone(),
            versions: versions.clone(),
            locked: decision.locked,
            signatures: by_peer(&scope.group, &decision.signatures),
        };
        self.proven(cx, decision.ballot, versions, proof);
        true
    }

    /// A value is decided, and this proves it.
    fn proven(&mut self, cx: &mut Context, ballot: u8, versions: Versions, proof: SignedMessage) {
        let (signed, _) = self.sealed();
        signed.proof = Some(proof);
        signed.lock_at = None;
        if versions.is_empty() {
            self.void(cx);
        } else {
            self.agreement.decided = Some((ballot, versions));
        }
    }

    /// A member that has ended the exchange shows the proof.
    fn on_proof(&mut self, cx: &mut Context, from: PeerId, proof: &SignedMessage) -> Checked {
        let SignedMessage::Decided {
            ballot,
            value,
            versions,
            locked,
            signatures,
            ..
        } = proof
        else {
            return Ok(());
        };
        let shown = self.scope.scoped(FragmentMessage::Signed(proof.clone()));
        // This peer has accepted the group, so its quorum is beyond what may lie.
        if !self.scope.may_decide(versions.len()) || proven(cx, &shown).is_none() {
            return broke("a decision without its proof");
        }
        let saying = statement(*locked, *ballot, *value);
        let (signed, scope) = self.sealed();
        for (signer, signature) in signatures {
            if let Some(member) = scope.group.index(*signer) {
                // A proof carries the signatures of all signers, liars among them.
                signed.compare(cx, scope, member, (saying, *signature));
            }
        }
        if self.agreement.decided.is_none() {
            self.proven(cx, *ballot, versions.clone(), proof.clone());
            self.agreement.told_by = Some(from);
            self.fetch_missing(cx, from);
        }
        self.advance(cx);
        Ok(())
    }

    /// A quorum has joined the group; true the first time.
    pub(super) fn may_sign(&mut self) -> bool {
        let signed = self.agreement.signed.as_mut();
        signed.is_some_and(|signed| !std::mem::replace(&mut signed.joined, true))
    }

    /// What this peer has signed and heard in this group, where members sign.
    pub(super) fn ledger(&self) -> Option<&Ledger<Digest, Signature>> {
        Some(&self.agreement.signed.as_ref()?.ledger)
    }

    /// The decision with its proof, if this group survives liars.
    pub(super) fn proof(&self) -> Option<Scoped> {
        let proof = self.agreement.signed.as_ref()?.proof.clone()?;
        Some(self.scope.scoped(FragmentMessage::Signed(proof)))
    }

    /// Votes of others, or their answers to this peer's statements, are overdue.
    pub(super) fn insist_if_due(&mut self, cx: &mut Context) {
        let Some(signed) = &mut self.agreement.signed else {
            return;
        };
        if signed.statements.due.is_some_and(|at| at <= cx.now) {
            signed.repeat(cx, &self.scope);
        }
        if signed.lock_at.is_some_and(|at| at <= cx.now) {
            (signed.lock_at, signed.overdue) = (None, true);
            self.advance(cx);
        }
    }

    /// All that are waited for have voted in ballot zero, without a result.
    pub(super) fn undecidable(&self) -> bool {
        let signed = self.agreement.signed.as_ref();
        self.agreement.ballot.number == 0
            && signed.is_some_and(|signed| signed.is_split(self.hopeful))
    }

    /// This peer's wait has ended: it asks for the next ballot whose coordinator is still waited for. No member
    /// goes more than one wait ahead of the others, or their ballots would never meet.
    pub(super) fn start_signed_repair(&mut self, cx: &mut Context) {
        let (signed, scope) = self.sealed();
        let promised = signed.ledger.promised();
        // The others are still in lower ballots: one lost message may be why they do not follow.
        if promised > signed.wished() {
            signed.repeat(cx, scope);
            self.wait_for_repair(cx, cx.deadlines.answer());
            return;
        }
        let next = promised.saturating_add(1);
        if next < signed.end {
            self.join_ballot(cx, next);
        } else {
            // What the others decide is not known here, and another group has fresh ballots.
            signed.end = 0;
        }
    }

    /// Promises a ballot to its coordinator, or coordinates it.
    pub(super) fn join_ballot(&mut self, cx: &mut Context, ballot: u8) {
        let (signed, scope) = self.sealed();
        let me = scope.group.me;
        // This peer's own wait counts among those that ask for the ballot.
        signed.wishes(me, ballot);
        if signed.coordinator(ballot) == me {
            self.lead(cx, ballot);
        } else {
            self.pledge(cx, ballot);
        }
    }

    /// A member asks for a ballot. Alone, a liar could take all ballots before the first has had its time: this
    /// peer promises one that more members ask for than may lie.
    fn asked_for(&mut self, cx: &mut Context, index: usize, ballot: u8) {
        let (signed, scope) = self.sealed();
        signed.wishes(index, ballot);
        let wished = signed.wished();
        // It has been promised already, and is promised once.
        if wished <= signed.ledger.promised() {
            return;
        }
        let of = signed.ballot(scope, wished);
        if self.dutiful() {
            self.join_ballot(cx, wished);
        } else {
            // The promise lists the aggregates that this peer holds, so it waits for those that are
            // being reduced.
            self.agreement.asked = Some((of.coordinator, of));
        }
    }

    fn pledge(&mut self, cx: &mut Context, ballot: u8) {
        let (signed, scope) = self.sealed();
        let Some((pledge, certificate, versions)) = signed.pledge(cx, scope, ballot) else {
            return;
        };
        let of = signed.ballot(scope, ballot);
        self.enter(cx, of);
        let promise = SignedMessage::Promise {
            ballot,
            pledge: Box::new(pledge),
            certificate: certificate.map(Box::new),
            versions,
            held: self.holdings.newest(),
        };
        self.say(cx, Some(of.coordinator), promise);
        self.say(cx, None, SignedMessage::Prepare { ballot });
    }

    /// The coordinator's proposal, which its promises must justify.
    fn on_signed_repair(
        &mut self,
        cx: &mut Context,
        index: usize,
        ballot: u8,
        (pledges, certificate): (&[Pledge], &Option<VoteCertificate>),
        shards: &[ShardPlan],
    ) -> Checked {
        let (signed, scope) = self.sealed();
        let group = &scope.group;
        let coordinator = group.peer(index);
        if ballot == 0 || signed.coordinator(ballot) != index {
            return broke("a repair of a ballot that its sender does not coordinate");
        }
        let claims: Option<SortedMap<usize, Claim<Digest>>> = pledges
            .iter()
            .map(|pledge| Some((group.index(pledge.by)?, Testimony::claim(pledge))))
            .collect();
        let shown = certificate.as_ref().map(|shown| read(group, shown));
        // The coordinator chose these promises itself, so it is the one that lies.
        let (Some(claims), false) = (claims, matches!(shown, Some(None))) else {
            cx.convict(
                coordinator,
                "a repair by peers outside the group".to_owned(),
            );
            return Ok(());
        };
        // Promises of liars may differ from what they told this peer.
        signed.compare_pledges(cx, scope, ballot, pledges);
        if let Some(shown) = certificate {
            signed.compare_votes(cx, scope, shown);
        }
        let length = scope.may_decide(shards.len());
        let terms = signed.ledger.terms();
        let fits = match justified(terms, ballot, &claims, shown.flatten().as_ref()) {
            Some(Choice::Must(value)) => {
                kept(shards).is_some_and(|versions| length && signed.value(&versions) == value)
            }
            Some(Choice::Free) => length && scope.names_members(shards),
            None => false,
        };
        if !fits {
            cx.convict(
                coordinator,
                format!("a repair of ballot {ballot} that its promises do not justify"),
            );
            return Ok(());
        }
        let promised = signed.ledger.promised();
        claims
            .keys()
            .for_each(|member| signed.wishes(*member, ballot));
        // A repeated proposal is followed once.
        let follows = self.agreement.ballot.number >= ballot;
        if ballot >= promised && !follows && self.agreement.decided.is_none() {
            self.follow_signed(cx, ballot, shards);
        }
        Ok(())
    }

    /// Works towards a vote on a justified proposal.
    fn follow_signed(&mut self, cx: &mut Context, ballot: u8, shards: &[ShardPlan]) {
        let (signed, scope) = self.sealed();
        signed.wishes(scope.group.me, ballot);
        // Nothing is signed below it any more, or two ballots could decide differently.
        signed.ledger.follow(ballot);
        signed.void = shards.is_empty().then_some(ballot);
        let of = signed.ballot(scope, ballot);
        // A coordinator may lie about who is there: this peer waits for those that it hopes for.
        let alive: Members = self.hopeful & self.scope.group.all();
        self.follow(cx, of, alive, shards);
    }

    fn lead(&mut self, cx: &mut Context, ballot: u8) {
        let held = self.holdings.newest();
        let (signed, scope) = self.sealed();
        // It leads this ballot or a higher one, and signs nothing below.
        if signed.led >= ballot {
            return;
        }
        let Some((pledge, own, _)) = signed.pledge(cx, scope, ballot) else {
            return;
        };
        let me = scope.group.me;
        signed.led = ballot;
        signed.leads.retain(|other, _| *other >= ballot);
        let lead = signed.leads.entry(ballot).or_default();
        lead.pledges.insert(me, pledge);
        lead.held.insert(me, held);
        lead.certificates
            .extend(own.map(|shown| ((shown.ballot, shown.value), shown)));
        let of = signed.ballot(scope, ballot);
        self.enter(cx, of);
        self.say(cx, None, SignedMessage::Prepare { ballot });
        self.plan_if_all_promised(cx);
    }

    /// A member promises, and asks for the ballot by that.
    fn on_signed_promise(
        &mut self,
        cx: &mut Context,
        index: usize,
        (ballot, pledge): (u8, Pledge),
        (certificate, versions): (Option<&VoteCertificate>, &[ShardVersion]),
        held: &[Held],
    ) -> Checked {
        let (signed, scope) = self.sealed();
        let (group, of) = (&scope.group, scope.of);
        if ballot == 0 || signed.coordinator(ballot) != group.me {
            return broke("a promise to another coordinator");
        }
        let shown = certificate.and_then(|shown| read(group, shown));
        let named = shown.as_ref().map(|shown| (shown.ballot, shown.value));
        let complete = shown
            .as_ref()
            .is_none_or(|shown| group.decides(shown.votes.len()) && shown.ballot < ballot);
        let known = |held: &Held| group.index(held.version.owner).is_some() && held.shard < of;
        if pledge.by != group.peer(index)
            || named != pledge.highest
            || !complete
            || !held.iter().all(known)
        {
            return broke("a promise that does not fit the group, or without its certificate");
        }
        signed.compare_pledges(cx, scope, ballot, &[pledge]);
        if let Some(shown) = certificate {
            signed.compare_votes(cx, scope, shown);
        }
        if scope.may_decide(versions.len()) {
            let value = signed.value(versions);
            let behind = pledge.highest.map(|(_, value)| value).or(pledge.zero);
            if behind == Some(value) {
                signed.known.insert(value, versions.to_vec());
            }
        }
        if let Some(shown) = shown {
            signed.ledger.heard_certificate(shown);
        }
        let open = signed.leads.get(&ballot).is_none_or(|lead| !lead.planned);
        if ballot < signed.led.max(signed.ledger.promised()) || !open {
            return Ok(());
        }
        // It signs nothing below any more, and its last promise is the one that counts.
        for (_, lead) in signed.leads.iter_mut().filter(|(led, _)| **led < ballot) {
            lead.pledges.remove(&index);
            lead.held.remove(&index);
        }
        signed.leads.retain(|_, lead| !lead.pledges.is_empty());
        let lead = signed.leads.entry(ballot).or_default();
        lead.pledges.insert(index, pledge);
        lead.held.insert(index, held.to_vec());
        if let Some(shown) = certificate {
            let named = (shown.ballot, shown.value);
            let known = lead.certificates.entry(named);
            known.or_insert_with(|| shown.clone());
        }
        self.asked_for(cx, index, ballot);
        self.plan_if_all_promised(cx);
        Ok(())
    }

    /// Proposes once every member that is waited for has promised.
    fn plan_if_all_promised(&mut self, cx: &mut Context) {
        let promised = self.promised_to_lead();
        if promised.is_some_and(|promised| {
            self.hopeful.is_within(promised) && self.scope.group.decides(promised.count())
        }) {
            self.plan_signed(cx);
        }
    }

    /// The members that have promised a ballot that this peer leads and has not proposed for yet.
    fn promised_to_lead(&self) -> Option<Members> {
        let signed = self.agreement.signed.as_ref()?;
        let (ballot, lead) = signed.lead().filter(|(_, lead)| !lead.planned)?;
        let current = ballot == signed.ledger.promised();
        current.then(|| lead.pledges.keys().copied().collect())
    }

    /// The deadline of a ballot has passed. Returns whether this peer led it and goes on.
    pub(super) fn lead_timeout(&mut self, cx: &mut Context) -> bool {
        let Some(promised) = self.promised_to_lead() else {
            return false;
        };
        self.suspect(cx, !promised);
        if self.scope.group.decides(promised.count()) {
            self.plan_signed(cx);
        } else {
            // Too few promises justify nothing. The others may answer the next coordinator.
            self.hopeful = self.scope.group.all();
            self.start_signed_repair(cx);
        }
        true
    }

    fn plan_signed(&mut self, cx: &mut Context) {
        let Some((ballot, pledges, shards)) = self.proposal(cx) else {
            self.start_signed_repair(cx);
            return;
        };
        let (signed, scope) = self.sealed();
        let Some(lead) = signed.leads.get_mut(&ballot) else {
            return;
        };
        // The members refuse a second proposal of one ballot.
        lead.planned = true;
        let named = pledges.iter().filter_map(|pledge| pledge.highest);
        // The one that the promises name: this peer may have heard of a higher one since.
        let highest = named.max_by_key(|(ballot, _)| *ballot);
        let repair = SignedMessage::Repair {
            ballot,
            pledges,
            certificate: highest.and_then(|highest| lead.certificates.remove(&highest)),
            shards: shards.clone(),
        };
        signed.say(cx, scope, None, repair);
        self.follow_signed(cx, ballot, &shards);
    }

    /// What to propose; `None` where the versions that must be proposed are not known.
    fn proposal(&self, cx: &Context) -> Option<(u8, Vec<Pledge>, Vec<ShardPlan>)> {
        let signed = self.agreement.signed.as_ref()?;
        let (number, lead) = signed.lead()?;
        let claims = lead.pledges.iter();
        let claims = claims.map(|(index, pledge)| (*index, Testimony::claim(pledge)));
        let shards = match choose(signed.ledger.terms(), &claims.collect())? {
            Choice::Must(value) => {
                let holder = self.holder_of(signed, number, value);
                let keep = |version: &ShardVersion| ShardPlan::Keep {
                    version: *version,
                    holder,
                };
                signed.known.get(&value)?.iter().map(keep).collect()
            }
            Choice::Free if number >= BALLOTS_UNTIL_VOID => Vec::new(),
            Choice::Free => {
                let ballot = signed.ballot(&self.scope, number);
                let promised = |(index, held): (&usize, &Vec<Held>)| {
                    let promise = Promise {
                        ballot,
                        voted: None,
                        held: held.clone(),
                        hopeful: self.hopeful,
                    };
                    (*index, promise)
                };
                let promises = lead.held.iter().map(promised).collect();
                self.shard_plans(cx, ballot, &promises)
            }
        };
        let pledges = lead.pledges.values().copied().collect();
        Some((number, pledges, shards))
    }

    /// One that voted for the kept value; in every ballot another, as a liar may not serve it.
    fn holder_of(&self, signed: &Testimony, ballot: u8, value: Digest) -> PeerId {
        let voters: Members = signed.ledger.voters_for(&value).collect();
        // One that is given up may still have the bytes, but is asked last.
        let there = voters & self.hopeful;
        let voters = if there.is_empty() { voters } else { there };
        let at = usize::from(ballot) % voters.count().max(1);
        let holder = voters.iter().nth(at).unwrap_or(self.scope.group.me);
        self.scope.group.peer(holder)
    }
}

/// The versions that a proposal keeps, if it keeps all.
fn kept(shards: &[ShardPlan]) -> Option<Versions> {
    let kept = |plan: &ShardPlan| match plan {
        ShardPlan::Keep { version, .. } => Some(*version),
        ShardPlan::Redo { .. } => None,
    };
    shards.iter().map(kept).collect()
}
