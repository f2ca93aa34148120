//! Laws of the choice of a codec, and a short reference of its rule.

use super::*;
use crate::wire::{decode_value, encode_value};
use proptest::prelude::*;

const EVERY: u64 = 2;

fn ladder(bytes: &[u64], share: u16) -> Ladder {
    let rung = |per_1024: &u64| Rung {
        per_1024: *per_1024,
        ..Rung::default()
    };
    let rungs: Vec<Rung> = bytes.iter().map(rung).collect();
    let ladder = Ladder::new(EVERY, share, &rungs).unwrap();
    assert!(ladder.fits());
    ladder
}

/// Codecs of 32, 16, 8 and 4 bits; training shall have nine tenths of the time.
fn four() -> Ladder {
    ladder(&[8192, 4096, 2048, 1024], 900)
}

/// Intervals on a line whose wait is `latency + slope b`, times what `noise` says of each. Returns the codecs.
fn intervals(
    chosen: &mut Chosen,
    ladder: &Ladder,
    steps: u32,
    count: u64,
    wait: impl Fn(f64) -> f64,
    mut noise: impl FnMut() -> f64,
) -> Vec<u8> {
    let one = |at: u64| {
        let bytes = chosen.codec(ladder).per_1024 as f64;
        chosen.note(Some(Loss::of(wait(bytes) * noise())));
        chosen.open(Round(EVERY * at), ladder, steps);
        chosen.rung(ladder)
    };
    (0..count).map(one).collect()
}

#[test]
fn the_most_exact_codec_is_taken_that_leaves_training_its_share() {
    let ladder = four();
    // 90 inner steps may wait 10: codecs wait 64, 32, 16 and 8.
    let of = |unit: f64| {
        let mut chosen = Chosen::default();
        intervals(&mut chosen, &ladder, 90, 6, |b| unit * b / 1024.0, || 1.0)
    };
    assert_eq!(of(8.0), [3; 6]);
    assert_eq!(of(5.0), [2; 6]);
    assert_eq!(of(2.0), [1; 6]);
    assert_eq!(of(1.2), [0; 6]);
    // Where none fits, one is enough that waits at most twice as long as the last.
    assert_eq!(of(100.0), [3, 2, 2, 2, 2, 2]);
}

#[test]
fn a_line_that_recovers_brings_back_one_codec_at_a_time() {
    let ladder = four();
    let mut chosen = Chosen::default();
    let mut run = |unit: f64| intervals(&mut chosen, &ladder, 90, 4, |b| unit * b / 1024.0, || 1.0);
    assert_eq!(run(1.0), [0, 0, 0, 0]);
    assert_eq!(run(9.0), [3, 3, 3, 3]);
    assert_eq!(run(0.5), [2, 1, 0, 0]);
    // Here two codecs are too slow. One of them is tried once.
    assert_eq!(run(9.0), [3; 4]);
    assert_eq!(run(2.0), [2, 1, 1, 1]);
    assert_eq!(run(9.0), [3; 4]);
    assert_eq!(run(3.0), [2, 1, 2, 2]);
}

#[test]
fn fewer_bytes_that_do_not_shorten_the_wait_are_given_up_again() {
    let ladder = four();
    let mut chosen = Chosen::default();
    // All of it is latency. What is tried shows that, and the run goes back and stays.
    let found = intervals(&mut chosen, &ladder, 90, 40, |b| 30.0 + 1e-4 * b, || 1.0);
    assert_eq!(found[..5], [2, 3, 2, 1, 0]);
    assert!(found[5..].iter().all(|rung| *rung == 0), "{found:?}");
}

#[test]
fn a_change_is_told_with_its_reason_and_forgets_the_wait_before() {
    let ladder = four();
    let mut chosen = Chosen::default();
    chosen.note(Some(Loss::of(64.0)));
    assert_eq!(chosen.open(Round(3), &ladder, 90), None);
    chosen.note(None);
    let change = chosen.open(Round(4), &ladder, 90).unwrap();
    assert_eq!((change.wait, change.room), (64.0, 10.0));
    assert_eq!(
        (change.before, change.codec),
        (ladder.rungs[0], ladder.rungs[3])
    );
    assert_eq!((chosen.rung(&ladder), chosen.last()), (3, None));
    // Nothing is measured under this codec yet.
    assert_eq!(chosen.open(Round(6), &ladder, 90), None);
}

/// What a run goes to that has tried nothing but its present codec, in the words of the rule.
fn reference(bytes: &[u64], at: usize, wait: f64, room: f64) -> usize {
    let last = bytes.len() - 1;
    let waits: Vec<f64> = bytes
        .iter()
        .map(|b| {
            if *b < bytes[at] {
                wait * *b as f64 / bytes[at] as f64
            } else {
                wait
            }
        })
        .collect();
    if waits[last] > room && at != last {
        return last;
    }
    let fits = |part: f64| {
        if part * waits[last] <= room {
            room
        } else {
            2.0 * waits[last]
        }
    };
    if wait > fits(1.0) {
        return (at + 1..=last).find(|j| waits[*j] <= fits(1.0)).unwrap();
    }
    let up = at > 0 && waits[at - 1] <= 2.0 / 3.0 * fits(2.0 / 3.0);
    if up { at - 1 } else { at }
}

