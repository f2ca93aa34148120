//! Votes, locks, and what they decide.

use super::super::ballot::Versions;
use super::super::ballot::{Ballot, ShardVersion};
use super::super::fragment::FragmentRound;
use super::super::message::{FragmentMessage, Scoped};
use super::super::proven::proven;
use super::super::signed_message::SignedMessage;
use super::super::state::FragmentStage;
use super::state::by_peer;
use crate::core::context::Context;
use crate::exchange::broke;
use crate::limits::LOCK_AFTER_MIN;
use crate::{Digest, PeerError, PeerId, Saying, Signature, Wait};

/// The place of a signature of this peer.
const MINE: Signature = Signature::BLANK;

impl FragmentRound {
    /// A ballot with the member that may coordinate it.
    pub(super) fn signed_ballot(&self, number: u8) -> Ballot {
        let signed = self.agreement.signed.as_ref();
        let coordinator = signed.map_or(0, |signed| match number {
            0 => 0,
            _ => signed.coordinator(number),
        });
        let coordinator = self.scope.group.peer(coordinator);
        Ballot {
            number,
            coordinator,
        }
    }

    pub(super) fn tell_all(&self, cx: &mut Context, message: &SignedMessage) {
        for (_, peer) in self.scope.group.others() {
            self.tell(cx, peer, message);
        }
    }

    fn tell(&self, cx: &mut Context, peer: PeerId, message: &SignedMessage) {
        let body = FragmentMessage::Signed(message.clone());
        cx.send(peer, self.scope.scoped(body));
    }

    /// Makes a statement to a member, or to all, that is repeated if it is not answered.
    pub(super) fn say(&mut self, cx: &mut Context, to: Option<PeerId>, message: SignedMessage) {
        match to {
            Some(peer) => self.tell(cx, peer, &message),
            None => self.tell_all(cx, &message),
        }
        if let Some(signed) = &mut self.agreement.signed {
            let repairs = signed.ledger.promised() > 0;
            let statements = &mut signed.statements;
            statements.all.push((to, message));
            statements.repeated = false;
            statements.due = repairs.then(|| cx.now + cx.deadlines.answer());
        }
    }

    /// Repeats the statements of this ballot. Where no more than a quorum is there, one lost message lets a ballot
    /// fail.
    pub(super) fn repeat(&mut self, cx: &mut Context) {
        if let Some(signed) = &mut self.agreement.signed {
            (signed.statements.repeated, signed.statements.due) = (true, None);
        }
        let signed = self.agreement.signed.iter();
        for (to, message) in signed.flat_map(|signed| &signed.statements.all) {
            match to {
                Some(peer) => self.tell(cx, *peer, message),
                None => self.tell_all(cx, message),
            }
        }
    }

    /// A wait has ended without a result. Returns whether this peer repeats its statements first, once, and waits
    /// for an answer.
    pub(in super::super) fn repeats(&mut self, cx: &mut Context) -> bool {
        let statements = self.agreement.signed.as_ref().map(|s| &s.statements);
        if statements.is_none_or(|s| s.all.is_empty() || s.repeated) {
            return false;
        }
        self.repeat(cx);
        self.wait_for_repair(cx, cx.deadlines.answer());
        true
    }

    /// Votes in the current ballot once every shard is here in the version it is about.
    pub(in super::super) fn vote_signed(&mut self, cx: &mut Context) {
        let ballot = self.agreement.ballot.number;
        let Some(signed) = &self.agreement.signed else {
            return;
        };
        let decided = self.agreement.decided.is_some();
        if decided || !signed.joined || !signed.ledger.may_vote(ballot) {
            return;
        }
        let versions: Option<Versions> = match signed.void == Some(ballot) {
            true => Some(Vec::new()),
            false => (0..self.scope.of).map(|s| self.fitting(s)).collect(),
        };
        let Some(versions) = versions else { return };
        let Some(signed) = &mut self.agreement.signed else {
            return;
        };
        let value = signed.value(&versions);
        signed.ledger.vote(ballot, value);
        signed
            .ledger
            .heard_vote(self.scope.group.me, ballot, value, MINE);
        signed.known.insert(value, versions.clone());
        let vote = SignedMessage::Vote {
            ballot,
            value,
            versions,
            signature: MINE,
        };
        self.say(cx, None, vote);
        self.show_votes(cx, ballot, self.scope.group.me);
    }

    /// Another member's vote or lock. A second one in the same place, for something else, proves
    /// that the member lies.
    pub(super) fn on_testimony(
        &mut self,
        cx: &mut Context,
        from: (usize, PeerId),
        (ballot, value): (u8, Digest),
        versions: &[ShardVersion],
        (locks, signature): (bool, Signature),
    ) -> Result<(), PeerError> {
        let (index, peer) = from;
        let fits = versions.is_empty() || versions.len() == usize::from(self.scope.of);
        let since = self.since;
        let Some(signed) = &self.agreement.signed else {
            return Ok(());
        };
        if !fits || signed.value(&versions.to_vec()) != value {
            return broke("a vote whose value is not that of its versions");
        }
        let saying = match locks {
            true => Saying::Lock { ballot, value },
            false => Saying::Vote { ballot, value },
        };
        if self.compare(cx, index, (saying, signature)) {
            return Ok(());
        }
        let Some(signed) = &mut self.agreement.signed else {
            return Ok(());
        };
        match locks {
            true => signed.ledger.heard_lock(index, ballot, value, signature),
            false => signed.ledger.heard_vote(index, ballot, value, signature),
        };
        signed.known.insert(value, versions.to_vec());
        // Another member misses votes: there is no point in waiting longer.
        signed.overdue |= locks;
        if !locks && ballot == 0 {
            // Where something is missing, others wait for it too: that is not how long one of them takes.
            let waits = self.stage == FragmentStage::Gathering && self.missing_owners().is_empty();
            if waits && self.transfers.overdue.is_empty() {
                cx.deadlines
                    .record(Wait::Agreement, peer, cx.now.since(since));
            }
            self.compare_bytes(cx, peer, versions);
        }
        if !locks {
            self.show_votes(cx, ballot, index);
        }
        self.advance(cx);
        Ok(())
    }

