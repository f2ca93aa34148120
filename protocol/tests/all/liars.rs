//! Peers that lie about groups and weights, and how an honest peer reacts.

use crate::common::one::{One, honest};
use crate::common::{peer, slice};
use murmurate_protocol::wire::{
    AgreedMessage, ExchangeMessage, FormingMessage, Member, Message, Proposed,
};
use murmurate_protocol::{
    AgreementPlan, Combination, Digest, Event, ExchangeKind, GroupTag, Order, Part, Plan, Round,
    SliceMeta, Tag,
};

/// Peer 0, which has met peers 1 to `others` and has trained on eight samples.
fn ready(others: u8) -> One {
    let mut one = One::new(ExchangeKind::AllReduce);
    (1..=others).for_each(|id| one.meet(peer(id)));
    one.work(honest);
    one
}

fn propose(members: &[(u8, f64)]) -> FormingMessage {
    let member = |(id, weight): &(u8, f64)| Member::new(peer(*id), *weight);
    FormingMessage::Propose(Proposed {
        round: Round(0),
        term: 0,
        members: members.iter().map(member).collect(),
    })
}

/// Whether the peer is in a group, how many rules it saw broken, and what it declined.
fn seen(one: &One) -> (bool, usize, usize) {
    let group = |event: &Event| matches!(event, Event::Group { .. });
    let declined = |said: &&FormingMessage| matches!(said, FormingMessage::Decline { .. });
    let declined = forming(one).filter(declined).count();
    (one.events().any(group), one.misbehaved(), declined)
}

fn forming(one: &One) -> impl Iterator<Item = &FormingMessage> {
    one.said().filter_map(|(_, said)| match said {
        Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Forming(said))) => Some(said),
        _ => None,
    })
}

/// The proposals that the peer has sent.
fn proposals(one: &One) -> Vec<Vec<Member>> {
    let proposed = forming(one).filter_map(|said| match said {
        FormingMessage::Propose(proposed) => Some(proposed.members.clone()),
        _ => None,
    });
    proposed.collect()
}

#[test]
fn only_what_an_honest_peer_proposes_is_followed() {
    let (joined, broken, declined) = ((true, 0, 0), (false, 1, 0), (false, 0, 1));
    for (members, expected) in [
        (&[(0, 8.0), (1, 8.0), (2, 8.0), (3, 8.0)][..], joined),
        // One other is twice as fast as usual, one did not train.
        (&[(0, 8.0), (1, 16.0), (2, 8.0), (3, 0.0)], joined),
        (&[(0, 8.0), (1, 8.0), (2, 8.0)], joined),
        // Only its own contribution would count.
        (&[(0, 0.0), (1, 1.0), (2, 0.0), (3, 0.0)], broken),
        (&[(0, 7.0), (1, 8.0), (2, 8.0), (3, 8.0)], broken),
        (&[(0, 8.0), (1, 1e18), (2, 8.0), (3, 8.0)], broken),
        (&[(0, 8.0), (1, 16.1), (2, 8.0), (3, 8.0)], broken),
        // A group of others.
        (&[(0, 8.0), (2, 8.0), (3, 8.0)], broken),
        // Mostly peers that no other has met.
        (&[(0, 8.0), (1, 8.0), (6, 8.0), (7, 8.0)], declined),
        (&[(0, 8.0), (1, 8.0), (2, 8.0), (7, 8.0)], joined),
    ] {
        let mut one = ready(3);
        one.hear(peer(1), propose(members));
        assert_eq!(seen(&one), expected, "{members:?}");
    }
}

#[test]
fn a_proposer_with_another_anchor_is_not_followed() {
    let mut one = ready(3);
    let anchor = Digest::of(b"another");
    let (round, weight) = (Round(0), 8.0);
    one.hear(peer(1), crate::common::ready(round, weight, anchor, true));
    one.hear(peer(1), propose(&[(0, 8.0), (1, 8.0), (2, 8.0), (3, 8.0)]));
    assert_eq!(seen(&one), (false, 0, 1));
}

/// Peer 0 with seven others that are ready, of which it met `first` before it began.
fn rivalled(first: u8) -> One {
    let mut one = One::new(ExchangeKind::AllReduce);
    one.meet(peer(first));
    (1..8)
        .filter(|id| *id != first)
        .for_each(|id| one.meet(peer(id)));
    one.work(honest);
    for id in 1..8 {
        let weight = if id == 1 { 1e18 } else { 8.0 };
        let (round, anchor) = (Round(0), one.peer.digest());
        one.hear(
            peer(id),
            crate::common::ready(round, weight, anchor, id == first),
        );
    }
    one
}

/// The others go on at once, and no claim counts more than twice the usual weight.
#[test]
fn a_refused_proposer_is_not_waited_for() {
    // Those that were met after the round began propose only if no other can: `first` is the rival.
    let rivals = (1..8).map(rivalled).find(|one| proposals(one).is_empty());
    let mut one = rivals.unwrap();
    for id in 1..8 {
        one.hear(peer(id), propose(&[(0, 0.0), (id, 1.0)]));
    }
    // No time has passed.
    let sent = proposals(&one);
    let weights: Vec<f64> = sent[0].iter().map(|member| member.said.weight).collect();
    assert_eq!(weights, [8.0, 16.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0]);
}

/// Peer 0 with three others, whose plan needs `least` contributions, in a group of these weights.
fn grouped(least: u16, weights: [f64; 4]) -> One {
    let mut one = One::of(Plan {
        agreement: AgreementPlan {
            contributions: least,
            ..AgreementPlan::default()
        },
        ..crate::common::plan(ExchangeKind::AllReduce, 1)
    });
    (1..4).for_each(|id| one.meet(peer(id)));
    one.work(honest);
    let members: Vec<(u8, f64)> = (0..4).zip(weights).collect();
    one.hear(peer(1), propose(&members));
    one
}

fn voided(one: &One) -> bool {
    one.events()
        .any(|event| matches!(event, Event::Voided { .. }))
}

#[test]
fn a_group_with_too_few_contributions_is_void_at_once() {
    for (least, weights, void) in [
        (0, [8.0, 0.0, 0.0, 0.0], false),
        (3, [8.0, 8.0, 8.0, 0.0], false),
        (3, [8.0, 8.0, 0.0, 0.0], true),
        (5, [8.0, 8.0, 8.0, 8.0], true),
    ] {
        let one = grouped(least, weights);
        assert_eq!(voided(&one), void, "{least} of {weights:?}");
    }
}

/// Two of four contributions do not come. An owner whose rule needs three makes nothing of the other two.
#[test]
fn an_owner_does_not_reduce_too_few_contributions() {
    for (least, reduces) in [(0, true), (2, true), (3, false)] {
        let mut one = grouped(least, [8.0; 4]);
        one.work(honest);
        let group = GroupTag::of(Round(0), &[peer(0), peer(1), peer(2), peer(3)]);
        let meta = SliceMeta {
            of: 4,
            bytes: 16,
            tag: Tag::Contribution { group },
        };
        one.arrives(peer(1), slice(0, Part::Contribution, 1), meta);
        // The deadline for the others passes.
        (0..10).for_each(|_| one.pass(1));
        let reduced = |order: &Order| matches!(order, Order::Combine { how: Combination::Reduce(inputs), .. } if inputs.len() == 2);
        assert_eq!(one.orders().any(reduced), reduces, "{least}");
    }
}
