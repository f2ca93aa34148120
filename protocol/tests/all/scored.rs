//! Gathered contributions that are scored before they are merged, member by member: who is merged, what liars
//! can do, and what is decided when a member dies at any message.

use crate::common::club::{Club, lose_slices, lose_words};
use crate::common::{peer, peers, plan};
use crate::seeds::seeds;
use core::time::Duration;
use murmurate_protocol::{
    Digest, ExchangeKind, Part, PeerId, PushOutcome, Ratings, Round, Scoring, SliceId,
};
use std::cell::Cell;
use std::rc::Rc;

/// Rounds of a club.
const ROUNDS: u64 = 8;

const SCORING: Scoring = Scoring {
    batches: 2,
    top: 16,
    memory: 900,
};

fn club(count: u8, scoring: Scoring) -> Club {
    let mut plan = plan(ExchangeKind::Gathered, 1);
    plan.agreement.scoring = Some(scoring);
    plan.rounds = ROUNDS;
    plan.validate().expect("a plan");
    Club::of(count, &plan, |_| Digest::of(b"anchor"))
}

/// Runs until all members have finished, and checks that they hold the same bits and ratings.
fn agreed(club: &mut Club, what: &str) -> Ratings {
    let finished = |club: &Club| {
        let first = club.members.values().next().expect("members").anchor;
        club.has_finished() && club.members.values().all(|m| m.anchor == first)
    };
    club.run_until(900, finished);
    let state = |m: &crate::common::club::Member| (m.peer.round(), m.peer.phase(), m.anchor);
    let states: Vec<_> = club.members.values().map(state).collect();
    assert!(finished(club), "{what}: {states:?}");
    let mut all = club
        .members
        .values()
        .map(|m| m.peer.ratings().expect("a run with ratings"));
    let first = all.next().expect("members").clone();
    assert!(all.all(|ratings| *ratings == first), "{what}");
    first
}

#[test]
fn a_contribution_that_the_others_find_harmful_is_not_merged_and_its_peer_loses_rating() {
    let mut club = club(4, SCORING);
    club.useful = Box::new(|_, about, _| if about == peer(3) { -0.5 } else { 0.25 });
    let ratings = agreed(&mut club, "harmful");
    for round in 0..ROUNDS {
        let decided = club.decided(round);
        assert_eq!(
            decided,
            vec![(0, vec![peers([1, 2, 4])]); 4],
            "round {round}"
        );
    }
    club.assert_rules();
    let after = |score: f64| score * (1.0 - 0.9f64.powi(ROUNDS as i32));
    assert!(
        (ratings.of(peer(3)) - after(-0.5)).abs() < 1e-5,
        "{ratings:?}"
    );
    assert!(
        (ratings.of(peer(1)) - after(0.25)).abs() < 1e-5,
        "{ratings:?}"
    );
    // Each member sends its contribution and its scores to each other one.
    let pushes: u64 = club.sent(3).values().map(|(pushes, _)| pushes).sum();
    assert_eq!(pushes, 4 * 3 * 2);
    let left =
        |s: &&SliceId| s.round == Round(0) && s.part != Part::Aggregate && s.part != Part::Scores;
    assert!(
        club.members
            .values()
            .all(|m| m.store.keys().find(left).is_none())
    );
}

#[test]
fn the_best_by_rating_are_merged_where_the_number_is_limited() {
    let mut club = club(5, Scoring { top: 2, ..SCORING });
    // The best changes in round 6, and its history does not yet outweigh that of the others.
    club.useful = Box::new(|_, about, round| match (about.as_bytes()[0], round.0) {
        (2, _) => 0.5,
        (4, _) => 0.4,
        (1, 6..) => 0.6,
        _ => 0.1,
    });
    agreed(&mut club, "top");
    for round in 0..8 {
        let decided = club.decided(round);
        assert_eq!(decided, vec![(0, vec![peers([2, 4])]); 5], "round {round}");
    }
}

#[test]
fn fewer_than_half_of_liars_bring_in_nothing_harmful_and_leave_out_nothing_useful() {
    let mut club = club(7, SCORING);
    club.useful = Box::new(|by, about, _| {
        let useful = if about >= peer(6) { -1.0 } else { 0.5 };
        // Each member has six others, and two of seven say the opposite.
        if by >= peer(6) {
            -1000.0 * useful
        } else {
            useful
        }
    });
    let ratings = agreed(&mut club, "liars");
    for round in 0..ROUNDS {
        let decided = club.decided(round);
        assert_eq!(decided, vec![(0, vec![peers(1..=5)]); 7], "round {round}");
    }
    assert!(ratings.of(peer(1)) > 0.0 && ratings.of(peer(6)) < 0.0);
    assert!(
        ratings.of(peer(1)) <= 0.5,
        "within what honest members said"
    );
}

