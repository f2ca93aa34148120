//! Members that contradict themselves: what a member signed is compared with what it signed before,
//! and members whose votes differ show each other the votes that they have. A liar that gives every
//! receiver another vote is found out then.

use super::super::ballot::ShardVersion;
use super::super::fragment::FragmentRound;
use super::super::signed_message::{Pledge, SignedMessage, VoteCertificate};
use super::state::Lead;
use crate::core::context::Context;
use crate::exchange::broke;
use crate::{Attempt, Digest, PeerError, PeerId, Proof, Saying, Signature};

/// A vote of a member as it is shown to others.
type Shown = (PeerId, Digest, Signature);

impl FragmentRound {
    /// Compares a statement of a member, its signature checked, with what the member has signed
    /// before. True if it proves that the member lies.
    pub(super) fn compare(
        &self,
        cx: &mut Context,
        member: usize,
        (saying, signature): (Saying, Signature),
    ) -> bool {
        let group = &self.scope.group;
        let Some(signed) = self.agreement.signed.as_ref() else {
            return false;
        };
        let ledger = &signed.ledger;
        let vote = |ballot| {
            let (value, by) = ledger.vote_of(member, ballot)?;
            let value = *value;
            Some((Saying::Vote { ballot, value }, *by))
        };
        let promise = || {
            let named = |(ballot, lead): (&u8, &Lead)| Some((*ballot, *lead.pledges.get(&member)?));
            let (ballot, pledge) = signed.leads.iter().rev().find_map(named)?;
            Some((promised(ballot, &pledge), pledge.signature))
        };
        let before = match saying {
            Saying::Vote { ballot, .. } => [vote(ballot), promise()],
            Saying::Lock { ballot, .. } => {
                let lock = ledger.lock_of(member, ballot);
                let lock = lock.map(|(value, by)| {
                    let value = *value;
                    (Saying::Lock { ballot, value }, *by)
                });
                [lock, None]
            }
            Saying::Promise { .. } => [vote(0), promise()],
        };
        let place = (self.scope.round, self.scope.fragment, group.tag);
        let mut proofs = before.into_iter().flatten().filter_map(|known| {
            Proof::new(group.peer(member), place, [known, (saying, signature)])
        });
        // A member's own signatures are blank here.
        let proof = proofs.find(|_| member != group.me);
        let lies = proof.is_some();
        proof.into_iter().for_each(|proof| cx.prove(proof));
        lies
    }

    /// Compares the votes of a certificate.
    pub(super) fn compare_votes(&self, cx: &mut Context, shown: &VoteCertificate) {
        let (ballot, value) = (shown.ballot, shown.value);
        for (peer, signature) in &shown.votes {
            if let Some(member) = self.scope.group.index(*peer) {
                self.compare(cx, member, (Saying::Vote { ballot, value }, *signature));
            }
        }
    }

    /// Compares promises that a coordinator shows.
    pub(super) fn compare_pledges(&self, cx: &mut Context, ballot: u8, pledges: &[Pledge]) {
        for pledge in pledges {
            if let Some(member) = self.scope.group.index(pledge.by) {
                self.compare(cx, member, (promised(ballot, pledge), pledge.signature));
            }
        }
    }

    /// After the first statement that splits the votes of a ballot, shows all votes to the others;
    /// after that, every vote that comes.
    pub(super) fn show_votes(&mut self, cx: &mut Context, ballot: u8, last: usize) {
        let Some(signed) = &mut self.agreement.signed else {
            return;
        };
        let Some(votes) = signed.ledger.split(ballot) else {
            return;
        };
        let group = &self.scope.group;
        let of = |(member, (value, signature)): (&usize, &(Digest, Signature))| {
            (group.peer(*member), *value, *signature)
        };
        let first = signed.shown.insert(ballot);
        let news = votes.iter().filter(|(member, _)| first || **member == last);
        let votes: Vec<Shown> = news.map(of).collect();
        self.tell_all(cx, &SignedMessage::Heard { ballot, votes });
    }

    /// Whether all that are waited for have voted in ballot zero, without a result.
    pub(in super::super) fn undecidable(&self) -> bool {
        let Some(signed) = self.agreement.signed.as_ref() else {
            return false;
        };
        let ledger = &signed.ledger;
        let voted = |member: usize| ledger.vote_of(member, 0).is_some();
        self.agreement.ballot.number == 0
            && ledger.promised() == 0
            && ledger.certificate().is_none()
            && ledger.split(0).is_some()
            && self.hopeful.iter().all(voted)
    }

    /// Votes that another member has.
    pub(super) fn on_heard(
        &mut self,
        cx: &mut Context,
        ballot: u8,
        votes: &[Shown],
    ) -> Result<(), PeerError> {
        for (peer, value, signature) in votes {
            let Some(member) = self.scope.group.index(*peer) else {
                return broke("a vote of a peer outside the group");
            };
            let value = *value;
            self.compare(cx, member, (Saying::Vote { ballot, value }, *signature));
        }
        Ok(())
    }

    /// A member votes for a version of its own other than the one that it gave this member. No other
    /// member can tell, so this one cuts it off by itself.
    pub(super) fn compare_bytes(
        &self,
        cx: &mut Context,
        peer: PeerId,
        versions: &[ShardVersion],
    ) -> bool {
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
        other.is_some()
    }
}

fn promised(ballot: u8, pledge: &Pledge) -> Saying {
    Saying::Promise {
        ballot,
        zero: pledge.zero,
        highest: pledge.highest,
    }
}
