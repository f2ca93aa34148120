//! The coordinator's side of a ballot above zero.

use super::super::ballot::{Held, ShardPlan, ShardVersion};
use super::super::ballots::Promised;
use super::super::fragment::FragmentRound;
use super::super::rule::{Choice, choose};
use super::super::signed_message::{Pledge, SignedMessage, VoteCertificate};
use super::state::{Testimony, read};
use crate::core::context::Context;
use crate::exchange::broke;
use crate::limits::BALLOTS_UNTIL_VOID;
use crate::{Digest, Members, PeerError};

impl FragmentRound {
    /// Coordinates a ballot.
    pub(super) fn lead(&mut self, cx: &mut Context, ballot: u8) {
        let signed = self.agreement.signed.as_ref();
        if signed.is_some_and(|signed| signed.led >= ballot) {
            return;
        }
        let Some((pledge, own, _)) = self.own_pledge(cx, ballot) else {
            return;
        };
        let own = own.map(|shown| ((shown.ballot, shown.value), shown));
        let (me, held) = (self.scope.group.me, self.all_held());
        if let Some(signed) = &mut self.agreement.signed {
            signed.led = ballot;
            signed.leads.retain(|other, _| *other >= ballot);
            let lead = signed.leads.entry(ballot).or_default();
            lead.pledges.insert(me, pledge);
            lead.held.insert(me, held);
            lead.certificates.extend(own);
        }
        let of = self.signed_ballot(ballot);
        self.enter(cx, of);
        self.say(cx, None, SignedMessage::Prepare { ballot });
        self.plan_if_all_promised(cx);
    }

    /// A member promises, and asks for the ballot by that.
    pub(super) fn on_signed_promise(
        &mut self,
        cx: &mut Context,
        index: usize,
        (ballot, pledge): (u8, Pledge),
        (certificate, versions): (Option<&VoteCertificate>, &[ShardVersion]),
        held: &[Held],
    ) -> Result<(), PeerError> {
        let (me, of) = (self.scope.group.me, self.scope.of);
        let group = &self.scope.group;
        let Some(signed) = &self.agreement.signed else {
            return Ok(());
        };
        if ballot == 0 || signed.coordinator(ballot) != me {
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
        self.compare_pledges(cx, ballot, &[pledge]);
        if let Some(shown) = certificate {
            self.compare_votes(cx, shown);
        }
        let Some(signed) = &mut self.agreement.signed else {
            return Ok(());
        };
        if versions.is_empty() || versions.len() == usize::from(of) {
            let value = signed.value(&versions.to_vec());
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
        for (_, lead) in signed.leads.range_mut(..ballot) {
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

    /// The deadline of a ballot has passed: whether this peer led it and went on.
    pub(in super::super) fn lead_timeout(&mut self, cx: &mut Context) -> bool {
        let Some(promised) = self.promised_to_lead() else {
            return false;
        };
        for peer in self.give_up(!promised) {
            cx.suspect(peer);
        }
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
        let signed = self.agreement.signed.as_mut();
        let Some(lead) = signed.and_then(|signed| signed.leads.get_mut(&ballot)) else {
            return;
        };
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
        self.say(cx, None, repair);
        self.follow_signed(cx, ballot, &shards);
    }

    /// What to propose; `None` where the versions that must be proposed are not known.
    fn proposal(&self, cx: &Context) -> Option<(u8, Vec<Pledge>, Vec<ShardPlan>)> {
        let signed = self.agreement.signed.as_ref()?;
        let (ballot, lead) = signed.lead()?;
        let claims = lead.pledges.iter();
        let claims = claims.map(|(index, pledge)| (*index, Testimony::claim(pledge)));
        let choice = choose(signed.ledger.terms(), &claims.collect())?;
        let shards = match choice {
            Choice::Must(value) => {
                let versions = signed.known.get(&value)?;
                self.keep(versions, ballot, value)
            }
            Choice::Free if ballot >= BALLOTS_UNTIL_VOID => Vec::new(),
            Choice::Free => {
                let promised = |(index, held): (&usize, &Vec<Held>)| {
                    let promised = Promised {
                        voted: None,
                        held: held.clone(),
                        hopeful: self.hopeful,
                    };
                    (*index, promised)
                };
                let promises = lead.held.iter().map(promised).collect();
                self.shard_plans(cx, self.signed_ballot(ballot), &promises)
            }
        };
        let pledges = lead.pledges.values().copied().collect();
        Some((ballot, pledges, shards))
    }

    /// Keeps versions; every ballot names another member that has voted for them, because one that
    /// lies may not serve them.
    fn keep(&self, versions: &[ShardVersion], ballot: u8, value: Digest) -> Vec<ShardPlan> {
        let signed = self.agreement.signed.as_ref();
        let voters: Members =
            signed.map_or(Members::NONE, |s| s.ledger.voters_for(&value).collect());
        let there = voters & self.hopeful;
        let voters = if there.is_empty() { voters } else { there };
        let voters: Vec<usize> = voters.iter().collect();
        let at = usize::from(ballot) % voters.len().max(1);
        let holder = voters.get(at).copied().unwrap_or(self.scope.group.me);
        let holder = self.scope.group.peer(holder);
        let keep = |version: &ShardVersion| ShardPlan::Keep {
            version: *version,
            holder,
        };
        versions.iter().map(keep).collect()
    }
}