#[test]
fn a_round_in_which_everything_is_harmful_moves_no_anchor_and_rates_no_one() {
    let mut club = club(3, SCORING);
    club.useful = Box::new(|_, _, round| {
        if round == Round(ROUNDS - 1) {
            -0.5
        } else {
            0.5
        }
    });
    let before = Digest::of(b"anchor");
    let ratings = agreed(&mut club, "void");
    let last = ROUNDS - 1;
    assert_eq!((club.decided(last).len(), club.voided(last)), (0, 3));
    assert_ne!(club.anchor(), before);
    assert_eq!(club.decided(last - 1), vec![(0, vec![peers(1..=3)]); 3]);
    let rated = 0.5 * (1.0 - 0.9f64.powi(last as i32));
    assert!((ratings.of(peer(2)) - rated).abs() < 1e-5, "{ratings:?}");
}

#[test]
fn a_contribution_that_does_not_decode_has_the_worst_score_and_its_sender_is_cut_off() {
    let mut club = club(4, SCORING);
    club.run_to(1);
    club.bad = Some(peer(3));
    club.run_to(3);
    let last = club.decided(1);
    assert_eq!(last, vec![(0, vec![peers([1, 2, 4])]); 4], "{last:?}");
    let view = club.members[&peer(1)].peer.view();
    assert!(view.get(peer(3)).is_some_and(|r| r.score > 0));
}

#[test]
fn scores_that_no_member_gets_are_left_out_and_the_contribution_stays() {
    let mut club = club(5, SCORING);
    club.run_to(1);
    let mute = peer(2);
    club.fate = Box::new(move |from, _, slice| {
        let lost = from == mute && slice.round == Round(1) && slice.part == Part::Scores;
        (!lost).then_some(PushOutcome::Delivered)
    });
    let before = club.now;
    agreed(&mut club, "mute");
    assert!(
        club.now.since(before) < Duration::from_secs(40),
        "one deadline and a ballot"
    );
    let decided = club.decided(1);
    let others = decided.iter().filter(|d| d.1 == [peers(1..=5)]);
    assert!(others.count() >= 4, "{decided:?}");
}

#[test]
fn a_member_that_sends_other_bytes_to_each_is_not_merged_in_two_ways() {
    for liar in 1..=4 {
        let mut club = club(4, SCORING);
        club.run_to(1);
        club.garbles = Some((peer(liar), 1));
        let others = |club: &Club| {
            let honest = club.members.iter().filter(|(id, _)| **id != peer(liar));
            honest
                .map(|(_, m)| (m.peer.round(), m.anchor))
                .collect::<Vec<_>>()
        };
        club.run_until(300, |club| {
            others(club).iter().all(|(round, _)| round.0 >= 3)
        });
        let at = others(&club);
        assert!(at.iter().all(|(round, _)| round.0 >= 3), "{liar} {at:?}");
        let sets = club.decided(1);
        assert!(sets.iter().all(|d| d.1 == sets[0].1), "{liar}: {sets:?}");
    }
}

/// The victim dies with the n-th message or push of the round, which still leaves it or does not.
fn arm(club: &mut Club, victim: PeerId, nth: u32, leaves: bool) -> Rc<Cell<u32>> {
    let count = Rc::new(Cell::new(0));
    let (pushes, messages) = (count.clone(), count.clone());
    let (doom, at_message) = (club.doom.clone(), club.doom.clone());
    club.fate = Box::new(move |from, _, slice| {
        if from == victim && slice.round == Round(1) {
            pushes.set(pushes.get() + 1);
            if pushes.get() == nth {
                doom.set(Some(victim));
                return leaves.then_some(PushOutcome::Delivered);
            }
        }
        Some(PushOutcome::Delivered)
    });
    club.hears = Box::new(move |from, _, message| {
        if from == victim && message.round() == Some(Round(1)) {
            messages.set(messages.get() + 1);
            if messages.get() == nth {
                at_message.set(Some(victim));
                return leaves;
            }
        }
        true
    });
    count
}

#[test]
fn a_death_at_any_message_leaves_survivors_with_the_same_bits_and_ratings() {
    let mut deaths = 0;
    for count in [3u8, 5] {
        for victim in 1..=count {
            for leaves in [false, true] {
                for nth in 1.. {
                    let mut club = club(count, SCORING);
                    club.useful = Box::new(|_, about, _| if about == peer(2) { -0.5 } else { 0.5 });
                    club.run_to(1);
                    let sent = arm(&mut club, peer(victim), nth, leaves);
                    let what = format!("{count} {victim} {leaves} {nth}");
                    club.run_to(2);
                    let died = !club.members.contains_key(&peer(victim));
                    agreed(&mut club, &what);
                    for set in club.decided(1).iter().chain(&club.decided(2)) {
                        assert!(!set.1[0].contains(&peer(2)), "{what}");
                    }
                    if !died && sent.get() < nth {
                        break;
                    }
                    deaths += 1;
                }
            }
        }
    }
    println!("{deaths} deaths");
    assert!(deaths > 100, "{deaths}");
}

#[test]
fn whatever_is_lost_survivors_hold_the_same_bits_and_ratings() {
    for seed in seeds(100) {
        let mut club = club(5, SCORING);
        lose_slices(&mut club, seed);
        lose_words(&mut club, seed, |name| name.starts_with("vote"));
        agreed(&mut club, &format!("seed {seed}"));
    }
}
