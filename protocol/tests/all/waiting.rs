//! What a peer says that it waits for: the peers that are missing, and until when.

use crate::common::club::Club;
use crate::common::one::One;
use crate::common::{peer, plan};
use core::time::Duration;
use murmurate_protocol::{Digest, ExchangeKind, Input, PeerId, Phase, Wait, Waiting};

fn club(kind: ExchangeKind) -> Club {
    let mut plan = plan(kind, 1);
    plan.rounds = 0;
    let mut club = Club::of(3, &plan, |_| Digest::of(b"anchor"));
    club.training = Duration::from_millis(100);
    club
}

/// What the first peer waits for once nothing more is heard of the third in round 5 or later.
fn first_of_three(kind: ExchangeKind, silent: Phase) -> Vec<Waiting> {
    let mut club = club(kind);
    club.run_until(600, |club| {
        let third = &club.members[&peer(3)].peer;
        third.round().0 >= 5 && third.phase() == silent
    });
    club.hears = Box::new(|from, _, _| from != peer(3));
    let named = |club: &Club| {
        let waits = club.members[&peer(1)].peer.waiting();
        waits.iter().any(|w| w.peers == [peer(3)])
    };
    club.run_until(600, named);
    club.members[&peer(1)].peer.waiting()
}

fn is_for_the_third(waits: &[Waiting], kinds: &[Wait]) {
    let found = waits.iter().find(|w| w.peers == [peer(3)]);
    let wait = found.unwrap_or_else(|| panic!("no wait is for the third: {waits:?}"));
    assert!(kinds.contains(&wait.wait), "{wait:?}");
    assert!(wait.deadline > wait.since, "{wait:?}");
}

#[test]
fn an_all_reduce_names_who_has_not_trained() {
    let waits = first_of_three(ExchangeKind::AllReduce, Phase::Train);
    is_for_the_third(&waits, &[Wait::Group]);
}

#[test]
fn an_all_reduce_names_whose_part_of_the_exchange_is_missing() {
    let waits = first_of_three(ExchangeKind::AllReduce, Phase::Exchange);
    let kinds = [Wait::Group, Wait::Contributions, Wait::Agreement];
    is_for_the_third(&waits, &kinds);
}

#[test]
fn a_peer_that_is_alone_waits_for_no_one_in_particular() {
    let one = One::new(ExchangeKind::AllReduce);
    assert_eq!(one.peer.phase(), Phase::Join);
    let waits = one.peer.waiting();
    let kinds: Vec<Wait> = waits.iter().map(|w| w.wait).collect();
    assert_eq!(kinds, [Wait::Peers]);
    assert_eq!(waits[0].peers, Vec::<PeerId>::new());
}

#[test]
fn asking_changes_nothing_and_repeats() {
    let mut one = One::new(ExchangeKind::AllReduce);
    one.meet(peer(1));
    one.feed(Input::Timeout);
    let before = (one.peer.poll_timeout(), one.peer.phase());
    assert_eq!(one.peer.waiting(), one.peer.waiting());
    assert_eq!(before, (one.peer.poll_timeout(), one.peer.phase()));
}

#[test]
fn gathered_contributions_name_who_has_not_sent_one() {
    let waits = first_of_three(ExchangeKind::Gathered, Phase::Exchange);
    let kinds = [Wait::Group, Wait::Contributions, Wait::Agreement];
    is_for_the_third(&waits, &kinds);
}
