//! A swarm that was restarted as a whole, and one member that lies: with which state it goes on.

use crate::common::one::{One, asked_for_a_state, trains};
use crate::common::{config, peer, plan, snapshot};
use murmurate_protocol::wire::{Message, Muster, Offer, TransferMessage};
use murmurate_protocol::{Base, Digest, ExchangeKind, FetchId, Round, StateId};

/// The true parameters with which a round began.
fn of_round(round: u64) -> Digest {
    Digest::of(&round.to_le_bytes())
}

fn base(round: u64) -> Base {
    Base {
        round: Round(round),
        anchor: of_round(round),
    }
}

/// One of four members, which has a checkpoint of this round and began all rounds up to another.
fn restarted(round: u64, began: u64) -> One {
    let mut plan = plan(ExchangeKind::AllReduce, 1);
    plan.agreement.liars = 1;
    let mut settings = config(peer(0));
    (settings.start_with, settings.companions) = (4, 3);
    let snapshot = snapshot(&plan, Round(round));
    let began = (1..=began).map(base).collect();
    One::again(settings, plan, (snapshot, of_round(round)), began)
}

/// Another member that waits with a state.
fn rests(one: &mut One, id: u8, state: Base) {
    one.meet_as(peer(id), |hello| {
        (hello.round, hello.anchor) = (state.round, state.anchor);
        (hello.ready, hello.muster) = (false, Muster::Met);
    });
}

/// Answers what this member was asked so far: it began all rounds up to one.
fn answers(one: &mut One, id: u8, began: u64) {
    let asked = one.said().filter_map(|(to, message)| match message {
        Message::Transfer(TransferMessage::AnchorAsk { round }) if to == peer(id) => Some(*round),
        _ => None,
    });
    for round in asked.collect::<Vec<Round>>() {
        let anchor = (round.0 <= began).then(|| of_round(round.0));
        one.hear(peer(id), TransferMessage::Anchor { round, anchor });
    }
}

/// A member offers a state. Returns whether it is fetched.
fn offered(one: &mut One, id: u8, state: Base) -> bool {
    let what = StateId {
        round: state.round,
        root: Digest::of(b"bytes"),
        bytes: 100,
    };
    let (state, anchor) = (what, state.anchor);
    let offer = TransferMessage::StateOffer(Offer { state, anchor });
    one.hear(peer(id), offer);
    let fetched = one.fetches().into_iter();
    fetched
        .map(|(what, _)| what)
        .any(|got| got == FetchId::State(what))
}

#[test]
fn a_state_that_one_member_alone_knows_is_not_waited_for() {
    let mut one = restarted(5, 5);
    rests(&mut one, 1, base(5));
    rests(&mut one, 2, base(5));
    let forged = Base {
        round: Round(1000),
        anchor: Digest::of(b"forged"),
    };
    rests(&mut one, 3, forged);
    assert_eq!(trains(&one), None, "the others have not answered");
    for id in [1, 2] {
        answers(&mut one, id, 5);
    }
    assert_eq!(asked_for_a_state(&one), []);
    assert_eq!(trains(&one), Some(Round(5)));
}

#[test]
fn the_newest_state_that_others_know_is_taken_over() {
    let mut one = restarted(5, 6);
    rests(&mut one, 1, base(7));
    rests(&mut one, 2, base(6));
    rests(&mut one, 3, base(4));
    for id in 1..4 {
        answers(&mut one, id, 7);
    }
    assert_eq!(asked_for_a_state(&one), [(peer(1), Round(5))]);
    assert!(offered(&mut one, 1, base(7)), "the others have said so");
}

#[test]
fn a_forged_state_of_a_round_that_others_began_otherwise_is_not_taken_over() {
    let mut one = restarted(5, 6);
    let forged = Base {
        round: Round(7),
        anchor: Digest::of(b"forged"),
    };
    rests(&mut one, 1, forged);
    rests(&mut one, 2, base(6));
    rests(&mut one, 3, base(4));
    answers(&mut one, 2, 7);
    answers(&mut one, 3, 6);
    assert_eq!(asked_for_a_state(&one), [(peer(2), Round(5))]);
}

#[test]
fn a_member_that_began_its_round_alone_goes_back() {
    let mut one = restarted(9, 9);
    for id in 1..4 {
        rests(&mut one, id, base(7));
        answers(&mut one, id, 8);
    }
    let asked = asked_for_a_state(&one);
    assert!(
        !asked.is_empty() && asked.iter().all(|(_, least)| *least <= Round(7)),
        "{asked:?}"
    );
    let fetched: Vec<bool> = (1..4).map(|id| offered(&mut one, id, base(7))).collect();
    assert_eq!(fetched.last(), Some(&true), "a state of an earlier round");
    assert_eq!(trains(&one), None);
}

#[test]
fn what_a_member_began_is_remembered_in_its_next_life() {
    let mut one = restarted(9, 12);
    rests(&mut one, 1, base(12));
    for (round, known) in [(9, true), (12, true), (13, false)] {
        one.outputs.clear();
        let anchor = known.then(|| of_round(round));
        let round = Round(round);
        one.hear(peer(1), TransferMessage::AnchorAsk { round });
        let answer = Message::Transfer(TransferMessage::Anchor { round, anchor });
        assert!(one.said().any(|(_, said)| *said == answer), "{round}");
    }
}
