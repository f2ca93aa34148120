//! The pairs of `bandwidth-matching` where peers agree on the rates of their links: they connect, they
//! are fast, and they mix as the linear model says.

#![allow(
    clippy::needless_range_loop,
    reason = "matrices are read by row and column at once"
)]

use murmurate_protocol::{LinkRates, Round, Topology};
use murmurate_strategies::topology::{BandwidthMatching, RandomMatching};

/// A class that looks random, from 1 to 32, and sometimes none.
fn class(seed: u64, a: usize, b: usize) -> u8 {
    let mixed = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (((a as u64) << 32) | b as u64);
    let mixed = mixed.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed >> 40) % 33) as u8
}

fn random_rates(seed: u64, count: usize) -> LinkRates {
    LinkRates::new(count, |a, b| class(seed, a, b))
}

/// Two sites of this many peers: links within are fast, links across slow.
fn two_sites(each: usize) -> LinkRates {
    LinkRates::new(
        2 * each,
        |a, b| if (a < each) == (b < each) { 30 } else { 20 },
    )
}

/// Whether pairs connect all peers.
fn connected(count: usize, pairs: &[(usize, usize)]) -> bool {
    let mut reached = vec![false; count];
    reached[0] = true;
    for _ in 0..count {
        for (a, b) in pairs {
            if reached[*a] || reached[*b] {
                (reached[*a], reached[*b]) = (true, true);
            }
        }
    }
    reached.into_iter().all(|peer| peer)
}

#[test]
fn pairs_are_pairs_and_every_window_connects_all_peers() {
    for count in 2..=33usize {
        for every in [2, 5, 8] {
            let least = u64::from(count.next_power_of_two().trailing_zeros());
            let window = least.max(every);
            for seed in 0..4 {
                for rates in [random_rates(seed, count), two_sites(count / 2)] {
                    let count = rates.count();
                    let topology = BandwidthMatching::new(seed, 0.3, every);
                    let least = u64::from(count.next_power_of_two().trailing_zeros());
                    let window = window.min(least.max(every));
                    let mut all = Vec::new();
                    for round in 3 * window..4 * window {
                        let pairs = topology.pairs(Round(round), &rates);
                        for (a, partner) in pairs.iter().enumerate() {
                            let Some(b) = *partner else { continue };
                            assert_eq!(pairs[b], Some(a));
                            assert_ne!(a, b);
                            all.push((a, b));
                        }
                        // All ranks in the first round, in the others one of them.
                        let first = round == 3 * window;
                        let one = round as usize % count;
                        for rank in (0..count).filter(|rank| first || *rank == one) {
                            let partners = topology.partners_by_rate(Round(round), rank, &rates);
                            let expected: Vec<_> =
                                pairs[rank].map(|b| (b, 0.5)).into_iter().collect();
                            assert_eq!(partners.send, expected);
                        }
                    }
                    assert!(
                        connected(count, &all),
                        "n {count}, every {every}, seed {seed}"
                    );
                }
            }
        }
    }
}

#[test]
fn where_all_links_are_alike_pairs_are_random_ones() {
    let rates = LinkRates::new(8, |_, _| 7);
    let (mine, random) = (BandwidthMatching::new(3, 0.5, 64), RandomMatching::new(3));
    let differ = (0..640).filter(|round| {
        let of = |rank| mine.partners_by_rate(Round(*round), rank, &rates);
        (0..8).any(|rank| of(rank) != random.partners(Round(*round), rank, 8))
    });
    // Eight peers are connected long before a window's last rounds.
    assert_eq!(differ.count(), 0);
}

/// The mean over rounds of the slowest class among the pairs, and of how many peers rest.
fn slowest(
    rounds: u64,
    rates: &LinkRates,
    partners: impl Fn(u64, usize) -> Option<usize>,
) -> [f64; 2] {
    let (mut slowest, mut resting) = (0.0, 0.0);
    for round in 0..rounds {
        let pairs: Vec<_> = (0..rates.count())
            .map(|a| (a, partners(round, a)))
            .collect();
        let classes = pairs
            .iter()
            .filter_map(|(a, b)| Some(rates.class(*a, (*b)?)));
        slowest += f64::from(classes.min().expect("a pair"));
        resting += pairs.iter().filter(|(_, b)| b.is_none()).count() as f64;
    }
    [slowest / rounds as f64, resting / rounds as f64]
}

#[test]
fn the_slowest_pair_of_a_round_is_faster_than_that_of_random_pairs() {
    let rates = LinkRates::new(32, |a, b| class(5, a, b).max(1));
    let (mine, random) = (BandwidthMatching::new(1, 0.25, 8), RandomMatching::new(1));
    let of = |topology: &dyn Fn(u64, usize) -> murmurate_protocol::Partners| {
        slowest(400, &rates, |round, rank| {
            topology(round, rank).receive.first().copied()
        })
    };
    let fast = of(&|round, rank| mine.partners_by_rate(Round(round), rank, &rates));
    let usual = of(&|round, rank| random.partners(Round(round), rank, 32));
    println!("slowest class and peers that rest: {fast:?}, random pairs {usual:?}");
    // The fastest quarter of classes from 1 to 32 begins at 24 or 25. The slowest of 16 random ones is
    // at 32 / 17 on average. A maximal matching of a quarter of the links leaves some peers over.
    assert!(fast[0] > 20.0 && fast[1] < 6.0, "{fast:?}");
    assert!(usual[0] < 4.0, "{usual:?}");
}

/// Two sites of m peers each. Within a window the sites mix inside, and one pair across joins them. The
/// vector of the sites, +1 and -1, keeps its values but for the two peers of that pair, which become
/// zero: the difference of the sites shrinks by the factor `1 - 1/m` in each window.
#[test]
fn sites_approach_each_other_at_the_rate_of_the_model() {
    for each in [4usize, 8] {
        let (rates, windows, every) = (two_sites(each), 60, 12);
        let mut factor = 0.0;
        for seed in 0..8 {
            let topology = BandwidthMatching::new(seed, 0.3, every);
            let mut values: Vec<f64> = (0..2 * each)
                .map(|a| if a < each { 1.0 } else { -1.0 })
                .collect();
            for round in 0..windows * every {
                let pairs = topology.pairs(Round(round), &rates);
                let mixed =
                    |a: usize| pairs[a].map_or(values[a], |b| 0.5 * (values[a] + values[b]));
                values = (0..2 * each).map(mixed).collect();
            }
            let difference: f64 =
                values[..each].iter().sum::<f64>() - values[each..].iter().sum::<f64>();
            let mean: f64 = values.iter().sum();
            assert!(mean.abs() < 1e-9, "the mean stays");
            factor += (difference / (2 * each) as f64).powf(1.0 / windows as f64) / 8.0;
        }
        let model = 1.0 - 1.0 / each as f64;
        println!("{each} and {each}: {factor:.4} a window, model {model:.4}");
        // Inside a site eleven rounds of random pairs leave 2^-11 of the variance that one pair brings.
        assert!(
            (factor / model - 1.0).abs() < 0.01,
            "{factor} is not {model}"
        );
    }
}
