//! Votes on many shards are for a digest: a member that cannot tell which versions it stands for finds out.

use crate::common::club::Club;
use crate::common::peer;
use core::time::Duration;
use murmurate_protocol::limits::VOTE_NAMES_MAX;
use murmurate_protocol::wire::{Ballot, FragmentMessage, Scoped, ShardVersion};
use murmurate_protocol::{
    Attempt, Digest, Event, FragmentId, GroupTag, Input, Members, Part, PeerId, PushOutcome, Round,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// One shard for each member, and one more than a vote names.
const MEMBERS: u8 = VOTE_NAMES_MAX as u8 + 1;
const OWNER: u8 = 2;
const WITHOUT: u8 = 5;

/// How often each message was sent from now on, by its name and sender.
type Said = Rc<RefCell<BTreeMap<(&'static str, PeerId), u64>>>;

/// Members in round 1. The one without does not get the owner's shard.
fn club() -> (Club, Said) {
    let mut club = Club::new(MEMBERS);
    club.run_to(1);
    club.fate = Box::new(|from, to, slice| {
        let aggregate = from == peer(OWNER) && slice.part == Part::Aggregate;
        let lost = aggregate && to == peer(WITHOUT) && slice.round == Round(1);
        (!lost).then_some(PushOutcome::Delivered)
    });
    let said = Said::default();
    count_all(&mut club, &said, |_, _| true);
    (club, said)
}

/// Counts every message, and delivers those that `arrives` lets through.
fn count_all(
    club: &mut Club,
    said: &Said,
    mut arrives: impl FnMut(PeerId, &'static str) -> bool + 'static,
) {
    let counts = Rc::clone(said);
    club.hears = Box::new(move |from, to, message| {
        let count = (message.name(), from);
        *counts.borrow_mut().entry(count).or_default() += 1;
        arrives(to, message.name())
    });
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
    assert_eq!(
        club.decided(1).len(),
        usize::from(MEMBERS) - 1,
        "one lacks a shard"
    );
}

fn all_decided_alike(club: &Club, members: usize) {
    let decided = club.decided(1);
    assert_eq!(decided.len(), members);
    assert!(decided.iter().all(|d| *d == decided[0] && d.0 == 0));
}

#[test]
fn a_member_that_lacks_a_shard_asks_once_what_the_majority_voted_for() {
    let (mut club, said) = club();
    others_decide(&mut club);
    assert_eq!(said.borrow().get(&("query", peer(WITHOUT))), Some(&1));
    assert!(count(&said, "vote-for") >= u64::from(MEMBERS - 1).pow(2));
    club.run_to(2);
    // A voter that has gone on to the next round answers with what was decided.
    let answers = count(&said, "vote") + count(&said, "decided");
    assert_eq!(answers, count(&said, "query"), "one answer each");
    assert_eq!(count(&said, "prepare"), 0, "no ballot was needed");
    all_decided_alike(&club, usize::from(MEMBERS));
}

#[test]
fn a_member_that_lacks_a_dead_owner_s_shard_waits_for_no_deadline() {
    let (mut club, _) = club();
    others_decide(&mut club);
    let before = club.now;
    club.kill(peer(OWNER));
    let others = usize::from(MEMBERS) - 1;
    club.run_until(60, |club| club.decided(1).len() == others);
    assert_eq!(club.now, before);
    club.run_to(3);
    all_decided_alike(&club, others);
}

/// It is like a member that heard no votes: at its deadline it promises, and hears what was decided.
#[test]
fn a_member_whose_questions_are_lost_ends_the_round_all_the_same() {
    let (mut club, said) = club();
    // The others go on meanwhile, and their rounds must take time.
    club.training = Duration::from_millis(100);
    count_all(&mut club, &said, |_, name| name != "query");
    club.run_to(2);
    assert!(count(&said, "query") > 0);
    all_decided_alike(&club, usize::from(MEMBERS));
}

/// A member believes an answer only if it is what the majority's digest stands for.
#[test]
fn nothing_but_the_majority_s_digest_is_decided() {
    let (mut club, said) = club();
    let silent = Rc::new(Cell::new(true));
    let flag = Rc::clone(&silent);
    count_all(&mut club, &said, move |to, name| {
        !(flag.get() && to == peer(WITHOUT) && matches!(name, "vote" | "decided"))
    });
    others_decide(&mut club);
    let ids: Vec<PeerId> = club.members.keys().copied().collect();
    let version = |owner: &PeerId| ShardVersion {
        owner: *owner,
        attempt: Attempt::FIRST,
        contributors: Members::one(0),
        digest: Digest::of(b"made up"),
    };
    let lie = Scoped {
        round: Round(1),
        fragment: FragmentId(0),
        group: GroupTag::of(Round(1), &ids),
        body: FragmentMessage::Vote {
            ballot: Ballot {
                number: 0,
                coordinator: ids[0],
            },
            versions: ids.iter().map(version).collect(),
        },
    };
    let lie = Input::Received {
        from: peer(3),
        message: lie.into(),
    };
    club.tell(peer(WITHOUT), lie);
    silent.set(false);
    assert_eq!(club.decided(1).len(), usize::from(MEMBERS) - 1);
    club.run_to(2);
    all_decided_alike(&club, usize::from(MEMBERS));
}
