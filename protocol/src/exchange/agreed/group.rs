//! A group: the peers of one exchange, in `PeerId` order.

use super::message::Member;
use super::signed_group::SignedGroup;
use super::whereabouts::Surroundings;
use crate::{Digest, GroupTag, Members, PeerId, Plan, Round};

/// The agreed members of one round, and who of them this peer is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    round: Round,
    /// Keeps two groups of one round apart.
    pub(super) tag: GroupTag,
    pub(super) members: Vec<Member>,
    /// This peer's index.
    pub(super) me: usize,
    /// How many members decide.
    pub(super) quorum: usize,
    /// The group in its members' words; `None` where statements are not signed.
    pub(super) sealed: Option<Sealed>,
    /// Where it merges branches: the sides, each with its members and its weight, this peer's first.
    pub(super) sides: Vec<(u16, f64)>,
    /// The network among its members, in the proposer's words.
    pub(super) around: Surroundings,
}

/// A group whose members sign.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sealed {
    /// How many may lie.
    pub(super) liars: usize,
    pub(super) words: SignedGroup,
    /// Names the group in 256 bits: 64 could be hit twice on purpose.
    pub(super) digest: Digest,
}

impl Group {
    /// `None` when `me` is not a member.
    pub(super) fn new(plan: &Plan, round: Round, members: Vec<Member>, me: PeerId) -> Option<Self> {
        let me = members.iter().position(|m| m.peer == me)?;
        let tag = tag_of(round, &members, &Surroundings::default());
        let quorum = plan.quorum_of(members.len());
        Some(Self {
            tag,
            members,
            me,
            quorum,
            round,
            sealed: None,
            sides: Vec::new(),
            around: Surroundings::default(),
        })
    }

    /// The same group with what its proposer says of the network among its members.
    pub(super) fn within(self, around: Surroundings) -> Self {
        Self {
            tag: tag_of(self.round, &self.members, &around),
            around,
            ..self
        }
    }

    /// A group that merges the branches of these sides.
    pub(super) fn of_sides(self, sides: Vec<(u16, f64)>) -> Self {
        Self { sides, ..self }
    }

    /// Whether it merges branches.
    pub(super) fn merges(&self) -> bool {
        !self.sides.is_empty()
    }

    /// The same group in the signed words of its members.
    pub(super) fn signed(self, plan: &Plan, words: SignedGroup) -> Self {
        let seats = usize::from(words.seats);
        let digest = words.digest(&plan.run, self.round);
        Self {
            quorum: plan.quorum_of(seats),
            tag: GroupTag::of_digest(&digest),
            sealed: Some(Sealed {
                liars: plan.liars_of(seats),
                words,
                digest,
            }),
            ..self
        }
    }

    /// Whether a proposal names this group.
    pub(super) fn is(&self, round: Round, members: &[Member], around: &Surroundings) -> bool {
        self.tag == tag_of(round, members, around)
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

    /// Members that contribute: a member that trained on nothing does not.
    pub(super) fn bringing(&self) -> Members {
        let members = self.members.iter().enumerate();
        let trained = members.filter(|(_, member)| member.weight > 0.0);
        trained.map(|(index, _)| index).collect()
    }

    /// Every member but this peer.
    pub(super) fn others(&self) -> impl Iterator<Item = (usize, PeerId)> {
        let me = self.me;
        self.members
            .iter()
            .map(|m| m.peer)
            .enumerate()
            .filter(move |(i, _)| *i != me)
    }

    /// Whether this number of members decides.
    pub(super) fn decides(&self, count: usize) -> bool {
        count >= self.quorum
    }

    /// All members.
    pub(super) fn all(&self) -> Members {
        Members::all(self.len())
    }
}

fn tag_of(round: Round, members: &[Member], around: &Surroundings) -> GroupTag {
    let peers = GroupTag::of(round, members.iter().map(|member| &member.peer));
    let named = |bytes: Vec<u8>| GroupTag::of_digest(&Digest::of(&bytes));
    // Members cut fragments alike, and have the same trees, only if they go by the same places and links.
    let peers = match (around.places.as_slice(), &around.links) {
        ([], None) => peers,
        ([], Some(links)) => named(crate::wire::canonical(&(peers, links))),
        (places, _) => named(crate::wire::canonical(&(peers, places))),
    };
    let say_nothing = |member: &Member| member.taken.is_none() && member.loss.is_none();
    if members.iter().all(say_nothing) {
        return peers;
    }
    // Members settle the same ledger, and agree on a loss, only if they know the same of each other.
    let taken: Vec<_> = members.iter().map(|member| member.taken).collect();
    let losses: Vec<_> = members.iter().map(|member| member.loss).collect();
    let named = match losses.iter().all(Option::is_none) {
        true => crate::wire::canonical(&(peers, taken)),
        false => crate::wire::canonical(&(peers, taken, losses)),
    };
    GroupTag::of_digest(&Digest::of(&named))
}
