//! A straggler that replays a round: who owes it slices for too long holds it no longer than it must.

use crate::common::one::{One, asked_for_a_state, honest};
use crate::common::{alive, config, peer, plan};
use murmurate_protocol::wire::{
    FormingMessage, FragmentMessage, Member, Muster, Scoped, ShardVersion,
};
use murmurate_protocol::{
    Attempt, Digest, ExchangeKind, FetchId, FragmentId, GroupTag, Input, Members, Order, PeerId,
    Round, SliceId,
};

/// Peer 0 trains round 0. Of its three mates these have ended it and are in round 1; the first of them tells
/// it so, and what was decided.
fn replaying(ahead: &[u8]) -> One {
    let mut settings = config(peer(0));
    settings.start_with = 4;
    let mut one = One::with(settings, plan(ExchangeKind::AllReduce, 1));
    (1..4).for_each(|id| one.meet(peer(id)));
    one.work(honest);
    for id in ahead {
        is_ahead(&mut one, *id);
    }
    let donor = peer(ahead[0]);
    let (round, resync) = (Round(1), false);
    one.hear(donor, FormingMessage::Behind { round, resync });
    assert_eq!(one.asked_for_history(), [donor]);
    one.outputs.clear();
    let members = (1..3).map(|id| Member::new(peer(id), 8.0));
    let versions = (0..2u8).map(|shard| ShardVersion {
        owner: peer(shard + 1),
        attempt: Attempt::FIRST,
        contributors: Members::from_bits(3),
        digest: bytes(shard),
    });
    let decided = Scoped {
        round: Round(0),
        fragment: FragmentId(0),
        group: GroupTag::from_bits(6),
        body: FragmentMessage::Decided {
            ballot: 0,
            members: members.collect(),
            versions: versions.collect(),
        },
    };
    one.hear(donor, decided);
    one
}

fn is_ahead(one: &mut One, id: u8) {
    let alive = alive(Round(1), Digest::of(b"of round 1"), Muster::Begun);
    one.hear(peer(id), alive);
}

fn bytes(shard: u8) -> Digest {
    Digest::of(&[shard])
}

/// The slices that are fetched, each with its donors. Forgets all outputs so far.
fn fetched(one: &mut One) -> Vec<(SliceId, Vec<PeerId>)> {
    let fetches = one.fetches().into_iter();
    one.outputs.clear();
    let slice = |(what, from)| match what {
        FetchId::Slice(slice) => Some((slice, from)),
        FetchId::State(_) => None,
    };
    fetches.filter_map(slice).collect()
}

fn comes(one: &mut One, slice: SliceId) {
    one.feed(Input::Fetched {
        what: FetchId::Slice(slice),
        meta: None,
        digest: Some(bytes(slice.shard as u8)),
    });
}

#[test]
fn what_a_slow_donor_owes_is_asked_of_another_after_its_usual_time() {
    let mut one = replaying(&[1, 2, 3]);
    let first = fetched(&mut one);
    let donors: Vec<&Vec<PeerId>> = first.iter().map(|(_, from)| from).collect();
    assert_eq!(donors, [&[1, 2, 3].map(peer).to_vec(); 2]);
    // One slice has come, and the other is on its way for as long as its donor may take.
    comes(&mut one, first[0].0);
    one.outputs.clear();
    let initial = one.peer.plan().deadlines.initial.as_secs();
    one.pass(initial);
    let again = fetched(&mut one);
    assert_eq!(again, [(first[1].0, [2, 3].map(peer).to_vec())]);
    // The second one does what the first did not.
    comes(&mut one, first[1].0);
    let applies = |order: &Order| matches!(order, Order::Apply { round, .. } if round.0 == 0);
    assert!(one.orders().any(applies), "{:?}", one.outputs);
    one.outputs.clear();
    one.pass(initial);
    assert!(fetched(&mut one).is_empty(), "nothing is owed any more");
}

#[test]
fn the_last_donor_has_as_long_as_a_transfer_may_take() {
    let mut one = replaying(&[1]);
    let first = fetched(&mut one);
    assert_eq!(first.len(), 2);
    let ceiling = one.peer.plan().deadlines.ceiling.as_secs();
    for _ in 1..ceiling {
        one.pass(1);
        assert!(fetched(&mut one).is_empty(), "no other has the round");
    }
    one.pass(1);
    assert!(!asked_for_a_state(&one).is_empty(), "{:?}", one.outputs);
}

/// The others end the round a moment after the donor did, which owes what it said.
#[test]
fn one_that_gets_ahead_later_is_asked_for_what_the_first_donor_owes() {
    let mut one = replaying(&[1]);
    let first = fetched(&mut one);
    let initial = one.peer.plan().deadlines.initial.as_secs();
    one.pass(initial);
    assert!(fetched(&mut one).is_empty(), "no other has the round");
    is_ahead(&mut one, 2);
    one.pass(initial);
    let again: Vec<SliceId> = fetched(&mut one).into_iter().map(|(s, _)| s).collect();
    assert_eq!(again, first.iter().map(|(s, _)| *s).collect::<Vec<_>>());
}
