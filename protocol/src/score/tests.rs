//! Scores, medians, ratings and verdicts, against references in f64 and by their laws.

use super::*;
use crate::wire::{decode_value, encode_value};
use proptest::prelude::*;

const SCORING: Scoring = Scoring {
    batches: 2,
    top: 2,
    memory: 900,
};

fn peer(id: u8) -> PeerId {
    PeerId::from_bytes([id; 32])
}

fn judged(id: u8, said: &[i32]) -> Judged {
    Judged {
        peer: peer(id),
        digest: Digest::of(&[id]),
        said: said.iter().map(|s| Score::try_from(*s).unwrap()).collect(),
    }
}

fn admitted(verdict: &Verdict) -> Vec<u8> {
    verdict.admitted.iter().map(|p| p.as_bytes()[0]).collect()
}

/// The rule in f64: ratings, medians, top.
fn reference(ratings: &mut SortedMap<u8, f64>, top: usize, said: &[(u8, Vec<f64>)]) -> Vec<u8> {
    let mut ranked = Vec::new();
    for (id, scores) in said {
        let mut sorted = scores.clone();
        sorted.sort_by(f64::total_cmp);
        let score = sorted[(sorted.len() - 1) / 2];
        let rating = ratings.entry(*id).or_default();
        *rating = 0.9 * *rating + 0.1 * score;
        ranked.extend((score > 0.0).then_some((*rating, *id)));
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut best: Vec<u8> = ranked.iter().take(top).map(|(_, id)| *id).collect();
    best.sort_unstable();
    best
}

#[test]
fn a_score_is_the_loss_before_less_the_loss_after_within_bounds() {
    for (before, after, score) in [
        (2.5, 2.0, 500_000),
        (2.0, 2.5, -500_000),
        (1.0, 1.0 + 4e-7, 0),
        (1e300, 0.0, LOSS_SCORE_MAX),
        (f64::INFINITY, 1.0, LOSS_SCORE_MAX),
        (1.0, f64::INFINITY, -LOSS_SCORE_MAX),
        (1.0, f64::NAN, -LOSS_SCORE_MAX),
        (f64::NAN, 1.0, -LOSS_SCORE_MAX),
        (f64::INFINITY, f64::INFINITY, -LOSS_SCORE_MAX),
    ] {
        let found = Score::of(before, after);
        assert_eq!(found.0, score, "{before} {after}");
        assert_eq!(decode_value(&encode_value(&found)), Ok(found));
    }
    for bad in [LOSS_SCORE_MAX + 1, i32::MIN, i32::MAX] {
        assert!(decode_value::<Score>(&bad.to_le_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn those_that_lower_the_loss_are_merged_and_the_best_of_them_by_rating() {
    let mut ratings = Ratings::default();
    let round = |ratings: &mut Ratings, at: u64, said: &[Judged]| {
        let verdict = ratings.judge(SCORING, said);
        ratings.note(Round(at), SCORING, &verdict.scores);
        admitted(&verdict)
    };
    // Without a history the scores of the round decide. 4 raises the loss.
    let first = [
        judged(1, &[30, 10, 20]),
        judged(2, &[50, 50, 50]),
        judged(3, &[40, 40, 40]),
        judged(4, &[-9, -9, 900]),
    ];
    assert_eq!(round(&mut ratings, 0, &first), [2, 3]);
    // One good round does not outweigh a history, even as the best of the round.
    for at in 1..20 {
        let said = [
            judged(1, &[20]),
            judged(2, &[50]),
            judged(3, &[40]),
            judged(4, &[-900]),
        ];
        assert_eq!(round(&mut ratings, at, &said), [2, 3]);
    }
    let said = [judged(1, &[90]), judged(2, &[50]), judged(4, &[100])];
    assert_eq!(round(&mut ratings, 20, &said), [1, 2]);
    assert!(ratings.of(peer(4)) < 0.0 && ratings.of(peer(1)) > 0.0);
    assert_eq!(ratings.of(peer(9)), 0.0);
}

#[test]
fn no_one_is_merged_where_every_contribution_is_harmful_or_was_not_scored() {
    let none = Ratings::default().judge(
        SCORING,
        &[judged(1, &[-1]), judged(2, &[0]), judged(3, &[])],
    );
    assert_eq!(admitted(&none), []);
    assert_eq!(none.scores.len(), 2);
}

#[test]
fn of_copies_one_is_merged_and_the_better_rated_peer_keeps_its_place() {
    let mut ratings = Ratings::default();
    ratings.note(Round(0), SCORING, &[(peer(7), Score(1000))]);
    let copy = |id| Judged {
        digest: Digest::of(b"copied"),
        ..judged(id, &[50])
    };
    let verdict = ratings.judge(SCORING, &[copy(2), judged(5, &[10]), copy(7)]);
    assert_eq!(admitted(&verdict), [5, 7]);
}

#[test]
fn a_rating_rounds_towards_zero_and_stays_in_its_bounds() {
    let mut ratings = Ratings::default();
    for at in 0..2000 {
        ratings.note(
            Round(at),
            SCORING,
            &[(peer(1), Score(LOSS_SCORE_MAX)), (peer(2), Score::WORST)],
        );
        assert!(ratings.are_possible());
    }
    let most = f64::from(LOSS_SCORE_MAX) * UNIT;
    assert!((ratings.of(peer(1)) - most).abs() < most * 1e-6);
    assert_eq!(ratings.of(peer(1)), -ratings.of(peer(2)));
}

#[test]
fn the_ratings_that_were_renewed_longest_ago_are_forgotten_first() {
    let mut ratings = Ratings::default();
    let named = |number: usize| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&(number as u64).to_be_bytes());
        PeerId::from_bytes(bytes)
    };
    for number in 0..RATINGS_MAX + 3 {
        let at = Round(number as u64);
        ratings.note(
            at,
            SCORING,
            &[(named(number), Score(5)), (named(0), Score(5))],
        );
    }
    assert_eq!(ratings.peers().count(), RATINGS_MAX);
    assert!(ratings.of(named(0)) > 0.0 && ratings.of(named(4)) > 0.0);
    assert_eq!(ratings.of(named(1)), 0.0);
    let bytes = encode_value(&ratings);
    assert!(
        bytes.len() <= crate::limits::RATINGS_BYTES_MAX,
        "{}",
        bytes.len()
    );
    assert_eq!(decode_value(&bytes), Ok(ratings));
}

/// States and checkpoints hold ratings, slices hold scores.
#[test]
fn their_bytes_do_not_change() {
    let mut ratings = Ratings::default();
    assert_eq!(encode_value(&ratings), [0; 8]);
    ratings.note(Round(3), SCORING, &[(peer(1), Score(-20))]);
    let value = -20i64 * FINER / 10;
    let bytes = [
        &1u64.to_le_bytes()[..],
        &[1; 32],
        &value.to_le_bytes(),
        &3u64.to_le_bytes(),
    ];
    assert_eq!(encode_value(&ratings), bytes.concat());
    let said = SortedMap::from([(0, Score(7)), (2, Score(-1))]);
    let scores = Scores::of(3, &said);
    let bytes = [
        &3u64.to_le_bytes()[..],
        &[1, 7, 0, 0, 0],
        &[0],
        &[1, 255, 255, 255, 255],
    ]
    .concat();
    assert_eq!(scores.to_bytes(), bytes);
    assert_eq!(Scores::from_bytes(&bytes, 3), Some(scores));
    assert_eq!(Scores::from_bytes(&bytes, 4), None);
    assert_eq!(Scores::from_bytes(&bytes[..9], 3), None);
    let full = SortedMap::from_iter((0..64).map(|at| (at, Score::WORST)));
    let largest = Scores::of(64, &full).to_bytes().len() as u64;
    assert_eq!(largest, crate::limits::SCORES_BYTES_MAX);
}

fn lies() -> impl Strategy<Value = Vec<i32>> {
    proptest::collection::vec(-LOSS_SCORE_MAX..=LOSS_SCORE_MAX, 0..12)
}

proptest! {
    #[test]
    fn the_rule_is_the_reference(
        rounds in proptest::collection::vec(
            proptest::collection::vec(proptest::collection::vec(-1000i32..1000, 3), 5), 1..20),
    ) {
        let (mut ratings, mut floats) = (Ratings::default(), SortedMap::new());
        for (at, round) in (0..).zip(&rounds) {
            let said: Vec<Judged> = (0..).zip(round).map(|(id, said)| judged(id, said)).collect();
            let of = |said: &Vec<i32>| said.iter().map(|s| f64::from(*s)).collect();
            let plain: Vec<(u8, Vec<f64>)> = (0..).zip(round).map(|(id, s)| (id, of(s))).collect();
            let verdict = ratings.judge(SCORING, &said);
            ratings.note(Round(at), SCORING, &verdict.scores);
            let expected = reference(&mut floats, 2, &plain);
            // Ratings that are nearly equal may be in the other order.
            let close = |a: f64, b: f64| (a - b).abs() < 0.01;
            let all: Vec<f64> = floats.values().copied().collect();
            let tie = (0..5).any(|a| (0..a).any(|b| close(all[a], all[b])));
            if !tie {
                prop_assert_eq!(admitted(&verdict), expected);
            }
            for (id, value) in &floats {
                prop_assert!(close(ratings.of(peer(*id)) / UNIT, *value));
            }
        }
    }

    #[test]
    fn fewer_than_half_of_liars_move_no_score_out_of_the_honest_range(
        honest in proptest::collection::vec(-1000i32..1000, 1..12),
        lies in lies(),
    ) {
        prop_assume!(lies.len() < honest.len());
        let said: Vec<i32> = honest.iter().chain(&lies).copied().collect();
        let found = median(judged(1, &said).said).unwrap().0;
        let (least, most) = (honest.iter().min().unwrap(), honest.iter().max().unwrap());
        prop_assert!((least..=most).contains(&&found), "{found} of {least} to {most}");
    }

    #[test]
    fn liars_neither_bring_in_what_is_harmful_nor_leave_out_what_is_useful(
        harmful in proptest::collection::vec(-1000i32..=0, 1..12),
        useful in proptest::collection::vec(1i32..1000, 12),
        lies in lies(),
    ) {
        prop_assume!(lies.len() < harmful.len());
        let with = |honest: &[i32]| [honest, &lies].concat();
        let all = [judged(1, &with(&harmful)), judged(2, &with(&useful[..harmful.len()]))];
        prop_assert_eq!(admitted(&Ratings::default().judge(SCORING, &all)), [2]);
    }

    #[test]
    fn the_order_of_members_and_of_what_they_say_does_not_matter(
        said in proptest::collection::vec(proptest::collection::vec(-100i32..100, 0..6), 1..10),
        by in 0usize..10,
    ) {
        let all: Vec<Judged> = (0..).zip(&said).map(|(id, said)| judged(id, said)).collect();
        let mut turned = all.clone();
        turned.rotate_left(by % all.len());
        for one in &mut turned {
            one.said.reverse();
        }
        let ratings = Ratings::default();
        let (first, second) = (ratings.judge(SCORING, &all), ratings.judge(SCORING, &turned));
        prop_assert_eq!(&first.admitted, &second.admitted);
        prop_assert!(first.admitted.len() <= 2);
        let (mut a, mut b) = (ratings.clone(), ratings);
        a.note(Round(1), SCORING, &first.scores);
        b.note(Round(1), SCORING, &second.scores);
        prop_assert_eq!(a, b);
    }
}
