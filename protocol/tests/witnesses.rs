//! What one peer says does not move another to a state or a decision where members may lie.

#![allow(
    unreachable_pub,
    dead_code,
    clippy::disallowed_methods,
    clippy::type_complexity,
    reason = "tests read settings of their own, and use parts of what is common"
)]

mod common;

use common::one::{One, honest};
use common::{config, peer, plan};
use murmurate_protocol::wire::{
    FormingMessage, FragmentMessage, Hello, Member, MembershipMessage, Message, Scoped,
    ShardVersion, TransferMessage,
};
use murmurate_protocol::{
    Attempt, Digest, ExchangeKind, FetchId, FragmentId, GroupTag, Input, Members, Output, PeerId,
    Round, StateId,
};

/// A peer among three others, one of which may lie.
fn among_four(liars: u16, join: bool) -> One {
    let mut plan = plan(ExchangeKind::AllReduce, 1);
    plan.agreement.liars = liars;
    let mut settings = config(peer(0));
    settings.start_with = if join { 1 } else { 4 };
    settings.join = join;
    One::with(settings, plan)
}

/// The same, while it trains its first round with the others.
fn training(liars: u16) -> One {
    let mut one = among_four(liars, false);
    (1..4).for_each(|id| one.meet(peer(id)));
    one.work(honest);
    one.outputs.clear();
    one
}

fn asked(one: &One, wanted: impl Fn(&TransferMessage) -> bool) -> Vec<PeerId> {
    let to = |o: &Output| match o {
        Output::Send {
            to,
            message: Message::Transfer(message),
        } if wanted(message) => Some(*to),
        _ => None,
    };
    one.outputs.iter().filter_map(to).collect()
}

fn for_a_state(one: &One) -> Vec<PeerId> {
    asked(one, |m| matches!(m, TransferMessage::StateAsk { .. }))
}

fn for_history(one: &One) -> Vec<PeerId> {
    asked(one, |m| matches!(m, TransferMessage::HistoryAsk { .. }))
}

fn fetched(one: &One) -> Vec<(FetchId, Vec<PeerId>)> {
    let fetch = |o: &Output| match o {
        Output::Fetch { what, from, .. } => Some((*what, from.clone())),
        _ => None,
    };
    one.outputs.iter().filter_map(fetch).collect()
}

fn behind(resync: bool) -> FormingMessage {
    let round = Round(1);
    FormingMessage::Behind { round, resync }
}

#[test]
fn one_member_cannot_tell_another_that_its_state_is_wrong() {
    for (liars, first) in [(0, true), (1, false)] {
        let mut one = training(liars);
        one.hear(peer(1), behind(true));
        one.hear(peer(1), behind(true));
        assert_eq!(!for_a_state(&one).is_empty(), first, "{liars} liars");
        one.hear(peer(2), behind(true));
        assert!(!for_a_state(&one).is_empty(), "two cannot both lie");
    }
}

#[test]
fn one_that_lies_cannot_make_a_straggler_take_over_a_state() {
    let mut one = training(1);
    one.hear(peer(1), behind(true));
    one.hear(peer(2), behind(false));
    assert!(
        for_a_state(&one).is_empty(),
        "it replays, and keeps its state"
    );
    assert!(for_history(&one).len() >= 2);
}

/// A newcomer that joins peers which are in round 5.
fn newcomer(liars: u16) -> One {
    let mut one = among_four(liars, true);
    for id in 1..4 {
        let hello = Hello {
            round: Round(5),
            anchor: Digest::of(b"theirs"),
            ..one.hello()
        };
        one.feed(Input::LinkUp(peer(id)));
        one.hear(peer(id), MembershipMessage::Hello(hello));
        // With the first of them it cannot know what the others will say.
        let waits = liars > 0 && id == 1;
        assert_eq!(for_a_state(&one).is_empty(), waits);
    }
    one
}

fn state(root: &[u8]) -> StateId {
    StateId {
        round: Round(5),
        root: Digest::of(root),
        bytes: 100,
    }
}

