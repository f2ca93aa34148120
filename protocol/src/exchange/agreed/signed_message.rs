//! Messages of groups that survive liars. Their signatures leave blank: the sender's host fills them
//! in, and the receiver's host checks them before the peer sees the message.
//! The group as its members have signed it is among them, so that anyone can check its decision.

use super::member::{Held, Member, ShardPlan, ShardVersion, cap};
use crate::id::rendezvous;
use crate::limits::{BALLOTS_SIGNED_MAX, GROUP_MEMBERS_MAX};
use crate::signature::{Place, Signature, Signed, Statement};
use crate::wire::{WireError, canonical, check};
use crate::{Digest, PeerId, Round, RunId, Weighing};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// A member of a proposed group, in its own signed words.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seat {
    /// The peer.
    pub peer: PeerId,
    /// Samples it trained on this round.
    pub weight: f64,
    /// Tells its lives and its attempts at the round apart: it is in no group of an earlier one.
    pub life: u64,
    /// It may have voted or locked in this round before, in an earlier life or in a group that it left.
    pub forgets: bool,
    /// Its signature.
    pub signature: Signature,
}

/// Equal votes of a quorum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoteCertificate {
    /// In which ballot.
    pub ballot: u8,
    /// For what.
    pub value: Digest,
    /// The votes' signatures, by peer.
    pub votes: Vec<(PeerId, Signature)>,
}

/// A promise as its coordinator shows it to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pledge {
    /// The peer that promises.
    pub by: PeerId,
    /// Its vote in ballot zero.
    pub zero: Option<Digest>,
    /// Ballot and value of its highest certificate.
    pub highest: Option<(u8, Digest)>,
    /// Its signature.
    pub signature: Signature,
}

/// A vote, or a lock, of one member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stated {
    /// In which ballot.
    pub ballot: u8,
    /// The value that stands for the versions.
    pub value: Digest,
    /// Shard by shard.
    pub versions: Vec<ShardVersion>,
    /// The sender's.
    pub signature: Signature,
}

/// What members of a group that survives liars say about one fragment. Empty versions stand for a
/// void round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SignedMessage {
    /// The sender holds all shards in these versions and votes for them.
    Vote(Stated),
    /// The sender has seen a quorum of equal votes.
    Lock(Stated),
    /// The sender's wait has ended: it promises this ballot to its coordinator, and asks the others to.
    Prepare {
        /// The ballot.
        ballot: u8,
    },
    /// The sender signs nothing below a ballot any more, and names its vote, its certificate and its aggregates.
    Promise {
        /// The ballot.
        ballot: u8,
        /// The promise with its signature.
        pledge: Box<Pledge>,
        /// The highest certificate, where the pledge names one.
        certificate: Option<Box<VoteCertificate>>,
        /// The versions behind its certificate, or behind its vote of ballot zero.
        versions: Vec<ShardVersion>,
        /// Aggregates it holds.
        held: Vec<Held>,
    },
    /// The coordinator's conclusion from the promises: vote for this in this ballot.
    Repair {
        /// The ballot.
        ballot: u8,
        /// The promises of a quorum.
        pledges: Vec<Pledge>,
        /// The highest certificate that they name.
        certificate: Option<VoteCertificate>,
        /// Shard by shard; empty for a void round.
        shards: Vec<ShardPlan>,
    },
    /// The exchange of the fragment ended with these versions.
    Decided {
        /// In which ballot.
        ballot: u8,
        /// The value that stands for the versions.
        value: Digest,
        /// The group, so that anyone can check the decision.
        group: SignedGroup,
        /// Shard by shard.
        versions: Vec<ShardVersion>,
        /// The signatures are of locks; otherwise they are of votes.
        locked: bool,
        /// The signatures, by peer.
        signatures: Vec<(PeerId, Signature)>,
    },
    /// The votes of a ballot differ: what the sender has heard, so that a member that votes twice is
    /// found out.
    Heard {
        /// The ballot.
        ballot: u8,
        /// Votes with their signatures, by peer.
        votes: Vec<(PeerId, Digest, Signature)>,
    },
}

