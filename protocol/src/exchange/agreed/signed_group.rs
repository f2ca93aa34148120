//! A group as its members have signed it: with this, anyone can check what the group decided.

use super::member::Member;
use super::weights;
use crate::limits::GROUP_MEMBERS_MAX;
use crate::rendezvous::rendezvous;
use crate::wire::{WireError, canonical, check};
use crate::{Digest, PeerId, Round, RunId, Weighing};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// The slot of the rendezvous hash that ranks coordinators of signed ballots. Slots zero and one pick
/// proposers and samples.
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

impl SignedGroup {
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

    /// The members with the weights that count.
    pub(super) fn weighted(&self) -> Vec<Member> {
        let plain = self.members.iter().map(|m| Member {
            peer: m.peer,
            weight: m.weight,
            taken: None,
            loss: None,
        });
        let mut plain: Vec<Member> = plain.collect();
        // A plan whose weights count inner steps has no signed groups.
        weights::cap(&mut plain, Weighing::Samples);
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
