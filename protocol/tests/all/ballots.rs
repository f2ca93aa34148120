//! Ballots of a group whose members sign: one member that lies takes none of them.

use crate::common::one::{One, honest};
use crate::common::{config, peer, plan, slice};
use murmurate_protocol::limits::{BALLOTS_SIGNED_MAX, BALLOTS_SIGNED_MIN};
use murmurate_protocol::wire::{
    AgreedMessage, ExchangeMessage, FormingMessage, FragmentMessage, Message, Proposal, Scoped,
    Seat, SignedMessage,
};
use murmurate_protocol::{
    Digest, Done, ExchangeKind, FragmentId, GroupTag, Input, Members, Order, Part, Phase, Round,
    SliceMeta, Tag,
};
use std::collections::BTreeSet;

/// What the peer has said of the forming of groups.
fn forming(one: &One) -> Vec<FormingMessage> {
    let said = one.said().filter_map(|(_, said)| match said {
        Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Forming(said))) => {
            Some(said.clone())
        }
        _ => None,
    });
    said.collect()
}

/// A peer of four whose members sign, which has trained.
fn of_four(me: u8) -> One {
    let mut plan = plan(ExchangeKind::Gathered, 1);
    plan.agreement.liars = 1;
    let mut settings = config(peer(me));
    settings.start_with = 4;
    let mut one = One::with(settings, plan);
    let others = (0..4).filter(|id| *id != me);
    others.for_each(|id| one.meet(peer(id)));
    one.work(honest);
    one
}

/// With what the peer is ready.
fn ready_with(one: &One) -> (Digest, Seat) {
    let said = forming(one).into_iter().rev().find_map(|said| match said {
        FormingMessage::SignedReady { anchor, seat, .. } => Some((anchor, seat)),
        _ => None,
    });
    said.expect("it says that it is ready")
}

/// The peer and three others are ready, one of them proposes, and the peer joins the group. Gives the term in which
/// the peer proposes instead, if it is its turn before that.
fn join(one: &mut One, others: [u8; 3]) -> Result<GroupTag, u8> {
    let (anchor, own) = ready_with(one);
    one.outputs.clear();
    let (round, proposes) = (Round(0), true);
    let of = |id: u8| Seat {
        peer: peer(id),
        ..own
    };
    for id in others {
        let ready = FormingMessage::SignedReady {
            round,
            anchor,
            proposes,
            seat: of(id),
        };
        one.hear(peer(id), ready);
    }
    let proposed = forming(one).into_iter().find_map(|said| match said {
        FormingMessage::SignedPropose(proposal) => Some(proposal.term),
        _ => None,
    });
    if let Some(term) = proposed {
        return Err(term);
    }
    // Whose turn it is, this peer knows.
    let mut members: Vec<Seat> = others.map(of).into_iter().chain([own]).collect();
    members.sort_by_key(|seat| seat.peer);
    for id in others {
        let proposal = Proposal {
            round,
            term: 0,
            seats: 4,
            anchor,
            members: members.clone(),
        };
        one.hear(peer(id), FormingMessage::SignedPropose(proposal));
    }
    let joined = forming(one).into_iter().find_map(|said| match said {
        FormingMessage::Joined { group, .. } => Some(group),
        _ => None,
    });
    Ok(joined.expect("it joins the group that is due"))
}

/// The group of the peer and three others fails. Gives the term in which the peer proposes, if it is its turn before.
fn failed_attempt(one: &mut One, others: [u8; 3]) -> Option<u8> {
    let group = match join(one, others) {
        Ok(group) => group,
        Err(term) => return Some(term),
    };
    let (round, ready) = (Round(0), false);
    for id in &others[..2] {
        let left = FormingMessage::Left {
            round,
            group,
            ready,
        };
        one.hear(peer(*id), left);
    }
    (0..4).for_each(|_| one.work(honest));
    None
}

/// Others may not have been asked by those that were tried before, because they trained: they go by the term.
#[test]
fn a_proposal_counts_those_that_were_tried_in_an_earlier_attempt() {
    let proposed = (0..4u8).filter_map(|me| {
        let others = core::array::from_fn(|n| (me + 1 + n as u8) % 4);
        let mut one = of_four(me);
        (0..2).find_map(|tried| Some((tried, failed_attempt(&mut one, others)?)))
    });
    let proposed: BTreeSet<(u8, u8)> = proposed.collect();
    assert_eq!(proposed, BTreeSet::from([(0, 0), (1, 1)]));
}

/// A peer in a group of four whose members sign, with its contribution encoded.
fn in_a_group() -> (One, GroupTag) {
    let mut one = of_four(0);
    let group = join(&mut one, [1, 2, 3]).expect("another one proposes");
    let round = Round(0);
    for id in 1..4 {
        one.hear(peer(id), FormingMessage::Joined { round, group });
    }
    one.work(|order| match order {
        Order::Encode { .. } => Some(Done::Encoded {
            bytes: 48,
            digest: Some(Digest::of(b"own")),
        }),
        _ => honest(order),
    });
    one.outputs.clear();
    (one, group)
}

/// What the peer has signed, or asked for, in its group.
fn signed(one: &One) -> Vec<SignedMessage> {
    let said = one.said().filter_map(|(_, said)| match said {
        Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Fragment(Scoped {
            body: FragmentMessage::Signed(said),
            ..
        }))) => Some(said.clone()),
        _ => None,
    });
    said.collect()
}

