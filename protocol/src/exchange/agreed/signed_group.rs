//! A group as its members have signed it: with this, anyone can check what the group decided.

use super::ballot::Ballot;
use super::member::Member;
use super::message::Scoped;
use super::signed_message::{Seat, SignedMessage};
use super::value::value_of;
use super::{FragmentMessage, weights};
use crate::core::context::Context;
use crate::limits::GROUP_MEMBERS_MAX;
use crate::wire::{WireError, canonical, check};
use crate::{Digest, GroupTag, PeerId, Round, RunId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

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

    /// The members with the weights that count.
    pub(super) fn weighted(&self) -> Vec<Member> {
        let plain = self.members.iter().map(|m| Member {
            peer: m.peer,
            weight: m.weight,
        });
        let mut plain: Vec<Member> = plain.collect();
        weights::cap(&mut plain);
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

impl Scoped {
    /// A decision without its proof; the same where there is none.
    pub(crate) fn plain(&self) -> Self {
        let FragmentMessage::Signed(SignedMessage::Decided {
            group, versions, ..
        }) = &self.body
        else {
            return self.clone();
        };
        let members = group.weighted();
        let body = match (members.first(), versions.is_empty()) {
            (Some(first), true) => FragmentMessage::Void {
                ballot: Ballot {
                    number: 0,
                    coordinator: first.peer,
                },
            },
            _ => FragmentMessage::Decided {
                ballot: 0,
                members,
                versions: versions.clone(),
            },
        };
        Self { body, ..*self }
    }
}

/// What a decision with its proof says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Proven {
    /// The same without the proof.
    pub(crate) plain: Scoped,
    /// The anchor of the group that decided.
    pub(crate) anchor: Digest,
}

/// Whether a message is a decision that its signatures prove, if at most `liars` of those that take part
/// lie. One that does not lie has then signed it in a group that it accepted, so no other decision of
/// the round can have a proof.
pub(crate) fn proven(cx: &Context, scoped: &Scoped, liars: usize) -> Option<Proven> {
    let FragmentMessage::Signed(SignedMessage::Decided {
        ballot,
        value,
        group,
        versions,
        locked,
        signatures,
    }) = &scoped.body
    else {
        return None;
    };
    let digest = group.digest(&cx.plan.run, scoped.round);
    let member = |peer: &PeerId| group.members.iter().any(|m| m.peer == *peer);
    let signers: BTreeSet<PeerId> = signatures.iter().map(|(peer, _)| *peer).collect();
    let quorum = cx.plan.quorum_of(usize::from(group.seats));
    let enough = match *locked {
        true => signers.len() >= quorum,
        false => *ballot == 0 && signers.len() == group.members.len(),
    };
    let holds = GroupTag::of_digest(&digest) == scoped.group
        && value_of(&digest, versions) == *value
        && signers.iter().all(member)
        && group.members.len() >= quorum
        && enough
        && signers.len() > liars;
    holds.then(|| Proven {
        plain: scoped.plain(),
        anchor: group.anchor,
    })
}
