//! Gathered contributions and parameter servers in step, member by member: what is decided when
//! a member dies at the worst moment, and how many messages it takes.

use crate::common::club::Club;
use crate::common::{peer, peers};
use core::time::Duration;
use murmurate_protocol::limits::SCORE_MAX;
use murmurate_protocol::limits::VOTE_NAMES_MAX;
use murmurate_protocol::{
    Digest, ExchangeKind, Locality, Part, PushOutcome, RateClass, Round, ServerPlan, SliceId,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

fn server(owners: u16) -> ExchangeKind {
    ExchangeKind::Server(ServerPlan { owners })
}

fn club(exchange: ExchangeKind, count: u8) -> Club {
    Club::exchanging(exchange, count, |_| Digest::of(b"anchor"))
}

#[test]
fn every_member_combines_all_contributions() {
    let mut club = club(ExchangeKind::Gathered, 4);
    club.run_to(5);

    for round in 0..5 {
        let decided = club.decided(round);
        assert_eq!(decided, vec![(0, vec![peers(1..=4)]); 4], "round {round}");
    }
    club.anchor();
    club.assert_rules();
}

#[test]
fn what_a_dead_member_served_to_some_all_combine() {
    let mut club = club(ExchangeKind::Gathered, 5);
    club.run_to(1);
    let victim = peer(2);
    club.fate = Box::new(move |from, to, slice| {
        let lost = from == victim && slice.round == Round(1) && to != peer(1);
        (!lost).then_some(PushOutcome::Delivered)
    });
    club.run_until(60, |club| {
        let served = |s: &SliceId| s.round == Round(1) && s.origin == victim;
        club.members[&peer(1)].store.keys().any(served)
    });
    club.kill(victim);
    club.run_to(3);
    let decided = club.decided(1);
    assert_eq!(decided.len(), 4);
    for (ballot, contributors) in decided {
        assert!(ballot > 0, "it took a ballot");
        assert_eq!(contributors, [peers(1..=5)], "one held it, all have it");
    }
    club.run_until(1, Club::exchanges);
    club.anchor();
}

#[test]
fn a_contribution_that_no_member_holds_is_left_out() {
    let mut club = club(ExchangeKind::Gathered, 5);
    club.run_to(1);
    let victim = peer(3);
    club.fate = Box::new(move |from, _, slice| {
        let lost = from == victim && slice.round == Round(1);
        (!lost).then_some(PushOutcome::Delivered)
    });
    club.run_until(60, Club::exchanges);
    club.kill(victim);
    club.run_to(2);
    let left = club.decided(1);
    assert_eq!(left.len(), 4);
    assert!(
        left.iter().all(|d| d.0 > 0 && d.1 == [peers([1, 2, 4, 5])]),
        "{left:?}"
    );
}

#[test]
fn a_member_that_stalls_for_ever_is_left_out_after_one_deadline() {
    let mut club = club(ExchangeKind::Gathered, 4);
    club.run_to(1);
    let silent = peer(4);
    club.hears = Box::new(move |from, _, message| from != silent || message.name() == "ready");
    club.fate = Box::new(move |from, _, _| (from != silent).then_some(PushOutcome::Delivered));
    let others = |club: &Club, round: u64| {
        let all = club.members.iter().filter(|(id, _)| **id != silent);
        all.map(|(_, m)| m.peer.round().0).all(|r| r >= round)
    };
    let before = club.now;
    club.run_until(60, |club| others(club, 2));
    // One deadline for the contribution, one for the ballot's answers, and the rest of the round.
    assert!(others(&club, 2) && club.now.since(before) < Duration::from_secs(30));
    let left = club.decided(1);
    assert!(left.len() >= 3, "{left:?}");
    assert!(left.iter().all(|d| d.1 == [peers([1, 2, 3])]), "{left:?}");
}

#[test]
fn a_contribution_that_does_not_decode_is_left_out_by_all_and_its_sender_cut_off() {
    let mut club = club(ExchangeKind::Gathered, 4);
    club.run_to(1);
    club.run_until(60, Club::exchanges);
    club.bad = Some(peer(3));
    club.run_to(2);
    let last: BTreeMap<usize, _> = club.decided(1).into_iter().enumerate().collect();
    // Each reports the set twice: with it and without it.
    let without = last.values().filter(|d| d.1 == [peers([1, 2, 4])]);
    assert_eq!(without.count(), 4, "{last:?}");
    club.anchor();
    let banned = |club: &Club| {
        let view = club.members[&peer(1)].peer.view();
        view.get(peer(3))
            .is_some_and(|r| r.banned && r.score >= SCORE_MAX)
    };
    club.run_until(600, banned);
    assert!(banned(&club));
}

#[test]
fn a_pair_of_which_one_died_gathers_nothing() {
    let mut club = club(ExchangeKind::Gathered, 2);
    club.run_to(1);
    club.run_until(60, Club::exchanges);
    club.fate = Box::new(|_, _, _| None);
    let before = club.members[&peer(1)].anchor;
    club.kill(peer(2));
    club.run_to(2);
    assert_eq!((club.decided(1).len(), club.voided(1)), (0, 1));
    assert_eq!(club.anchor(), before, "the anchor stays");
}

#[test]
fn a_dead_owner_s_shard_is_reduced_by_a_successor() {
    for owner in 1..=5u8 {
        let mut club = club(server(1), 5);
        club.run_to(1);
        let victim = peer(owner);
        club.fate = Box::new(move |from, _, slice| {
            let reduction = from == victim && slice.part == Part::Aggregate;
            (!reduction).then_some(PushOutcome::Delivered)
        });
        club.run_until(60, Club::exchanges);
        club.kill(victim);
        club.run_to(3);
        let decided = club.decided(1);
        assert_eq!(decided.len(), 4, "{owner}");
        assert!(decided.iter().all(|d| *d == decided[0] && d.1.len() == 1));
        let again = club.decided(2);
        assert!(
            again.iter().all(|d| *d == (0, again[0].1.clone())),
            "{owner}"
        );
    }
}

/// Records of lines by their octaves, member by member.
fn lines(octaves: &[u32], id: u8) -> Locality {
    let octave = octaves[usize::from(id) - 1];
    Locality {
        site: None,
        rate: Some(RateClass::of(1_000_000 << octave)),
    }
}

#[test]
fn owners_of_parts_send_what_their_lines_carry_and_no_more_is_sent_in_all() {
    // Two owners among four own in proportion to their lines. If all own parts, equal ones are the best:
    // the slow must receive what they do not own.
    for (octaves, owners, owned) in [
        ([0, 2, 2, 0], 2u16, [0u64, 6, 6, 0]),
        ([0, 3, 2, 0], 2, [0, 8, 4, 0]),
        ([0, 0, 0, 3], 1, [0, 0, 0, 12]),
        ([0, 2, 2, 0], 64, [3, 3, 3, 3]),
        ([5, 5, 5, 5], 4, [3, 3, 3, 3]),
    ] {
        let mut club = Club::in_parts(4, (owners, 12), 8);
        club.locate(|id| lines(&octaves, id));
        club.run_to(8);
        club.anchor();
        let sent = club.sent(6);
        let (parts, others) = (12, 3);
        let total: u64 = sent.values().map(|(pushes, _)| pushes).sum();
        assert_eq!(total, 2 * parts * others, "{octaves:?}");
        let own = |id: u8| {
            let (pushes, bytes) = sent[&peer(id)];
            assert_eq!(bytes, pushes * 4 * 64, "{octaves:?}");
            // It sends the parts of others, and its own n - 1 times.
            (pushes - parts) / (others - 1)
        };
        let found: Vec<u64> = (1..=4).map(own).collect();
        assert_eq!(found, owned, "{octaves:?}");
        assert_eq!(club.decided(6).len(), 4);
        club.assert_rules();
    }
}

#[test]
fn whatever_each_knows_of_lines_all_cut_as_the_proposer_says() {
    for unknown in 1..=5u8 {
        let mut club = Club::in_parts(5, (3, 9), 8);
        club.locate(|id| lines(&[3, 0, 1, 0, 2], id));
        // Some do not know one member's line.
        club.hears = Box::new(move |from, to, message| {
            from != peer(unknown) || message.name() != "records" || to.as_bytes()[0] % 2 == 0
        });
        club.run_to(8);
        club.anchor();
        for round in 2..8 {
            let decided = club.decided(round);
            assert_eq!(
                decided,
                vec![(0, vec![peers(1..=5); 9]); 5],
                "{unknown} {round}"
            );
        }
    }
}

/// Pushes and messages of one round of a club, by kind.
fn counted(exchange: ExchangeKind, count: u8) -> BTreeMap<&'static str, u64> {
    let mut club = club(exchange, count);
    club.run_to(2);
    let counts: Rc<RefCell<BTreeMap<&'static str, u64>>> = Rc::default();
    let (pushed, said) = (Rc::clone(&counts), Rc::clone(&counts));
    club.fate = Box::new(move |_, _, slice| {
        if slice.round == Round(4) {
            *pushed.borrow_mut().entry("push").or_default() += 1;
        }
        Some(PushOutcome::Delivered)
    });
    club.hears = Box::new(move |_, _, message| {
        match message.name() {
            "ready" | "propose" | "vote" | "vote-for" => {}
            "hello" | "alive" | "records" => return true,
            _ => panic!("{message:?} though all is well"),
        }
        if message.round() == Some(Round(4)) {
            *said.borrow_mut().entry(message.name()).or_default() += 1;
        }
        true
    });
    club.run_to(6);
    counts.take()
}

#[test]
fn messages_are_those_of_the_formula() {
    for count in 2..=33u8 {
        let n = u64::from(count);
        let expected = |shards: u64, pushes: u64| {
            let vote = match shards <= VOTE_NAMES_MAX as u64 {
                true => "vote",
                false => "vote-for",
            };
            let control = [
                ("propose", n - 1),
                ("ready", n * (n - 1)),
                (vote, n * (n - 1)),
            ];
            let all = control.into_iter().chain([("push", pushes)]);
            all.collect::<BTreeMap<_, _>>()
        };
        let gathered = counted(ExchangeKind::Gathered, count);
        assert_eq!(gathered, expected(n, n * (n - 1)), "{n}");
        for owners in [1, 2, 64] {
            // The fragment has ten values: no more shards than that.
            let shards = u64::from(owners).min(n).min(10);
            let served = counted(server(owners), count);
            assert_eq!(
                served,
                expected(shards, 2 * shards * (n - 1)),
                "{n} {owners}"
            );
        }
    }
}
