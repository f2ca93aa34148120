//! A group: the peers of one exchange, in `PeerId` order, and where they are, as its proposer knows it from their
//! records.
//!
//! Members that cut a fragment by the rates of their lines, or sum up along their sites, need the same rates
//! and sites to the bit. Records arrive at different times, so they do not have that. The proposer says what
//! it knows, all members use its words, and the group's tag is a hash of them. A proposer that lies about
//! rates or sites costs time; no bit of the result depends on who reduces a shard.

use super::member::{Member, Surroundings};
use super::signed_message::SignedGroup;
use crate::core::context::Context;
use crate::exchange::Outcome;
use crate::plan::Tolerance;
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
    /// Number of members that decide.
    pub(super) quorum: usize,
    /// The group in its members' words; `None` where statements are not signed.
    pub(super) sealed: Option<Sealed>,
    /// Sides of a merge, each with its members and its weight, this peer's first; empty in other groups.
    pub(super) sides: Vec<(u16, f64)>,
    /// The network among its members, in the proposer's words.
    pub(super) around: Surroundings,
}

/// A group whose members sign.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sealed {
    pub(super) tolerance: Tolerance,
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
    pub(super) fn with_network(self, around: Surroundings) -> Self {
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

    /// Its round goes as the plan's exchange says. Branches are averaged, whatever that says.
    pub(super) fn follows_plan(&self) -> bool {
        self.sides.is_empty()
    }

    pub(super) fn signed(self, plan: &Plan, words: SignedGroup) -> Self {
        let seats = usize::from(words.seats);
        let digest = words.digest(&plan.run, self.round);
        Self {
            // Of all seats and not of the members: a proposer that lies could name a few of its
            // own.
            quorum: plan.quorum_of(seats),
            tag: GroupTag::of_digest(&digest),
            sealed: Some(Sealed {
                tolerance: plan.tolerance(seats),
                words,
                digest,
            }),
            ..self
        }
    }

    /// A proposal names this group.
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
        let trained = members.filter(|(_, member)| member.said.weight > 0.0);
        trained.map(|(index, _)| index).collect()
    }

    /// Notes in the view that the other members are in a group of this round.
    pub(super) fn note(&self, cx: &mut Context) {
        for peer in self.other_peers() {
            if let Some(remote) = cx.view.get_mut(peer) {
                remote.settle();
                remote.grouped = Some(cx.round);
            }
        }
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

    /// The peers of [`Group::others`].
    pub(super) fn other_peers(&self) -> impl Iterator<Item = PeerId> {
        self.others().map(|(_, peer)| peer)
    }

    pub(super) fn decides(&self, count: usize) -> bool {
        count >= self.quorum
    }

    /// This number of members decides together with those that lie about where they are.
    pub(super) fn may_decide(&self, count: usize) -> bool {
        let sealed = self.sealed.as_ref();
        let tolerance = sealed.map_or(Tolerance::NONE, |sealed| sealed.tolerance);
        tolerance.may_be(self.quorum, count)
    }

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
    let say_nothing = |member: &Member| member.said.taken.is_none() && member.said.loss.is_none();
    if members.iter().all(say_nothing) {
        return peers;
    }
    // Members settle the same ledger, and agree on a loss, only if they know the same of each other.
    let taken: Vec<_> = members.iter().map(|member| member.said.taken).collect();
    let losses: Vec<_> = members.iter().map(|member| member.said.loss).collect();
    let named = if losses.iter().all(Option::is_none) {
        crate::wire::canonical(&(peers, taken))
    } else {
        crate::wire::canonical(&(peers, taken, losses))
    };
    GroupTag::of_digest(&Digest::of(&named))
}

pub(super) enum Formed {
    /// Not yet.
    Waiting,
    /// This group.
    Group(Box<Group>),
    /// No group, but an outcome.
    Outcome(Outcome),
    /// No proposer answered, or the ready peers have no common anchor.
    NoGroup,
    /// Too few peers are ready.
    Alone,
}