    /// Decides or locks, if the statements that are here allow it.
    pub(in super::super) fn settle_signed(&mut self, cx: &mut Context) {
        if self.over() || self.agreement.decided.is_some() || self.decide(cx) {
            return;
        }
        let (me, since, most) = (self.scope.group.me, self.since, cx.deadlines.answer());
        let Some(signed) = &mut self.agreement.signed else {
            return;
        };
        let Some((ballot, value)) = signed.ledger.may_lock() else {
            return;
        };
        // In ballot zero all votes decide without a lock, which would be another message to all. The
        // last votes may take as long as the others took.
        if ballot == 0 && !signed.overdue {
            let patience = cx.now.since(since).max(LOCK_AFTER_MIN).min(most);
            signed.lock_at.get_or_insert(cx.now + patience);
            return;
        }
        signed.lock_at = None;
        signed.ledger.lock(ballot);
        signed.ledger.heard_lock(me, ballot, value, MINE);
        let versions = signed.known.get(&value).cloned().unwrap_or_default();
        let lock = SignedMessage::Lock {
            ballot,
            value,
            versions,
            signature: MINE,
        };
        self.say(cx, None, lock);
        self.decide(cx);
    }

    /// Whether something is decided.
    fn decide(&mut self, cx: &mut Context) -> bool {
        let Some(signed) = &self.agreement.signed else {
            return false;
        };
        let Some(decision) = signed.ledger.decided() else {
            return false;
        };
        let Some(versions) = signed.known.get(&decision.value).cloned() else {
            return false;
        };
        let proof = SignedMessage::Decided {
            ballot: decision.ballot,
            value: decision.value,
            group: signed.group.words.clone(),
            versions: versions.clone(),
            locked: decision.locked,
            signatures: by_peer(&self.scope.group, &decision.signatures),
        };
        self.proven(cx, decision.ballot, versions, proof);
        true
    }

    /// A value is decided, and this proves it.
    fn proven(&mut self, cx: &mut Context, ballot: u8, versions: Versions, proof: SignedMessage) {
        if let Some(signed) = &mut self.agreement.signed {
            signed.proof = Some(proof);
            signed.lock_at = None;
        }
        if versions.is_empty() {
            self.void(cx);
        } else {
            self.agreement.decided = Some((ballot, versions));
        }
    }

    /// A member that has ended the exchange shows the proof.
    pub(super) fn on_proof(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        proof: &SignedMessage,
    ) -> Result<(), PeerError> {
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
        let length = versions.is_empty() || versions.len() == usize::from(self.scope.of);
        let shown = self.scope.scoped(FragmentMessage::Signed(proof.clone()));
        // This peer has accepted the group, so its quorum is beyond what may lie.
        if !length || proven(cx, &shown).is_none() {
            return broke("a decision without its proof");
        }
        let (ballot, value) = (*ballot, *value);
        let saying = match *locked {
            true => Saying::Lock { ballot, value },
            false => Saying::Vote { ballot, value },
        };
        for (signer, signature) in signatures {
            if let Some(member) = self.scope.group.index(*signer) {
                self.compare(cx, member, (saying, *signature));
            }
        }
        if self.agreement.decided.is_none() {
            self.proven(cx, ballot, versions.clone(), proof.clone());
            self.agreement.told_by = Some(from);
            self.fetch_missing(cx, from);
        }
        self.advance(cx);
        Ok(())
    }

    /// A quorum has joined the group; true the first time.
    pub(in super::super) fn may_sign(&mut self) -> bool {
        let signed = self.agreement.signed.as_mut();
        signed.is_some_and(|signed| !std::mem::replace(&mut signed.joined, true))
    }

    /// Whether this peer has signed anything in this group.
    pub(in super::super) fn has_signed(&self) -> bool {
        let signed = self.agreement.signed.as_ref();
        signed.is_some_and(|signed| signed.ledger.has_signed())
    }

    /// The decision with its proof, if this group survives liars.
    pub(in super::super) fn proof(&self) -> Option<Scoped> {
        let proof = self.agreement.signed.as_ref()?.proof.clone()?;
        Some(self.scope.scoped(FragmentMessage::Signed(proof)))
    }

    /// Votes of others, or their answers to this peer's statements, are overdue.
    pub(in super::super) fn insist_if_due(&mut self, cx: &mut Context) {
        let now = cx.now;
        let due = self
            .agreement
            .signed
            .as_ref()
            .and_then(|s| s.statements.due);
        if due.is_some_and(|at| at <= now) {
            self.repeat(cx);
        }
        if let Some(signed) = &mut self.agreement.signed
            && signed.lock_at.is_some_and(|at| at <= now)
        {
            (signed.lock_at, signed.overdue) = (None, true);
            self.advance(cx);
        }
    }
}
