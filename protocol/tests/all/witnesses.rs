//! What one peer says does not move another to a state or a decision where members may lie: a state needs
//! others that vouch for it, a decision its proof.

use crate::common::one::{One, honest, trains};
use crate::common::{config, peer, plan};
use murmurate_protocol::wire::{
    FormingMessage, FragmentMessage, Member, Message, Offer, Scoped, Seated, ShardVersion,
    SignedGroup, SignedMessage, TransferMessage, value_of,
};
use murmurate_protocol::{
    Attempt, Digest, ExchangeKind, FetchId, FragmentId, GroupTag, Input, Members, PeerId, Round,
    Signature, StateId,
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
    one.told(|said| matches!(said, Message::Transfer(message) if wanted(message)))
}

fn for_a_state(one: &One) -> Vec<PeerId> {
    asked(one, |m| matches!(m, TransferMessage::StateAsk { .. }))
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
    assert_eq!(
        one.asked_for_history(),
        [peer(2)],
        "a decision carries its proof"
    );
}

/// A newcomer that joins peers which are in round 5.
fn newcomer(liars: u16) -> One {
    let mut one = among_four(liars, true);
    for id in 1..4 {
        one.meet_as(peer(id), |hello| {
            (hello.round, hello.anchor) = (Round(5), Digest::of(b"theirs"));
        });
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

/// An offer of a state that begins with these parameters.
fn offer(anchor: &[u8]) -> TransferMessage {
    TransferMessage::StateOffer(Offer {
        state: state(anchor),
        anchor: Digest::of(anchor),
    })
}

fn anchor(of: &[u8]) -> TransferMessage {
    TransferMessage::Anchor {
        round: Round(5),
        anchor: Some(Digest::of(of)),
    }
}

/// A newcomer that peer 1 offered a state; whom else it asked has refused.
fn offered(liars: u16, state: &[u8]) -> One {
    let mut one = newcomer(liars);
    let donors = for_a_state(&one);
    one.outputs.clear();
    for donor in donors.into_iter().filter(|donor| *donor != peer(1)) {
        one.hear(donor, TransferMessage::StateRefuse);
    }
    one.hear(peer(1), offer(state));
    one
}

#[test]
fn a_state_is_fetched_once_more_members_than_may_lie_vouch_for_it() {
    let trusting = offered(0, b"forged");
    let forged = FetchId::State(state(b"forged"));
    assert_eq!(trusting.fetches(), [(forged, vec![peer(1)])]);

    let mut one = offered(1, b"true");
    let asks = |m: &TransferMessage| matches!(m, TransferMessage::AnchorAsk { round: Round(5) });
    assert_eq!(asked(&one, asks).len(), 3);
    one.hear(peer(1), anchor(b"true"));
    one.hear(peer(1), anchor(b"true"));
    assert!(one.fetches().is_empty(), "one may lie");
    one.hear(peer(2), anchor(b"true"));
    let taken = FetchId::State(state(b"true"));
    assert_eq!(one.fetches(), [(taken, vec![peer(1)])]);
}

#[test]
fn a_state_that_others_deny_is_not_fetched() {
    let mut one = offered(1, b"forged");
    one.hear(peer(1), anchor(b"forged"));
    one.hear(peer(2), anchor(b"true"));
    one.hear(peer(3), anchor(b"true"));
    assert!(one.fetches().is_empty());
    one.outputs.clear();
    one.pass(30);
    assert!(!for_a_state(&one).is_empty(), "it asks again");
}

#[test]
fn bytes_that_are_not_what_others_vouched_for_are_not_trained_on() {
    let mut one = offered(1, b"true");
    for id in [2, 3] {
        one.hear(peer(id), anchor(b"true"));
    }
    one.outputs.clear();
    one.fetched(state(b"true"));
    one.loads(Digest::of(b"other parameters"));
    assert_eq!(trains(&one), None, "{:?}", one.outputs);
    one.pass(30);
    assert!(!for_a_state(&one).is_empty());
}

/// A decision of a group of all but this peer, signed by this number of them.
fn proven(one: &One, signers: u8, locked: bool) -> Scoped {
    let run = one.peer.plan().run;
    let seated = |id| Seated {
        peer: peer(id),
        weight: 1.0,
        life: 7,
    };
    let group = SignedGroup {
        seats: 4,
        anchor: one.peer.digest(),
        members: (1..4).map(seated).collect(),
    };
    let FragmentMessage::Decided { versions, .. } = decided(b"true").body else {
        unreachable!()
    };
    let digest = group.digest(&run, Round(0));
    let signatures = (1..=signers).map(|id| (peer(id), Signature::BLANK));
    Scoped {
        round: Round(0),
        fragment: FragmentId(0),
        group: GroupTag::of_digest(&digest),
        body: FragmentMessage::Signed(SignedMessage::Decided {
            ballot: 0,
            value: value_of(&digest, &versions),
            group,
            versions,
            locked,
            signatures: signatures.collect(),
        }),
    }
}

fn decided(bytes: &[u8]) -> Scoped {
    let member = |id| Member::new(peer(id), 1.0);
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
fn a_decision_is_replayed_from_one_member_with_its_proof_and_never_without() {
    let mut trusting = straggler(0);
    assert_eq!(trusting.asked_for_history(), [peer(1)]);
    trusting.hear(peer(1), decided(b"forged"));
    assert_eq!(trusting.fetches().len(), 3, "one is believed");

    let donor = straggler(1).asked_for_history()[0];
    let mut one = straggler(1);
    one.hear(donor, decided(b"forged"));
    assert!(one.fetches().is_empty(), "no proof");
    for (signers, locked) in [(1, true), (2, true), (2, false)] {
        let mut one = straggler(1);
        let few = proven(&one, signers, locked);
        one.hear(donor, few);
        assert!(one.fetches().is_empty(), "{signers} of 4");
    }
    let mut one = straggler(1);
    let proven = proven(&one, 3, true);
    one.hear(donor, proven);
    assert_eq!(one.fetches().len(), 3);
}

#[test]
fn a_donor_whose_bytes_are_wrong_is_not_asked_again_at_once() {
    let mut one = straggler(0);
    one.hear(peer(1), decided(b"true"));
    let slices = one.fetches();
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