/// The ballots that the peer has asked for.
fn ballots(one: &One) -> BTreeSet<u8> {
    let asked = |said: SignedMessage| match said {
        SignedMessage::Prepare { ballot } => Some(ballot),
        _ => None,
    };
    signed(one).into_iter().filter_map(asked).collect()
}

fn scoped(group: GroupTag, body: SignedMessage) -> Scoped {
    Scoped {
        round: Round(0),
        fragment: FragmentId(0),
        group,
        body: FragmentMessage::Signed(body),
    }
}

#[test]
fn one_member_takes_no_ballot_and_two_take_what_both_ask_for() {
    let (mut one, group) = in_a_group();
    let ask = |ballot| scoped(group, SignedMessage::Prepare { ballot });
    for ballot in [1, BALLOTS_SIGNED_MAX - 1, BALLOTS_SIGNED_MAX - 1] {
        one.hear(peer(1), ask(ballot));
    }
    assert!(ballots(&one).is_empty(), "one alone may lie");
    one.hear(peer(2), ask(2));
    assert_eq!(ballots(&one), BTreeSet::from([2]), "one of two does not");
    one.hear(peer(3), ask(1));
    assert_eq!(ballots(&one), BTreeSet::from([2]));
    assert_eq!(one.peer.phase(), Phase::Exchange, "it stays in its round");
}

/// It promises that ballot and votes in none below. Two members without a link do so in each round.
#[test]
fn a_member_that_asks_for_a_ballot_is_not_waited_for_in_ballot_zero() {
    let ask = SignedMessage::Prepare { ballot: 1 };
    for asks_first in [true, false] {
        let (mut one, group) = in_a_group();
        for id in 1..4 {
            let members = Members::one(usize::from(id));
            one.feed(Input::Arrived {
                from: peer(id),
                slice: slice(0, Part::Aggregate, id),
                meta: SliceMeta {
                    of: 1,
                    bytes: 48,
                    tag: Tag::Mean { group, members },
                },
                digest: Some(Digest::of(&[id])),
            });
        }
        let votes = |said: &SignedMessage| matches!(said, SignedMessage::Vote(_));
        let vote = signed(&one).into_iter().find(votes);
        let vote = vote.expect("all contributions are here");
        if asks_first {
            one.hear(peer(3), scoped(group, ask.clone()));
        }
        one.hear(peer(1), scoped(group, vote.clone()));
        one.hear(peer(2), scoped(group, vote));
        let locks = |said: &SignedMessage| matches!(said, SignedMessage::Lock(_));
        let locked = signed(&one).iter().any(locks);
        assert_eq!(locked, asks_first, "the vote of a fourth may still come");
        one.hear(peer(3), scoped(group, ask.clone()));
        assert!(signed(&one).iter().any(locks), "no time has passed");
    }
}

/// The peer waits in vain for its group, and another member with it, until it is ready for another one; where there is
/// a `rival`, the fourth member declines and is ready for the round again. Gives the last ballot.
fn ballots_in_vain(rival: bool) -> Option<u8> {
    let (mut one, group) = in_a_group();
    let (anchor, own) = ready_with(&of_four(0));
    let (round, ready, proposes) = (Round(0), true, true);
    for _ in 0..4 * u16::from(BALLOTS_SIGNED_MAX) {
        let asked = ballots(&one).last().copied();
        if forming(&one)
            .iter()
            .any(|said| matches!(said, FormingMessage::SignedReady { .. }))
        {
            return asked;
        }
        if rival {
            let left = FormingMessage::Left {
                round,
                group,
                ready,
            };
            one.hear(peer(3), left);
            let seat = Seat {
                peer: peer(3),
                life: own.life + 1,
                ..own
            };
            one.hear(
                peer(3),
                FormingMessage::SignedReady {
                    round,
                    anchor,
                    proposes,
                    seat,
                },
            );
        }
        asked
            .into_iter()
            .for_each(|ballot| one.hear(peer(1), scoped(group, SignedMessage::Prepare { ballot })));
        one.pass(60);
        one.work(honest);
    }
    None
}

/// A liar that the quorum needs could keep the others for minutes from one that waits outside.
#[test]
fn a_group_with_a_rival_is_left_once_each_member_has_coordinated() {
    assert_eq!(ballots_in_vain(true), Some(4));
    assert_eq!(ballots_in_vain(false), Some(BALLOTS_SIGNED_MIN + 7));
}

#[test]
fn one_that_has_signed_stays_in_a_group_that_a_liar_could_decide() {
    let (mut one, group) = in_a_group();
    let left = FormingMessage::Left {
        round: Round(0),
        group,
        ready: true,
    };
    one.hear(peer(2), left.clone());
    assert!(!ballots(&one).is_empty(), "it has signed a promise");
    one.work(honest);
    one.outputs.clear();
    // One of the two may lie, and decide with the third and with what this peer has signed.
    one.hear(peer(3), left.clone());
    assert!(
        forming(&one).is_empty(),
        "it is not ready for another group"
    );
    assert_eq!(one.peer.phase(), Phase::Exchange);
    one.hear(peer(1), left);
    assert!(
        !forming(&one).is_empty() || one.peer.phase() != Phase::Exchange,
        "no one is left"
    );
}