impl SignedGroup {
    /// The group that a proposal with these statements describes.
    pub fn new(seats: u16, anchor: Digest, members: &[Seat]) -> Self {
        let seated = |seat: &Seat| Seated {
            peer: seat.peer,
            weight: seat.weight,
            life: seat.life,
        };
        Self {
            seats,
            anchor,
            members: members.iter().map(seated).collect(),
        }
    }

    /// Names the group in this round.
    pub fn digest(&self, run: &RunId, round: Round) -> Digest {
        let of = |m: &Seated| (m.peer, m.weight, m.life);
        let members: Vec<(PeerId, f64, u64)> = self.members.iter().map(of).collect();
        let all = (
            "murmurate group",
            run,
            round,
            self.seats,
            self.anchor,
            members,
        );
        Digest::of(&canonical(&all))
    }

    /// The members in the order in which they coordinate ballots above zero, again and again.
    pub fn coordinators(&self, run: &RunId, round: Round) -> Vec<usize> {
        let rank = |index: &usize| {
            let member = self.members.get(*index);
            member.map(|member| rendezvous(run, round, LEADERS, member.peer))
        };
        let mut ranked: Vec<usize> = (0..self.members.len()).collect();
        ranked.sort_by_key(|index| (Reverse(rank(index)), *index));
        ranked
    }

    pub(super) fn weighted(&self) -> Vec<Member> {
        let plain = self.members.iter().map(|m| Member::new(m.peer, m.weight));
        let mut plain: Vec<Member> = plain.collect();
        // A plan whose weights count inner steps has no signed groups.
        cap(&mut plain, Weighing::Samples);
        plain
    }

    /// Checks every count and range.
    pub(super) fn check(&self) -> Result<(), WireError> {
        let (members, seats) = (&self.members, usize::from(self.seats));
        check::ok(!members.is_empty() && members.len() <= seats, "members")?;
        check::ok(seats <= GROUP_MEMBERS_MAX, "seats")?;
        let finite = members.iter().all(|m| check::weight_ok(m.weight));
        check::ok(finite, "members.weight")?;
        let sorted = members.is_sorted_by(|a, b| a.peer < b.peer);
        check::ok(sorted, "members.order")
    }
}

impl Seat {
    /// It is of this life of the peer or of an attempt before: words may be overtaken.
    pub(super) const fn is_before(&self, life: u64) -> bool {
        // Attempts count up from a session's random start.
        life.wrapping_sub(self.life) < 1 << 48
    }

    /// The bytes of its statement, and the place of its signature.
    pub(super) fn signed(&mut self, run: &RunId, round: Round, anchor: Digest) -> Signed<'_> {
        let ready = Statement::Ready {
            round,
            weight: self.weight,
            anchor,
            life: self.life,
            forgets: self.forgets,
        };
        signed(run, self.peer, &ready, &mut self.signature)
    }
}

