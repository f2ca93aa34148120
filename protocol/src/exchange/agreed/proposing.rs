//! Proposing a group: the peers that share an anchor, with the weights that count.

use super::electorate::{is_away, signs};
use super::formed::Formed;
use super::group::Group;
use super::grouping::Grouping;
use super::message::{FormingMessage, Member};
use super::weights;
use super::whereabouts::{Surroundings, Whereabouts};
use crate::core::context::Context;
use crate::limits::GROUP_MEMBERS_MAX;
use crate::rendezvous::rendezvous;
use crate::{Digest, Locality, PeerId, Round};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

impl Grouping {
    /// Proposes the ready peers with this anchor, and tells the others that they are behind.
    pub(super) fn propose(
        &mut self,
        cx: &mut Context,
        all: &BTreeMap<PeerId, (f64, Digest)>,
        anchor: Digest,
    ) -> Formed {
        let (me, round, term) = (cx.me(), cx.round, self.term);
        let present = |id: &PeerId| !is_away(cx, *id);
        let there = all
            .iter()
            .filter(|(id, (_, theirs))| present(id) && *theirs == anchor);
        let there: Vec<PeerId> = there.map(|(id, _)| *id).collect();
        let without = self.enough_for_a_group(cx, &there);
        let left_out: BTreeSet<PeerId> = match without {
            true => all.keys().copied().filter(|id| !present(id)).collect(),
            false => BTreeSet::new(),
        };
        let invited = all
            .iter()
            .filter(|(id, (_, theirs))| *theirs == anchor && !left_out.contains(id));
        let invited = seated(cx, invited.map(|(id, _)| *id).collect());
        let mut members = Vec::new();
        let mut seats = Vec::new();
        for (peer, (weight, theirs)) in all {
            if invited.contains(peer) {
                let said = self.ready.get(peer);
                let (taken, loss) = match *peer == me {
                    true => (cx.data.taken, cx.data.loss),
                    false => said.map_or((None, None), |ready| (ready.taken, ready.loss)),
                };
                members.push(Member {
                    peer: *peer,
                    weight: *weight,
                    taken,
                    loss,
                });
                let seat = said.and_then(|ready| ready.seat);
                seats.extend(seat.or((*peer == me).then(|| self.own_seat(cx))));
            } else {
                let resync = !cx.starts_from(cx.anchor(), round, *theirs);
                cx.send(
                    *peer,
                    FormingMessage::Behind {
                        round: round.next(),
                        resync,
                    },
                );
            }
        }
        if signs(cx) {
            return self.propose_signed(cx, term, seats);
        }
        weights::cap(&mut members, cx.plan.agreement.weighing);
        match Group::new(&cx.plan, round, members.clone(), me) {
            Some(group) => {
                let around = surroundings(cx, &members);
                for (_, peer) in group.others() {
                    cx.send(peer, proposal(round, term, &members, &around));
                }
                self.form(cx, group.within(around), false)
            }
            None => Formed::NoGroup, // this peer always has a seat
        }
    }
}

/// What this peer says of the network among the members of a group that it proposes.
fn surroundings(cx: &mut Context, members: &[Member]) -> Surroundings {
    let peers: Vec<PeerId> = members.iter().map(|member| member.peer).collect();
    let places = match cx.plan.names_places() {
        true => whereabouts(cx, members),
        false => Vec::new(),
    };
    Surroundings {
        places,
        links: cx.propose_links(&peers),
    }
}

/// What this peer knows of the places of some members.
fn whereabouts(cx: &Context, members: &[Member]) -> Vec<Whereabouts> {
    let view = &cx.view;
    let locality = |peer: PeerId| -> Option<&Locality> {
        let record = match peer == cx.me() {
            true => view.mine(),
            false => view.get(peer).and_then(|remote| remote.record()),
        };
        record.map(|record| &record.locality)
    };
    let known: Vec<Option<&Locality>> = members.iter().map(|m| locality(m.peer)).collect();
    let site = |index: usize| known[index].and_then(|locality| locality.site.as_ref());
    let first = |index: usize| {
        let there = |other: &usize| site(index).is_some() && site(*other) == site(index);
        (0..index).find(there).unwrap_or(index)
    };
    (0..members.len())
        .map(|index| Whereabouts {
            site: first(index) as u8,
            rate: known[index].and_then(|locality| locality.rate),
        })
        .collect()
}

/// The message that proposes a group, with what is around its members where the plan goes by it.
fn proposal(round: Round, term: u8, members: &[Member], around: &Surroundings) -> FormingMessage {
    let members = members.to_vec();
    match (around.places.as_slice(), &around.links) {
        ([], None) => FormingMessage::Propose {
            round,
            term,
            members,
        },
        ([], Some(links)) => FormingMessage::ProposeLinked {
            round,
            term,
            members,
            links: links.clone(),
        },
        (places, _) => FormingMessage::ProposePlaced {
            round,
            term,
            members,
            places: places.to_vec(),
        },
    }
}

/// Those of the invited peers that a group has room for, this peer among them. Where there are more,
/// the rendezvous hash of run and round picks them, so that each of n peers is in about
/// [`GROUP_MEMBERS_MAX`] of n groups. The same ranks pick the proposer: the peer that proposes after a
/// failure is in the group too, and two proposers that know the same peers pick the same group.
fn seated(cx: &Context, mut invited: Vec<PeerId>) -> BTreeSet<PeerId> {
    if invited.len() > GROUP_MEMBERS_MAX {
        let rank = |id: PeerId| (id == cx.me(), rendezvous(&cx.plan.run, cx.round, 0, id), id);
        invited.sort_by_cached_key(|id| Reverse(rank(*id)));
        invited.truncate(GROUP_MEMBERS_MAX);
    }
    invited.into_iter().collect()
}
