//! A group: the peers of one exchange, in `PeerId` order.
//!
//! What forming a group came to.
//!
//! Where the members of a group are, as its proposer knows it from their records.
//!
//! Members that cut a fragment by the rates of their lines, or sum up along their sites, need the same rates
//! and sites to the bit. Records arrive at different times, so they do not have that. The proposer says what
//! it knows, all members use its words, and the group's tag is a hash of them. A proposer that lies about
//! rates or sites costs time; no bit of the result depends on who reduces a shard.

use super::member::Member;
use super::signed_message::SignedGroup;
use crate::exchange::Outcome;
use crate::limits::GROUP_MEMBERS_MAX;
use crate::schedule::AgreedLinks;
use crate::wire::{WireError, check};
use crate::{Digest, GroupTag, Members, PeerId, Plan, RateClass, Round};
use serde::{Deserialize, Serialize};

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

    /// The peers of [`Group::others`].
    pub(super) fn other_peers(&self) -> impl Iterator<Item = PeerId> {
        self.others().map(|(_, peer)| peer)
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

/// What forming a group came to.
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

/// Where one member of a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whereabouts {
    /// The first member of the group that is at the same site, by its place in `PeerId` order. A member
    /// whose site is not known is a site of its own.
    pub site: u8,
    /// How fast its line is, if its record says so.
    pub rate: Option<RateClass>,
}

/// What a proposer says of the network among the members of its group.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Surroundings {
    /// Where each member is; empty where the plan does not go by it.
    pub(super) places: Vec<Whereabouts>,
    /// The rates of their links, where the plan goes by them.
    pub(super) links: Option<AgreedLinks>,
}

/// Checks what a proposer says of this many members: one entry for each, and each site by its first member.
pub(super) fn check_places(places: &[Whereabouts], members: usize) -> Result<(), WireError> {
    check::ok(
        places.len() == members && members <= GROUP_MEMBERS_MAX,
        "places",
    )?;
    let first = |(index, place): (usize, &Whereabouts)| {
        let site = usize::from(place.site);
        site <= index && places.get(site).is_some_and(|p| p.site == place.site)
    };
    check::ok(places.iter().enumerate().all(first), "places.site")?;
    let mut rates = places.iter().filter_map(|place| place.rate);
    rates.try_for_each(RateClass::check)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_named_by_its_first_member_only() {
        let places = |sites: &[u8]| -> Vec<Whereabouts> {
            let place = |site: &u8| Whereabouts {
                site: *site,
                rate: None,
            };
            sites.iter().map(place).collect()
        };
        for good in [&[0, 0, 2, 0, 2][..], &[0, 1, 2], &[0]] {
            assert_eq!(check_places(&places(good), good.len()), Ok(()), "{good:?}");
        }
        for bad in [&[1, 1][..], &[0, 0, 1], &[0, 9]] {
            assert!(check_places(&places(bad), bad.len()).is_err(), "{bad:?}");
        }
        assert!(check_places(&places(&[0, 0]), 3).is_err(), "one is missing");
    }
}
