//! Peers that only observe: they follow, and no one waits for them or believes what they say.

use crate::common::club::Club;
use crate::common::one::{One, honest};
use crate::common::{alive, peer, plan, ready};
use core::time::Duration;
use murmurate_protocol::wire::{FormingMessage, Member, MembershipMessage, Muster, Proposed};
use murmurate_protocol::{Digest, Event, ExchangeKind, Input, Phase, Round};

fn club(rounds: u64) -> Club {
    let mut plan = plan(ExchangeKind::AllReduce, 1);
    plan.rounds = rounds;
    let mut club = Club::observed((3, 1), &plan, |_| Digest::of(b"anchor"));
    // Time passes, so that signs of life are sent: three members take 0.3 s a round.
    club.training = Duration::from_millis(100);
    club
}

fn round(club: &Club, id: u8) -> u64 {
    club.members[&peer(id)].peer.round().0
}

/// The groups that a member was in, and how often it trained.
fn done(club: &Club, id: u8) -> (Vec<usize>, usize) {
    let events = &club.members[&peer(id)].events;
    let groups = events.iter().filter_map(|event| match event {
        Event::Group { members, .. } => Some(members.len()),
        _ => None,
    });
    let trained = |event: &&Event| matches!(event, Event::Trained { .. });
    (groups.collect(), events.iter().filter(trained).count())
}

#[test]
fn an_observer_follows_and_takes_part_in_no_round() {
    let mut club = club(0);
    club.run_until(600, |club| round(club, 4) >= 20);
    let (observer, first) = (&club.members[&peer(4)], round(&club, 1));
    assert!((20..40).contains(&first), "{first}: it is not far behind");
    assert!(!observer.peer.ready());
    assert_eq!(done(&club, 4), (Vec::new(), 0), "it is in no group");
    let (groups, trained) = done(&club, 1);
    assert!(groups.iter().all(|members| *members == 3), "{groups:?}");
    assert!(trained >= 20);
    assert!(club.members.values().all(|member| member.broken.is_empty()));
    // No round waited for it: all time was spent on training.
    let trained = Duration::from_millis(300) * (1 + first as u32);
    let now = Duration::from_nanos(club.now.as_nanos());
    assert!(
        now < trained + Duration::from_secs(1),
        "{now:?} for {first} rounds"
    );
}

#[test]
fn an_observer_ends_with_the_bits_of_the_others() {
    let mut club = club(5);
    club.run_until(600, Club::has_finished);
    assert!(club.has_finished());
    club.anchor();
    // It has evaluated and saved that state.
    let events = &club.members[&peer(4)].events;
    let saved = |event: &Event| matches!(event, Event::Saved { round } if round.0 == 5);
    let evaluated = |event: &Event| matches!(event, Event::Evaluated { round, .. } if round.0 == 5);
    assert!(events.iter().any(saved) && events.iter().any(evaluated));
}

#[test]
fn an_observer_that_comes_back_after_many_rounds_takes_over_a_state() {
    let mut club = club(0);
    // Nothing reaches it at first.
    club.hears = Box::new(|from, to, _| from != peer(4) && to != peer(4));
    club.run_until(600, |club| round(club, 1) >= 50);
    assert_eq!(round(&club, 4), 0);
    club.hears = Box::new(|_, _, _| true);
    club.run_until(600, |club| round(club, 4) >= 60);
    assert!(round(&club, 4) >= 60);
    assert_eq!(done(&club, 4), (Vec::new(), 0));
}

/// Peer 0 has met peers 1 and 2 and one that only observes, whatever that one says.
fn met_an_observer() -> One {
    let mut one = One::new(ExchangeKind::AllReduce);
    one.feed(Input::LinkUp(peer(3)));
    one.feed(Input::Observes(peer(3)));
    let hello = MembershipMessage::Hello(one.hello());
    one.hear(peer(3), hello);
    assert_eq!(one.peer.phase(), Phase::Join, "it begins with no observer");
    (1..=2).for_each(|id| one.meet(peer(id)));
    let alive = alive(Round(9), Digest::of(b"another"), Muster::Begun);
    one.hear(peer(3), alive);
    one.work(honest);
    one
}

#[test]
fn what_an_observer_says_about_rounds_is_a_broken_rule() {
    let mut one = met_an_observer();
    assert!(one.peer.view().live().all(|(id, _)| id != peer(3)));
    assert!(one.peer.view().audience().any(|(id, _)| id == peer(3)));

    let members = [0, 3].map(|id| Member::new(peer(id), 8.0));
    one.outputs.clear();
    let propose = FormingMessage::Propose(Proposed {
        round: Round(0),
        term: 0,
        members: members.to_vec(),
    });
    one.hear(peer(3), propose);
    one.hear(peer(3), ready(Round(0), 8.0, one.peer.digest(), true));
    assert_eq!(one.misbehaved(), 2);
    let told = one.told(|message| message.round().is_some());
    assert!(!told.contains(&peer(3)), "{told:?}");
    // On its next link it may have another certificate.
    one.feed(Input::LinkDown(peer(3)));
    one.meet(peer(3));
    assert!(one.peer.view().live().any(|(id, _)| id == peer(3)));
}