impl SignedMessage {
    /// The message's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Vote(_) => "signed-vote",
            Self::Lock(_) => "lock",
            Self::Prepare { .. } => "signed-prepare",
            Self::Promise { .. } => "signed-promise",
            Self::Repair { .. } => "signed-repair",
            Self::Decided { .. } => "signed-decided",
            Self::Heard { .. } => "heard",
        }
    }

    /// The sender works on the fragment and wants to know how it ended.
    pub(super) const fn asks(&self) -> bool {
        matches!(
            self,
            Self::Promise { .. } | Self::Prepare { .. } | Self::Lock(_)
        )
    }

    /// Every signature in it, with its statement.
    pub(super) fn signed(&mut self, run: &RunId, from: PeerId, place: Place) -> Vec<Signed<'_>> {
        match self {
            Self::Vote(said) => {
                let vote = Statement::Vote(place, said.ballot, said.value);
                vec![signed(run, from, &vote, &mut said.signature)]
            }
            Self::Lock(said) => {
                let lock = Statement::Lock(place, said.ballot, said.value);
                vec![signed(run, from, &lock, &mut said.signature)]
            }
            Self::Prepare { .. } => Vec::new(),
            Self::Promise {
                ballot,
                pledge,
                certificate,
                ..
            } => {
                let shown = certificate.as_mut();
                let mut all = shown.map_or(Vec::new(), |c| c.signed(run, place));
                all.push(pledge.signed(run, place, *ballot));
                all
            }
            Self::Repair {
                ballot,
                pledges,
                certificate,
                ..
            } => {
                let shown = certificate.as_mut();
                let mut all = shown.map_or(Vec::new(), |c| c.signed(run, place));
                all.extend(pledges.iter_mut().map(|p| p.signed(run, place, *ballot)));
                all
            }
            Self::Decided {
                ballot,
                value,
                locked,
                signatures,
                ..
            } => {
                let statement = if *locked {
                    Statement::Lock(place, *ballot, *value)
                } else {
                    Statement::Vote(place, *ballot, *value)
                };
                let all = signatures.iter_mut();
                all.map(|(by, signature)| signed(run, *by, &statement, signature))
                    .collect()
            }
            Self::Heard { ballot, votes } => {
                let vote = |value: Digest| Statement::Vote(place, *ballot, value);
                let all = votes.iter_mut();
                all.map(|(by, value, signature)| signed(run, *by, &vote(*value), signature))
                    .collect()
            }
        }
    }

    /// Checks every count and range.
    pub(super) fn check(&self) -> Result<(), WireError> {
        let of = |number: u8| check::ok(number < BALLOTS_SIGNED_MAX, "ballot");
        let few = |count: usize| check::ok(count <= GROUP_MEMBERS_MAX, "signatures");
        match self {
            Self::Vote(said) | Self::Lock(said) => {
                of(said.ballot)?;
                check::shards(said.versions.len())
            }
            Self::Prepare { ballot } => of(*ballot),
            Self::Promise {
                ballot,
                certificate,
                versions,
                held,
                ..
            } => {
                of(*ballot)?;
                few(certificate.as_ref().map_or(0, |c| c.votes.len()))?;
                check::shards(versions.len())?;
                check::shards(held.len())
            }
            Self::Repair {
                ballot,
                pledges,
                certificate,
                shards,
            } => {
                of(*ballot)?;
                few(pledges.len())?;
                few(certificate.as_ref().map_or(0, |c| c.votes.len()))?;
                check::shards(shards.len())
            }
            Self::Decided {
                ballot,
                group,
                versions,
                signatures,
                ..
            } => {
                of(*ballot)?;
                few(signatures.len())?;
                group.check()?;
                check::shards(versions.len())
            }
            Self::Heard { ballot, votes } => {
                of(*ballot)?;
                few(votes.len())
            }
        }
    }
}

/// A signature with its statement.
fn signed<'a>(
    run: &RunId,
    by: PeerId,
    statement: &Statement,
    signature: &'a mut Signature,
) -> Signed<'a> {
    Signed {
        by,
        statement: statement.bytes(run),
        signature,
    }
}

impl VoteCertificate {
    fn signed(&mut self, run: &RunId, place: Place) -> Vec<Signed<'_>> {
        let vote = Statement::Vote(place, self.ballot, self.value);
        let all = self.votes.iter_mut();
        all.map(|(by, signature)| signed(run, *by, &vote, signature))
            .collect()
    }
}

impl Pledge {
    fn signed(&mut self, run: &RunId, place: Place, ballot: u8) -> Signed<'_> {
        let promise = Statement::Promise(place, ballot, self.zero, self.highest);
        signed(run, self.by, &promise, &mut self.signature)
    }
}

/// The slot of the rendezvous hash that ranks coordinators; zero picks proposers, one samples.
const LEADERS: u8 = 2;

/// A member of a group whose members sign.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seated {
    /// The peer.
    pub peer: PeerId,
    /// The samples that it said it trained on. How much counts follows from the words of all.
    pub weight: f64,
    /// Tells its lives and attempts apart.
    pub life: u64,
}

/// All that the digest of a group names, but for its round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignedGroup {
    /// Peers that took part in rounds, absent ones included: the quorum is of these.
    pub seats: u16,
    /// The anchor of all members.
    pub anchor: Digest,
    /// The members in `PeerId` order.
    pub members: Vec<Seated>,
}
