//! A group: the peers of one exchange, in `PeerId` order.

use crate::wire::Member;
use crate::{Digest, PeerId, Round};

/// The agreed members of one round, and who of them this peer is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    /// Keeps two groups of one round apart.
    pub(super) tag: u64,
    pub(super) members: Vec<Member>,
    /// This peer's index.
    pub(super) me: usize,
}

impl Group {
    /// `None` when `me` is not a member.
    pub(super) fn new(round: Round, members: Vec<Member>, me: PeerId) -> Option<Self> {
        let me = members.iter().position(|m| m.peer == me)?;
        let tag = tag_of(round, &members);
        Some(Self { tag, members, me })
    }

    /// Whether a proposal is of this very group.
    pub(super) fn is(&self, round: Round, members: &[Member]) -> bool {
        self.tag == tag_of(round, members)
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// The member at an index that is known to be in range.
    pub(super) fn peer(&self, index: usize) -> PeerId {
        self.members[index].peer
    }

    pub(super) fn index(&self, peer: PeerId) -> Option<usize> {
        self.members.binary_search_by_key(&peer, |m| m.peer).ok()
    }

    /// Everybody but this peer.
    /// Members that bring a contribution: whoever trained on nothing has none.
    pub(super) fn bringing(&self) -> u64 {
        let members = self.members.iter().enumerate();
        let trained = members.filter(|(_, member)| member.weight > 0.0);
        trained.fold(0, |set, (index, _)| set | bit(index))
    }

    pub(super) fn others(&self) -> impl Iterator<Item = (usize, PeerId)> {
        let me = self.me;
        self.members
            .iter()
            .map(|m| m.peer)
            .enumerate()
            .filter(move |(i, _)| *i != me)
    }

    /// Whether `count` members are a strict majority.
    pub(super) fn majority(&self, count: usize) -> bool {
        2 * count > self.len()
    }

    /// All members as bits.
    pub(super) fn all(&self) -> u64 {
        u64::MAX >> (64 - self.len().clamp(1, 64))
    }
}

fn tag_of(round: Round, members: &[Member]) -> u64 {
    let mut bytes = round.0.to_le_bytes().to_vec();
    members
        .iter()
        .for_each(|m| bytes.extend_from_slice(m.peer.as_bytes()));
    let mut first = [0u8; 8];
    first.copy_from_slice(&Digest::of(&bytes).as_bytes()[..8]);
    u64::from_le_bytes(first)
}

/// One member as a bit.
pub(super) fn bit(index: usize) -> u64 {
    1u64 << (index as u32 & 63)
}

/// The members of a set, ascending.
pub(super) fn members_of(set: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |i| set & bit(*i) != 0)
}
