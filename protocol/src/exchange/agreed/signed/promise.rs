//! A member's side of a ballot above zero: promises, and proposals that must be justified.

use super::super::ballot::{ShardPlan, ShardVersion};
use super::super::fragment::FragmentRound;
use super::super::rule::{Choice, Claim, justified};
use super::super::signed_message::{Pledge, SignedMessage, VoteCertificate};
use super::state::{Testimony, read, write};
use crate::core::context::Context;
use crate::exchange::broke;
use crate::{Digest, Members, PeerError, PeerId, Signature};
use std::collections::BTreeMap;

impl FragmentRound {
    /// A signed message for this fragment.
    pub(in super::super) fn on_signed(
        &mut self,
        cx: &mut Context,
        from: PeerId,
        message: &SignedMessage,
    ) -> Result<(), PeerError> {
        let Some(index) = self.scope.group.index(from) else {
            return Ok(());
        };
        match message {
            SignedMessage::Vote {
                ballot,
                value,
                versions,
                signature,
            } => {
                let what = (*ballot, *value);
                self.on_testimony(cx, (index, from), what, versions, (false, *signature))
            }
            SignedMessage::Lock {
                ballot,
                value,
                versions,
                signature,
            } => {
                let what = (*ballot, *value);
                self.on_testimony(cx, (index, from), what, versions, (true, *signature))
            }
            SignedMessage::Prepare { ballot } => {
                self.asked_for(cx, index, *ballot);
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
            SignedMessage::Heard { ballot, votes } => self.on_heard(cx, *ballot, votes),
        }
    }

    /// This peer's wait has ended: it asks for the next ballot whose coordinator is still waited for. No member
    /// goes more than one wait ahead of the others, or their ballots would never meet.
    pub(in super::super) fn start_signed_repair(&mut self, cx: &mut Context) {
        let Some(signed) = &self.agreement.signed else {
            return;
        };
        let promised = signed.ledger.promised();
        if promised > signed.wished() {
            self.repeat(cx);
            self.wait_for_repair(cx, cx.deadlines.answer());
            return;
        }
        let end = signed.ballots_end();
        match promised.saturating_add(1) {
            ballot if ballot < end => self.join_ballot(cx, ballot),
            // What the others decide is not known here, and another group has fresh ballots.
            _ => {
                if let Some(signed) = &mut self.agreement.signed {
                    signed.spent = true;
                }
            }
        }
    }

    /// Promises a ballot to its coordinator, or coordinates it.
    fn join_ballot(&mut self, cx: &mut Context, ballot: u8) {
        let me = self.scope.group.me;
        let Some(signed) = &mut self.agreement.signed else {
            return;
        };
        signed.wishes(me, ballot);
        match signed.coordinator(ballot) == me {
            true => self.lead(cx, ballot),
            false => self.pledge(cx, ballot),
        }
    }

    /// A member asks for a ballot. Alone, a liar could take all ballots before the first has had its time: this
    /// peer promises one that more members ask for than may lie.
    pub(super) fn asked_for(&mut self, cx: &mut Context, index: usize, ballot: u8) {
        let Some(signed) = &mut self.agreement.signed else {
            return;
        };
        signed.wishes(index, ballot);
        let wished = signed.wished();
        if wished <= signed.ledger.promised() {
            return;
        }
        if self.dutiful() {
            self.join_ballot(cx, wished);
        } else {
            // The promise lists the aggregates that this peer holds, so it waits for those that are
            // being reduced.
            let of = self.signed_ballot(wished);
            self.ballots.asked = Some((of.coordinator, of));
        }
    }

    /// Promises a ballot to its coordinator.
    fn pledge(&mut self, cx: &mut Context, ballot: u8) {
        let Some((pledge, certificate, versions)) = self.own_pledge(cx, ballot) else {
            return;
        };
        let of = self.signed_ballot(ballot);
        self.enter(cx, of);
        let promise = SignedMessage::Promise {
            ballot,
            pledge: Box::new(pledge),
            certificate: certificate.map(Box::new),
            versions,
            held: self.all_held(),
        };
        self.say(cx, Some(of.coordinator), promise);
        self.say(cx, None, SignedMessage::Prepare { ballot });
    }

    /// What this peer promises; `None` where it has promised this ballot or a higher one.
    pub(super) fn own_pledge(
        &mut self,
        cx: &Context,
        ballot: u8,
    ) -> Option<(Pledge, Option<VoteCertificate>, Vec<ShardVersion>)> {
        let group = &self.scope.group;
        let signed = self.agreement.signed.as_mut().filter(|s| s.joined)?;
        let Claim { zero, highest } = signed.ledger.promise(ballot)?;
        signed.lock_at = None;
        let certificate = signed.ledger.certificate().filter(|_| highest.is_some());
        let behind = highest.map(|(_, value)| value).or(zero);
        let versions = behind.and_then(|value| signed.known.get(&value).cloned());
        let pledge = Pledge {
            by: cx.me(),
            zero,
            highest,
            signature: Signature::BLANK,
        };
        let certificate = certificate.map(|known| write(group, known));
        Some((pledge, certificate, versions.unwrap_or_default()))
    }

    /// This peer's reductions are done: it answers the coordinator that asked.
    pub(in super::super) fn pledge_as_asked(&mut self, cx: &mut Context, ballot: u8) {
        self.join_ballot(cx, ballot);
    }

    /// The coordinator's proposal. One that its promises do not justify proves that the coordinator
    /// lies.
    fn on_signed_repair(
        &mut self,
        cx: &mut Context,
        index: usize,
        ballot: u8,
        (pledges, certificate): (&[Pledge], &Option<VoteCertificate>),
        shards: &[ShardPlan],
    ) -> Result<(), PeerError> {
        let group = &self.scope.group;
        let Some(signed) = &self.agreement.signed else {
            return Ok(());
        };
        let coordinator = group.peer(index);
        if ballot == 0 || signed.coordinator(ballot) != index {
            return broke("a repair of a ballot that its sender does not coordinate");
        }
        let claims: Option<BTreeMap<usize, Claim<Digest>>> = pledges
            .iter()
            .map(|pledge| Some((group.index(pledge.by)?, Testimony::claim(pledge))))
            .collect();
        let shown = certificate.as_ref().map(|shown| read(group, shown));
        let (Some(claims), false) = (claims, matches!(shown, Some(None))) else {
            cx.convict(
                coordinator,
                "a repair by peers outside the group".to_owned(),
            );
            return Ok(());
        };
        self.compare_pledges(cx, ballot, pledges);
        if let Some(shown) = certificate {
            self.compare_votes(cx, shown);
        }
        let terms = signed.ledger.terms();
        let choice = justified(terms, ballot, &claims, shown.flatten().as_ref());
        let fits = match choice {
            Some(Choice::Must(value)) => self
                .kept(shards)
                .is_some_and(|versions| signed.value(&versions) == value),
            Some(Choice::Free) => self.repairs(shards),
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
        if let Some(signed) = &mut self.agreement.signed {
            claims
                .keys()
                .for_each(|member| signed.wishes(*member, ballot));
        }
        let follows = self.agreement.ballot.number >= ballot;
        if ballot >= promised && !follows && self.agreement.decided.is_none() {
            self.follow_signed(cx, ballot, shards);
        }
        Ok(())
    }

    /// The versions that a proposal keeps, if it keeps all.
    fn kept(&self, shards: &[ShardPlan]) -> Option<Vec<ShardVersion>> {
        let kept = |plan: &ShardPlan| match plan {
            ShardPlan::Keep { version, .. } => Some(*version),
            ShardPlan::Redo { .. } => None,
        };
        let length = shards.is_empty() || shards.len() == usize::from(self.scope.of);
        shards
            .iter()
            .map(kept)
            .collect::<Option<_>>()
            .filter(|_| length)
    }

    /// Whether a proposal is about this group's shards.
    fn repairs(&self, shards: &[ShardPlan]) -> bool {
        let member = |peer: &PeerId| self.scope.group.index(*peer).is_some();
        let length = shards.is_empty() || shards.len() == usize::from(self.scope.of);
        length
            && shards.iter().all(|plan| match plan {
                ShardPlan::Keep { version, holder } => member(&version.owner) && member(holder),
                ShardPlan::Redo { owner } => member(owner),
            })
    }

    /// Works towards a vote on a justified proposal.
    pub(super) fn follow_signed(&mut self, cx: &mut Context, ballot: u8, shards: &[ShardPlan]) {
        let of = self.signed_ballot(ballot);
        let me = self.scope.group.me;
        if let Some(signed) = &mut self.agreement.signed {
            signed.wishes(me, ballot);
            signed.ledger.follow(ballot);
            signed.void = shards.is_empty().then_some(ballot);
        }
        // A coordinator may lie about who is there: this peer waits for those that it hopes for.
        let alive: Members = self.hopeful & self.scope.group.all();
        self.follow(cx, of, alive, shards);
    }
}
