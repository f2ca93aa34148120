//! Votes name a digest: a member that cannot tell which versions it stands for finds out.

#![allow(
    unreachable_pub,
    dead_code,
    clippy::disallowed_methods,
    clippy::type_complexity,
    reason = "tests read settings of their own"
)]

mod common;

use common::club::Club;
use common::peer;
use core::time::Duration;
use murmurate_protocol::wire::{FragmentMessage, Member, Scoped, ShardVersion};
use murmurate_protocol::{
    Attempt, Digest, Event, FragmentId, GroupTag, Input, Members, Part, PeerId, PushOutcome, Round,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

const OWNER: u8 = 2;
const WITHOUT: u8 = 5;

/// How often each message was sent from now on, by its name and sender.
type Said = Rc<RefCell<BTreeMap<(&'static str, PeerId), u64>>>;

/// Five members in round 1. The one without does not get the owner's shard.
fn club() -> (Club, Said) {
    let mut club = Club::new(5);
    club.run_to(1);
    club.fate = Box::new(|from, to, slice| {
        let aggregate = from == peer(OWNER) && slice.part == Part::Aggregate;
        let lost = aggregate && to == peer(WITHOUT) && slice.round == Round(1);
        (!lost).then_some(PushOutcome::Delivered)
    });
    let said = Said::default();
    let counts = Rc::clone(&said);
    club.hears = Box::new(move |from, _, message| {
        let count = (message.name(), from);
        *counts.borrow_mut().entry(count).or_default() += 1;
        true
    });
    (club, said)
}

fn count(said: &Said, name: &'static str) -> u64 {
    let said = said.borrow();
    let of_name = said.iter().filter(|((other, _), _)| *other == name);
    of_name.map(|(_, count)| count).sum()
}

/// Runs until all other members have decided round 1, and nothing is on its way any more.
fn others_decide(club: &mut Club) {
    let decides = |e: &Event| matches!(e, Event::Decided { round, .. } if round.0 == 1);
    club.run_until(60, |club| {
        let others = club.members.iter().filter(|(id, _)| **id != peer(WITHOUT));
        others
            .map(|(_, member)| &member.events)
            .all(|events| events.iter().any(decides))
    });
    assert_eq!(club.decided(1).len(), 4, "one lacks a shard");
}

#[test]
fn a_member_that_lacks_one_shard_asks_at_its_deadline_and_ends_the_round() {
    let (mut club, said) = club();
    others_decide(&mut club);
    assert_eq!(count(&said, "query"), 0, "the owner may still push it");
    club.run_to(2);
    let asked = said.borrow().get(&("query", peer(WITHOUT))).copied();
    assert_eq!(asked, Some(1));
    assert_eq!(count(&said, "prepare"), 0, "no ballot was needed");
    let decided = club.decided(1);
    assert_eq!(decided.len(), 5);
    assert!(decided.iter().all(|d| *d == decided[0] && d.0 == 0));
}

#[test]
fn a_member_asks_at_once_where_the_owner_of_what_it_lacks_is_gone() {
    let (mut club, said) = club();
    others_decide(&mut club);
    let before = club.now;
    club.kill(peer(OWNER));
    club.run_until(60, |club| club.decided(1).len() == 4);
    assert_eq!(club.now, before, "it waited for no deadline");
    assert_eq!(count(&said, "query"), 1);
    club.run_to(3);
    let decided = club.decided(1);
    assert_eq!(decided.len(), 4);
    assert!(decided.iter().all(|d| *d == decided[0] && d.0 == 0));
}

#[test]
fn a_member_whose_question_is_lost_asks_another_voter() {
    let (mut club, said) = club();
    // The others go on meanwhile, and their rounds must take time.
    club.training = Duration::from_millis(100);
    let (counts, mut first) = (Rc::clone(&said), None);
    club.hears = Box::new(move |from, to, message| {
        let count = (message.name(), from);
        *counts.borrow_mut().entry(count).or_default() += 1;
        message.name() != "query" || *first.get_or_insert(to) != to
    });
    club.run_to(2);
    assert_eq!(count(&said, "query"), 2);
    let decided = club.decided(1);
    assert_eq!(decided.len(), 5);
    assert!(decided.iter().all(|d| *d == decided[0] && d.0 == 0));
}

/// A member believes a `Decided` of another one, but never against a majority that it has counted.
#[test]
fn nothing_but_the_majority_s_digest_is_decided() {
    let (mut club, said) = club();
    others_decide(&mut club);
    let ids: Vec<PeerId> = club.members.keys().copied().collect();
    let version = |owner: &PeerId| ShardVersion {
        owner: *owner,
        attempt: Attempt::FIRST,
        contributors: Members::one(0),
        digest: Digest::of(b"made up"),
    };
    let member = |peer: &PeerId| Member {
        peer: *peer,
        weight: 1.0,
    };
    let lie = Scoped {
        round: Round(1),
        fragment: FragmentId(0),
        group: GroupTag::of(Round(1), &ids),
        body: FragmentMessage::Decided {
            ballot: 0,
            members: ids.iter().map(member).collect(),
            versions: ids.iter().map(version).collect(),
        },
    };
    let lie = Input::Received {
        from: peer(3),
        message: lie.into(),
    };
    club.tell(peer(WITHOUT), lie);
    club.run_to(2);
    assert_eq!(count(&said, "query"), 1, "it still had to ask");
    let decided = club.decided(1);
    assert_eq!(decided.len(), 5);
    assert!(decided.iter().all(|d| *d == decided[0]), "{decided:?}");
}