#[test]
fn a_state_is_taken_only_if_more_donors_than_may_lie_pinned_it() {
    let mut one = newcomer(1);
    assert!(for_a_state(&one).len() >= 2);
    one.outputs.clear();
    // All three are asked again once they are known.
    one.pass(9);
    assert_eq!(for_a_state(&one).len(), 3);
    one.hear(peer(3), TransferMessage::StateOffer(state(b"forged")));
    one.hear(peer(1), TransferMessage::StateOffer(state(b"true")));
    assert!(fetched(&one).is_empty());
    one.hear(peer(2), TransferMessage::StateOffer(state(b"true")));
    let taken = FetchId::State(state(b"true"));
    assert_eq!(fetched(&one), [(taken, vec![peer(1), peer(2)])]);
}

#[test]
fn states_of_different_donors_are_refused_and_asked_for_again() {
    let mut one = newcomer(1);
    one.pass(9);
    one.outputs.clear();
    for (id, root) in [(1, b"a"), (2, b"b"), (3, b"c")] {
        one.hear(peer(id), TransferMessage::StateOffer(state(root)));
    }
    assert!(fetched(&one).is_empty());
    assert!(for_a_state(&one).is_empty(), "not without a pause");
    one.pass(3);
    let next = |m: &TransferMessage| matches!(m, TransferMessage::StateAsk { at_least: Round(6) });
    assert_eq!(
        asked(&one, next).len(),
        3,
        "the next round, in which all pin"
    );
}

fn decided(bytes: &[u8]) -> Scoped {
    let member = |id| Member {
        peer: peer(id),
        weight: 1.0,
    };
    let version = |id| ShardVersion {
        owner: peer(id),
        attempt: Attempt(0),
        contributors: Members::from_bits(0b111),
        digest: Digest::of(bytes),
    };
    Scoped {
        round: Round(0),
        fragment: FragmentId(0),
        group: GroupTag::of(Round(0), &[peer(1), peer(2), peer(3)]),
        body: FragmentMessage::Decided {
            ballot: 0,
            members: (1..4).map(member).collect(),
            versions: (1..4).map(version).collect(),
        },
    }
}

/// A straggler that has asked for the decisions of the round that it missed.
fn straggler(liars: u16) -> One {
    let mut one = training(liars);
    for id in 1..=(liars as u8 + 1) {
        one.hear(peer(id), behind(false));
    }
    one
}

#[test]
fn a_decision_is_replayed_only_if_more_members_than_may_lie_name_it() {
    let mut trusting = straggler(0);
    assert_eq!(for_history(&trusting), [peer(1)]);
    trusting.hear(peer(1), decided(b"forged"));
    assert_eq!(fetched(&trusting).len(), 3, "one is believed");

    let mut one = straggler(1);
    for id in [1, 2, 3] {
        one.hear(
            peer(id),
            MembershipMessage::Hello(Hello {
                round: Round(1),
                ..one.hello()
            }),
        );
    }
    one.hear(peer(1), decided(b"forged"));
    assert!(fetched(&one).is_empty());
    one.hear(peer(2), decided(b"true"));
    assert!(fetched(&one).is_empty(), "two that differ say nothing");
}

#[test]
fn a_donor_whose_bytes_are_wrong_is_not_asked_again_at_once() {
    let mut one = straggler(0);
    one.hear(peer(1), decided(b"true"));
    let slices = fetched(&one);
    one.outputs.clear();
    one.feed(Input::Fetched {
        what: slices[0].0,
        meta: None,
        digest: Some(Digest::of(b"other bytes")),
    });
    let others = for_a_state(&one);
    assert!(
        !others.is_empty() && !others.contains(&peer(1)),
        "{others:?}"
    );
    // The others have no state either: now all have failed once.
    for id in others {
        one.hear(id, TransferMessage::StateRefuse);
    }
    one.outputs.clear();
    one.feed(Input::Timeout);
    assert!(for_a_state(&one).is_empty(), "a pause first");
    one.pass(3);
    assert!(!for_a_state(&one).is_empty());
}
