//! Solutions: the same for the same rates, complete, never below the bound, and exact where that can be checked.

use super::*;
use crate::schedule::program::Program;
use crate::schedule::rates::code_of;
use crate::schedule::timeline::{Moment, Network};
use proptest::prelude::*;

const MBIT: u64 = 125_000;

fn codes(n: usize, mbit: impl Fn(usize, usize) -> u64) -> LinkCodes {
    LinkCodes::new(n, |from, to| code_of(mbit(from, to) * MBIT))
}

fn any_codes(members: core::ops::Range<usize>) -> impl Strategy<Value = LinkCodes> {
    members.prop_flat_map(|n| {
        proptest::collection::vec(60u8..150, n * n)
            .prop_map(move |all| LinkCodes::new(n, |from, to| all[from * n + to]))
    })
}

/// The best of all orders, by trying every one.
fn exhaustive(network: &Network<'_>, mut moment: Moment) -> u64 {
    let Some(rank) = moment.next(network) else {
        return moment.last;
    };
    let choices = moment.ready[rank].clone();
    let ends = choices.into_iter().map(|choice| {
        let mut branch = moment.clone();
        branch.begin(network, choice);
        exhaustive(network, branch)
    });
    ends.min().unwrap_or(u64::MAX)
}

fn any_trees() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let three = proptest::collection::vec(
        proptest::sample::select(vec![
            vec![0, 0, 0],
            vec![0, 0, 1],
            vec![1, 1, 1],
            vec![1, 1, 0],
            vec![2, 2, 2],
            vec![2, 0, 2],
        ]),
        1..4,
    );
    let four = proptest::collection::vec(
        proptest::sample::select(vec![vec![0, 0, 0, 0], vec![1, 1, 1, 2], vec![3, 3, 3, 3]]),
        1..2,
    );
    prop_oneof![three, four]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_solution_is_complete_and_never_below_its_bound(
        codes in any_codes(2..7), bytes in 1u64..50_000_000, latency in 0u64..50_000
    ) {
        let n = codes.members();
        let solution = Solution::new(&codes, bytes, latency);
        prop_assert_eq!(&solution, &Solution::new(&codes, bytes, latency));
        let Certificate { micros, butterfly, least, .. } = solution.certificate;
        prop_assert!(least <= micros && micros <= butterfly, "{:?}", solution.certificate);
        // Bounded from what a second way of counting says: each line alone.
        let shard = bytes.div_ceil(solution.trees.len() as u64) as f64;
        for rank in 0..n {
            let own = solution.sends.iter().filter(|send| usize::from(send.from) == rank);
            let time: f64 = own
                .map(|send| shard / codes.rate(rank, send.to.into()) as f64)
                .sum();
            prop_assert!(time * 1e6 <= micros as f64, "{} of {}", time * 1e6, micros);
        }
        // Every edge of every tree once each way.
        let mut sends = solution.sends.clone();
        sends.sort_unstable();
        sends.dedup();
        prop_assert_eq!(sends.len(), 2 * solution.trees.len() * (n - 1));
        prop_assert_eq!(solution.sends.len(), sends.len());
        for send in sends {
            let (from, to) = if !send.down {
(send.from, send.to)
} else {
(send.to, send.from)
};
            prop_assert_eq!(solution.trees[usize::from(send.shard)][usize::from(from)], usize::from(to));
        }
        // What members do with it: each has a turn for each of its sends, and no two the same.
        for me in 0..n {
            let program = Program::solved(&solution, n, me);
            let turns = program.turns().unwrap();
            let mut places = Vec::new();
            for shard in 0..program.shards() as u16 {
                let role = program.role(shard).unwrap();
                let up = role.stages.iter().filter_map(|stage| stage.to);
                places.extend(up.map(|to| turns.place(shard, to, false)));
                places.extend(role.serves.iter().map(|to| turns.place(shard, *to, true)));
            }
            places.sort_unstable();
            prop_assert_eq!(&places, &(0..places.len() as u16).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_order_is_faster_where_the_search_says_so(
        trees in any_trees(), rates in proptest::collection::vec(60u8..120, 16),
        bytes in 1_000u64..10_000_000, latency in 0u64..20_000
    ) {
        let n = trees[0].len();
        let codes = LinkCodes::new(n, |from, to| rates[4 * from + to]);
        let found = ordering::order(&codes, &trees, (bytes, latency));
        let network = Network::new(&codes, &trees, bytes, latency);
        let best = exhaustive(&network, Moment::new(&network));
        prop_assert!(found.micros >= best);
        if found.proven {
            prop_assert_eq!(found.micros, best);
        }
        let kept = ordering::kept(&codes, &trees, &found.sends, (bytes, latency));
        prop_assert_eq!(kept, found.micros, "members that keep to the order take its time");
        prop_assert!(found.micros <= ordering::estimate(&codes, &trees, (bytes, latency)));
        // Nearly all are small enough for a proof.
        prop_assert!(found.proven || trees.len() > 1);
    }
}

#[test]
fn orders_of_small_trees_are_the_best_of_all() {
    let slow = codes(3, |from, to| 10 + (40 * from + 15 * to) as u64);
    for trees in [
        vec![vec![0, 0, 0]],
        vec![vec![0, 0, 0], vec![1, 1, 1]],
        vec![vec![0, 0, 1], vec![2, 2, 2]],
        vec![vec![0, 0, 0], vec![1, 1, 1], vec![2, 2, 2]],
    ] {
        let found = ordering::order(&slow, &trees, (1_000_000, 500));
        let network = Network::new(&slow, &trees, 1_000_000, 500);
        let best = exhaustive(&network, Moment::new(&network));
        assert!(found.proven || trees.len() > 2, "{trees:?}");
        assert_eq!(found.micros, best, "{trees:?}");
    }
}

#[test]
fn between_equal_links_the_butterfly_stays() {
    for n in 2..=8 {
        let solution = Solution::new(&codes(n, |_, _| 100), 4_000_000, 1_000);
        assert_eq!(solution.trees, stars(n), "{n}");
    }
}

#[test]
fn a_slow_peer_sends_in_order_while_results_come_back() {
    // A message of 4 MB over a line of 20 Mbit/s takes 1.6 s.
    let slow = codes(6, |from, to| if from == 5 || to == 5 { 20 } else { 1000 });
    let Certificate {
        micros,
        butterfly,
        least,
        ..
    } = Solution::new(&slow, 4_000_000, 2_000).certificate;
    println!("{micros} us by trees, {butterfly} by the butterfly, {least} at least");
    // Its line carries each byte once in each direction, and the second direction begins when the first shard is
    // summed. By the butterfly it carries 2 (n - 1) / n of them.
    assert!((1_500_000..1_700_000).contains(&least), "{least}");
    assert!(
        micros < 1_900_000 && butterfly > 2_400_000,
        "{micros} {butterfly}"
    );
}

#[test]
fn small_fragments_have_few_shards_and_large_ones_many() {
    let slow = codes(6, |from, to| if from == 5 || to == 5 { 20 } else { 1000 });
    let shards = |bytes| Solution::new(&slow, bytes, 20_000).trees.len();
    let (small, large) = (shards(20_000), shards(40_000_000));
    println!("{small} shards of 20 kB, {large} of 40 MB");
    assert!(small < large);
}

#[test]
fn trees_for_the_rates_that_there_are_beat_those_for_the_rates_that_were() {
    let before = codes(5, |from, to| if from == 0 || to == 0 { 10 } else { 400 });
    let after = codes(5, |from, to| if from == 3 || to == 3 { 10 } else { 400 });
    let (old, new) = (
        Solution::new(&before, 4_000_000, 1_000),
        Solution::new(&after, 4_000_000, 1_000),
    );
    let stale = old.over(&after, 4_000_000, 1_000);
    assert_eq!(old.over(&before, 4_000_000, 1_000), old.certificate.micros);
    assert!(
        new.certificate.micros * 100 <= stale * 80,
        "{stale} {:?}",
        new.certificate
    );
}

#[test]
fn sixteen_members_are_solved_while_a_round_waits() {
    let random = |from: usize, to: usize| 10 + ((37 * from + 91 * to) % 17) as u64 * 20;
    let solution = Solution::new(&codes(16, random), 8_000_000, 10_000);
    let Certificate {
        micros,
        butterfly,
        least,
        ..
    } = solution.certificate;
    println!("{micros} us by trees, {butterfly} by the butterfly, {least} at least");
    assert!(least <= micros && micros <= butterfly);
}

#[test]
fn the_butterfly_of_a_round_that_measures_is_complete() {
    for n in 2..=64 {
        let solution = Solution::butterfly(n);
        let mut sends = solution.sends.clone();
        sends.sort_unstable();
        sends.dedup();
        assert_eq!(sends.len(), 2 * n * (n - 1));
        let inverse = |send: &Send| Send {
            shard: send.shard,
            down: !send.down,
            from: send.to,
            to: send.from,
        };
        assert!(
            sends
                .iter()
                .all(|send| sends.binary_search(&inverse(send)).is_ok()),
            "{n}"
        );
    }
}