fn any_ladder() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::btree_set(1u64..9000, 2..=RUNGS_MAX)
        .prop_map(|set| set.into_iter().rev().collect())
}

proptest! {
    #[test]
    fn the_rule_is_that_of_the_reference(
        bytes in any_ladder(),
        at in any::<prop::sample::Index>(),
        wait in 0.0f64..1e4,
        steps in 1u32..1000,
        share in 1u16..1000,
    ) {
        let ladder = ladder(&bytes, share);
        let at = at.index(bytes.len());
        let wait = Loss::of(wait);
        let mut chosen = Chosen { rung: at as u8, ..Chosen::default() };
        chosen.note(Some(wait));
        chosen.open(Round(0), &ladder, steps);
        let share = f64::from(share) / 1000.0;
        let room = f64::from(steps) * (1.0 - share) / share;
        let expected = reference(&bytes, at, wait.value(), room);
        // Numbers on a limit may be rounded to either side.
        let near = [1.0 - 1e-9, 1.0 + 1e-9].map(|by| reference(&bytes, at, wait.value(), room * by));
        let found = usize::from(chosen.rung(&ladder));
        prop_assert!(found == expected || near.contains(&found), "{found} {expected}");
    }

    /// On any line with a latency, noise of a tenth leads to no more changes than it takes to find the codec.
    #[test]
    fn noise_of_a_tenth_does_not_make_it_flap(
        bytes in any_ladder(),
        latency in 0.0f64..100.0,
        each in 0.0f64..0.1,
        steps in 1u32..500,
        noise in prop::collection::vec(0.9f64..1.1, 200),
    ) {
        let ladder = ladder(&bytes, 900);
        let mut chosen = Chosen::default();
        let mut noise = noise.into_iter();
        let wait = |b: f64| latency + each * b;
        let found = intervals(&mut chosen, &ladder, steps, 200, wait, || noise.next().unwrap());
        let changes = |of: &[u8]| of.windows(2).filter(|pair| pair[0] != pair[1]).count();
        prop_assert!(changes(&found) <= 2 * bytes.len(), "{found:?}");
    }

    #[test]
    fn no_claim_and_no_state_leads_out_of_the_ladder(
        bytes in any_ladder(),
        rung in any::<u8>(),
        claimed in any::<Option<f64>>(),
        said in prop::collection::vec(any::<f64>(), 1..20),
        steps in any::<u32>(),
    ) {
        let ladder = ladder(&bytes, 900);
        let mut tried = [None; RUNGS_MAX];
        tried[usize::from(rung) % RUNGS_MAX] = claimed.map(Loss::of);
        let mut chosen = Chosen { rung, tried, ..Chosen::default() };
        for (at, wait) in (0..).zip(said) {
            chosen.note(Some(Loss::of(wait)));
            chosen.open(Round(EVERY * at), &ladder, steps);
            prop_assert!(usize::from(chosen.rung(&ladder)) < bytes.len());
            prop_assert!(chosen.codec(&ladder).per_1024 > 0);
            prop_assert_eq!(decode_value(&encode_value(&chosen)), Ok(chosen));
        }
    }
}

/// States and checkpoints hold it.
#[test]
fn its_bytes_do_not_change() {
    assert_eq!(encode_value(&Chosen::default()), [0; 2 + RUNGS_MAX]);
    let mut tried = [None; RUNGS_MAX];
    tried[1] = Some(Loss::of(5.0));
    let chosen = Chosen {
        rung: 2,
        last: Some(Loss::of(2.5)),
        tried,
    };
    let wait = |of: f32| of.to_le_bytes();
    let rest = [0; RUNGS_MAX - 2];
    let bytes = [&[2u8, 1][..], &wait(2.5), &[0, 1], &wait(5.0), &rest].concat();
    assert_eq!(encode_value(&chosen), bytes);
    assert_eq!(decode_value(&bytes), Ok(chosen));
}

#[test]
fn a_ladder_that_does_not_fall_does_not_fit() {
    let of = |every, share, bytes: &[u64]| {
        let rung = |per_1024: &u64| Rung {
            per_1024: *per_1024,
            ..Rung::default()
        };
        let rungs: Vec<Rung> = bytes.iter().map(rung).collect();
        Ladder::new(every, share, &rungs).is_some_and(|ladder| ladder.fits())
    };
    assert!(of(1, 999, &[2, 1]));
    assert!(!of(0, 900, &[2, 1]) && !of(1, 1000, &[2, 1]) && !of(1, 0, &[2, 1]));
    assert!(!of(1, 900, &[2]) && !of(1, 900, &[2, 2]) && !of(1, 900, &[1, 2]) && !of(1, 900, &[]));
    assert!(!of(1, 900, &[9; RUNGS_MAX + 1]) && !of(1, 900, &[3, 0, 1]));
}
