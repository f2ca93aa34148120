//! Laws of the topologies for every number of peers from 1 to 64: what their mixing matrices promise.

#![allow(
    clippy::needless_range_loop,
    reason = "matrices are read by row and column at once"
)]

use crate::numbers::spectrum::{contraction, eigenvalues, mixing_matrix};
use crate::{mixed, topology};
use murmurate_protocol::{Partners, Round, Topology};
use murmurate_strategies::topology::{
    BaseK, EquiDyn, EquiStatic, Exponential, Hypercube, Islands, Matcha, Moshpit, NullCascade,
    OnePeerExponential, RandomGroups, RandomMatching, RandomRegular, Ring, Star, TopologyKind,
    Torus,
};
use std::f64::consts::PI;

type Matrix = Vec<Vec<f64>>;

/// Every kind, those with parameters more than once.
fn kinds() -> Vec<TopologyKind> {
    let more = [
        topology("base-k", &[("degree", 2.0)]),
        topology("base-k", &[("degree", 4.0)]),
        topology("equi-static", &[("degree", 1.0)]),
        topology("hierarchical", &[("group", 2.0)]),
        topology("hierarchical", &[("group", 7.0)]),
        topology("islands", &[("group", 3.0), ("every", 2.0)]),
        topology("islands", &[("group", 7.0), ("every", 5.0)]),
        topology("matcha", &[("budget", 1.0)]),
        topology("moshpit", &[("group", 2.0)]),
        topology("moshpit", &[("group", 64.0)]),
        topology("random-regular", &[("degree", 3.0)]),
        topology("random-groups", &[("group", 2.0)]),
        topology("random-groups", &[("group", 7.0)]),
    ];
    TopologyKind::all().into_iter().chain(more).collect()
}

fn multiply(a: &Matrix, b: &Matrix) -> Matrix {
    let n = a.len();
    let mut product = vec![vec![0.0; n]; n];
    for i in 0..n {
        for (k, share) in a[i].iter().enumerate().filter(|(_, share)| **share != 0.0) {
            for j in 0..n {
                product[i][j] += share * b[k][j];
            }
        }
    }
    product
}

/// The product of `rounds` mixing matrices from round `first` on.
fn product(topology: &dyn Topology, first: u64, rounds: u64, count: usize) -> Matrix {
    let mut all = mixing_matrix(topology, Round(first), count);
    for round in first + 1..first + rounds {
        all = multiply(&mixing_matrix(topology, Round(round), count), &all);
    }
    all
}

/// The mixing matrix of what each rank pushes.
fn matrix(count: usize, send: impl Fn(usize) -> Vec<(usize, f64)>) -> Matrix {
    let mut w = vec![vec![0.0; count]; count];
    for rank in 0..count {
        let send = send(rank);
        w[rank][rank] = 1.0 - send.iter().map(|(_, share)| share).sum::<f64>();
        send.iter().for_each(|(to, share)| w[*to][rank] = *share);
    }
    w
}

fn assert_mean(w: &Matrix, what: &str) {
    let mean = 1.0 / w.len() as f64;
    for share in w.iter().flatten() {
        // Rounding of a few dozen products of shares.
        assert!(
            (share - mean).abs() < 1e-12,
            "{what}: {share} is not {mean}"
        );
    }
}

#[test]
fn matrices_are_doubly_stochastic_and_symmetric_where_claimed() {
    for kind in kinds() {
        let topology = kind.build(11);
        for count in 1..=64 {
            for round in 0..12 {
                let w = mixing_matrix(&*topology, Round(round), count);
                for i in 0..count {
                    let row: f64 = w[i].iter().sum();
                    let column: f64 = w.iter().map(|row| row[i]).sum();
                    assert!((row - 1.0).abs() < 1e-12, "{kind:?} n {count} row {row}");
                    assert!((column - 1.0).abs() < 1e-12, "{kind:?} n {count} {column}");
                    assert!(w[i].iter().all(|share| *share >= 0.0), "{kind:?} n {count}");
                    assert!(
                        w[i][i] > 1e-3,
                        "{kind:?} n {count}: every peer keeps a share"
                    );
                    if kind.spec().symmetric {
                        for j in 0..i {
                            assert!((w[i][j] - w[j][i]).abs() < 1e-15, "{kind:?} n {count}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_mean_is_kept() {
    for kind in kinds() {
        let topology = kind.build(5);
        for count in [3, 10, 31, 64] {
            let mut x: Vec<f64> = (0..count).map(|i| ((i * 37) % 11) as f64 - 4.0).collect();
            let mean = x.iter().sum::<f64>() / count as f64;
            for round in 0..20 {
                x = mixed(&mixing_matrix(&*topology, Round(round), count), &x);
            }
            let after = x.iter().sum::<f64>() / count as f64;
            assert!(
                (after - mean).abs() < 1e-12,
                "{kind:?}: {mean} became {after}"
            );
        }
    }
}

#[test]
fn partners_agree() {
    for kind in kinds() {
        let topology = kind.build(3);
        for count in 1..=64 {
            for round in (0..12).map(Round) {
                let all: Vec<Partners> = (0..count)
                    .map(|rank| topology.partners(round, rank, count))
                    .collect();
                let mut pushed = vec![Vec::new(); count];
                for (rank, partners) in all.iter().enumerate() {
                    for (to, _) in &partners.send {
                        assert_ne!(*to, rank, "{kind:?}: no peer pushes to itself");
                        pushed[*to].push(rank);
                    }
                }
                for (rank, partners) in all.iter().enumerate() {
                    assert_eq!(partners.receive, pushed[rank], "{kind:?} n {count}");
                    if kind.spec().symmetric {
                        let to: Vec<usize> = partners.send.iter().map(|(to, _)| *to).collect();
                        assert_eq!(partners.receive, to, "{kind:?} n {count}");
                    }
                }
            }
        }
    }
}

#[test]
fn one_peer_schedules_push_once_and_hear_once() {
    let one_peer = [
        topology("base-k", &[("degree", 1.0)]),
        topology("equi-dyn", &[]),
        topology("one-peer-exponential", &[]),
        topology("random-matching", &[]),
        topology("moshpit", &[("group", 2.0)]),
    ];
    for kind in one_peer {
        let topology = kind.build(3);
        for count in 1..=64 {
            for round in 0..20 {
                for rank in 0..count {
                    let partners = topology.partners(Round(round), rank, count);
                    assert!(
                        partners.send.len() <= 1 && partners.receive.len() <= 1,
                        "{kind:?}"
                    );
                }
            }
        }
    }
    for degree in 1..6 {
        for count in 1..=64 {
            let topology = BaseK::new(degree);
            for (round, rank) in
                (0..topology.rounds(count)).flat_map(|r| (0..count).map(move |i| (r, i)))
            {
                let partners = topology.partners(Round(round), rank, count);
                assert!(partners.send.len() <= degree, "k {degree} n {count}");
            }
        }
    }
}

#[test]
fn averaging_is_exact_in_finite_time() {
    for count in 2..=64usize {
        for degree in [1, 2, 3, 4] {
            let topology = BaseK::new(degree);
            let rounds = topology.rounds(count);
            for first in [0, 5 * rounds] {
                assert_mean(
                    &product(&topology, first, rounds, count),
                    &format!("base-{} n {count}", degree + 1),
                );
            }
        }
        let rounds = NullCascade::rounds(count);
        for first in [0, 1, 17] {
            let what = format!("null-cascade n {count} from round {first}");
            assert_mean(&product(&NullCascade, first, rounds, count), &what);
        }
    }
    for tau in 1..=6u64 {
        for first in [0, 4] {
            let all = product(&OnePeerExponential, first, tau, 1 << tau);
            // Sums of powers of two: exact.
            let mean = 1.0 / f64::from(1u32 << tau);
            assert!(all.iter().flatten().all(|share| *share == mean));
        }
    }
    for (side, axes) in [(2usize, 6u32), (3, 3), (4, 3), (8, 2)] {
        let topology = Moshpit::new(side);
        let count = side.pow(axes);
        assert_eq!(topology.axes(count), u64::from(axes));
        assert_mean(&product(&topology, 1, u64::from(axes), count), "moshpit");
    }
}

/// Members of a round's groups, each once.
fn groups(topology: &dyn Topology, round: u64, count: usize) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for rank in 0..count {
        let partners = topology.partners(Round(round), rank, count);
        let mut members = partners.receive;
        members.push(rank);
        members.sort_unstable();
        match groups.iter().find(|known| known.contains(&rank)) {
            Some(known) => assert_eq!(*known, members, "both say who is in it"),
            None => groups.push(members),
        }
    }
    groups
}

#[test]
fn random_groups_part_the_peers_evenly_and_mix_at_the_rate_of_the_model() {
    for (group, count) in [(2, 8), (3, 9), (4, 16), (4, 5), (8, 64), (5, 33), (64, 7)] {
        let topology = RandomGroups::new(group, 11);
        let (mut met, mut rounds) = (vec![false; count], 0);
        while !met.iter().all(|met| *met) {
            let groups = groups(&topology, rounds, count);
            assert_eq!(groups.len(), count.div_ceil(group), "{group} of {count}");
            let sizes = groups.iter().map(Vec::len);
            let (least, most) = (sizes.clone().min(), sizes.max());
            assert!(most <= Some(group) && most <= least.map(|least| least + 1));
            let own = groups.iter().find(|members| members.contains(&0));
            own.unwrap().iter().for_each(|other| met[*other] = true);
            rounds += 1;
            assert!(rounds < 1000, "{group} of {count}: some never meet");
        }
    }
    // W is a projection: E ||W x||^2 = x' E[W] x, and E[W] has one eigenvalue beside the mean's.
    for (group, count) in [(2, 8), (4, 16), (3, 9), (8, 64)] {
        let topology = RandomGroups::new(group, 5);
        let start: Vec<f64> = (0..count).map(|i| ((i * 37) % 11) as f64).collect();
        let mean = start.iter().sum::<f64>() / count as f64;
        let x: Vec<f64> = start.iter().map(|v| v - mean).collect();
        let square = |x: &[f64]| x.iter().map(|v| v * v).sum::<f64>();
        let (draws, before) = (20_000, square(&x));
        let mut left = 0.0;
        for round in 0..draws {
            for members in groups(&topology, round, count) {
                let sum: f64 = members.iter().map(|i| x[*i]).sum();
                left += sum * sum / members.len() as f64;
            }
        }
        let (g, n) = (group as f64, count as f64);
        let expected = (n - g) / (g * (n - 1.0));
        let found = left / draws as f64 / before;
        // Five standard errors of the mean over the draws, whose spread is at most the mean.
        let off = (found - expected).abs();
        assert!(
            off < 5.0 * expected / (draws as f64).sqrt() + 1e-12,
            "{found} {expected}"
        );
    }
}

/// Pushes of a round that lead from one island of `group` ranks to another.
fn crossing(topology: &dyn Topology, round: u64, group: usize, count: usize) -> usize {
    let of = |rank| {
        let send = topology.partners(Round(round), rank, count).send;
        let across = send.iter().filter(|(to, _)| to / group != rank / group);
        across.count()
    };
    (0..count).map(of).sum()
}

#[test]
fn islands_are_one_within_and_all_are_after_a_mean_across() {
    for (group, islands, every) in [(2, 2, 2), (3, 4, 3), (4, 2, 5), (5, 1, 4), (8, 4, 7)] {
        let (topology, count) = (Islands::new(group, every), group * islands);
        // Across, then within.
        assert_mean(
            &product(&topology, every - 1, 2, count),
            &format!("{group} {islands}"),
        );
        // Every peer trains before every mean.
        let mut x = vec![0.0f64; count];
        let mut trained = vec![0.0; count];
        for round in 0..3 * every {
            for rank in 0..count {
                trained[rank] = ((rank * 31 + round as usize * 17) % 13) as f64;
                x[rank] += trained[rank];
            }
            x = mixed(&mixing_matrix(&topology, Round(round), count), &x);
            let crossed = crossing(&topology, round, group, count);
            if topology.across(Round(round)) {
                assert_eq!(crossed, count * (islands - 1));
                continue;
            }
            assert_eq!(crossed, 0);
            for rank in 0..count {
                assert!((x[rank] - x[rank / group * group]).abs() < 1e-9, "{x:?}");
            }
            if round > 0 && topology.across(Round(round - 1)) {
                let mean = |island: usize| {
                    let own = &trained[island * group..][..group];
                    own.iter().sum::<f64>() / group as f64
                };
                for island in 0..islands {
                    let apart = (x[island * group] - mean(island)) - (x[0] - mean(0));
                    assert!(apart.abs() < 1e-9, "round {round}: {x:?}");
                }
            }
        }
    }
}

#[test]
fn base_k_takes_about_twice_the_logarithm_of_n_rounds() {
    for degree in 1..5u64 {
        for count in 2..=64usize {
            let rounds = BaseK::new(degree as usize).rounds(count);
            let log = (count as f64).ln() / (degree as f64 + 1.0).ln();
            // Theorem 1: 2 log_{k+1} n + 2.
            assert!(
                rounds as f64 <= 2.0 * log + 2.0 + 1e-9,
                "k {degree} n {count}: {rounds}"
            );
        }
    }
}

#[test]
fn null_cascade_commutes() {
    for count in [6, 9, 10, 15, 35, 48] {
        let rounds = NullCascade::rounds(count);
        for (a, b) in (0..rounds).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let [a, b] = [a, b].map(|r| mixing_matrix(&NullCascade, Round(r), count));
            let (ab, ba) = (multiply(&a, &b), multiply(&b, &a));
            let same = ab.iter().flatten().zip(ba.iter().flatten());
            assert!(same.into_iter().all(|(x, y)| (x - y).abs() < 1e-14));
        }
    }
}

fn gap(topology: &dyn Topology, count: usize) -> f64 {
    1.0 - contraction(&mixing_matrix(topology, Round(0), count))
}

#[test]
fn spectral_gaps_are_their_closed_forms() {
    for count in 3..=64usize {
        let found = gap(&Ring, count);
        let waves =
            (1..count).map(|k| (1.0 + 2.0 * (2.0 * PI * k as f64 / count as f64).cos()) / 3.0);
        let expected = 1.0 - waves.map(f64::abs).fold(0.0, f64::max);
        assert!(
            (found - expected).abs() < 1e-9,
            "ring {count}: {found} {expected}"
        );
        assert!(
            (gap(&Star, count) - 1.0 / count as f64).abs() < 1e-9,
            "star {count}"
        );
    }
    for d in 2..=6u32 {
        let found = gap(&Hypercube, 1 << d);
        let expected = 2.0 / f64::from(d + 1);
        assert!((found - expected).abs() < 1e-9, "hypercube {d}: {found}");
    }
    for count in 2..=64usize {
        let tau = f64::from(count.next_power_of_two().ilog2());
        let (found, bound) = (gap(&Exponential, count), 2.0 / (tau + 1.0));
        assert!(found > bound - 1e-9, "exponential {count}: {found}");
        if count % 2 == 0 {
            assert!((found - bound).abs() < 1e-9, "exponential {count}: {found}");
        }
    }
    for (rows, columns) in [(3usize, 3usize), (2, 4), (4, 5), (2, 31), (8, 8), (1, 13)] {
        let turn = |k: usize, m: usize| match m {
            1 => 0.0,
            2 => (PI * k as f64).cos(),
            _ => 2.0 * (2.0 * PI * k as f64 / m as f64).cos(),
        };
        let degree = rows.min(3) - 1 + columns.min(3) - 1;
        let waves = (1..rows * columns).map(|k| {
            (1.0 + turn(k / columns, rows) + turn(k % columns, columns)) / (1 + degree) as f64
        });
        let expected = 1.0 - waves.map(f64::abs).fold(0.0, f64::max);
        let found = gap(&Torus, rows * columns);
        assert!(
            (found - expected).abs() < 1e-9,
            "torus {rows} x {columns}: {found}"
        );
    }
}

#[test]
fn equi_topologies_contract_at_a_rate_that_does_not_depend_on_n() {
    for count in [2usize, 5, 16, 33, 64] {
        // The mean of W^T W over all distances: E ||W x||^2 as a quadratic form.
        let mut mean = vec![vec![0.0; count]; count];
        for shift in 1..count {
            let w = matrix(count, |rank| EquiDyn::at_distance(shift, rank, count).send);
            for (i, j) in (0..count).flat_map(|i| (0..count).map(move |j| (i, j))) {
                let square: f64 = (0..count).map(|k| w[k][i] * w[k][j]).sum();
                mean[i][j] += (square - 1.0 / count as f64) / (count - 1) as f64;
            }
        }
        let worst = eigenvalues(mean).into_iter().fold(0.0, f64::max);
        assert!(worst <= 0.5 + 1e-9, "equi-dyn n {count}: {worst}");
    }
    // 2 sqrt of the sampling error with M distances, seen over 20 seeds: about 1 / sqrt(M) each.
    for seed in 0..20 {
        for count in [17usize, 33, 64] {
            let w = mixing_matrix(&EquiStatic::new(seed, 32), Round(0), count);
            assert!(
                contraction(&w) < 0.75,
                "seed {seed} n {count}: {}",
                contraction(&w)
            );
        }
    }
}

#[test]
fn random_regular_graphs_are_expanders() {
    for seed in 0..10 {
        for count in [32usize, 64] {
            let found = contraction(&mixing_matrix(
                &RandomRegular::new(seed, 6),
                Round(0),
                count,
            ));
            // Alon-Boppana for the limit; finite graphs and doubled edges are a little off.
            let limit = (1.0 + 2.0 * 5f64.sqrt()) / 7.0;
            assert!(
                found < limit + 0.12,
                "seed {seed} n {count}: {found} {limit}"
            );
        }
    }
}

#[test]
fn matcha_follows_its_expectation() {
    for count in [6usize, 9, 16, 25] {
        let degree = Torus.partners(Round(0), 0, count).send.len();
        let all = mixing_matrix(&Torus, Round(0), count);
        assert_eq!(mixing_matrix(&Matcha::new(1, 1.0), Round(4), count), all);
        let budget = 0.4;
        let mut mean = vec![vec![0.0; count]; count];
        for draw in 0..64u32 {
            let active = [0, 1, 2, 3, 4, 5].map(|bit| draw >> bit & 1 == 1);
            let on = draw.count_ones() as i32;
            let weight = f64::powi(budget, on) * f64::powi(1.0 - budget, 6 - on);
            let w = matrix(count, |rank| Matcha::with_active(active, rank, count).send);
            let square = multiply(&w, &w);
            for (i, j) in (0..count).flat_map(|i| (0..count).map(move |j| (i, j))) {
                mean[i][j] += weight * square[i][j];
            }
        }
        // L from the torus: W = I - alpha L.
        let alpha = 1.0 / (1 + degree) as f64;
        let l: Matrix = (0..count)
            .map(|i| {
                (0..count)
                    .map(|j| (f64::from(u8::from(i == j)) - all[i][j]) / alpha)
                    .collect()
            })
            .collect();
        let l2 = multiply(&l, &l);
        for (i, j) in (0..count).flat_map(|i| (0..count).map(move |j| (i, j))) {
            let expected = f64::from(u8::from(i == j)) - 2.0 * alpha * budget * l[i][j]
                + alpha
                    * alpha
                    * (budget * budget * l2[i][j] + 2.0 * budget * (1.0 - budget) * l[i][j]);
            assert!(
                (mean[i][j] - expected).abs() < 1e-12,
                "n {count} ({i}, {j})"
            );
        }
    }
}

#[test]
fn matchings_change_by_round_and_seed_but_not_by_peer() {
    let pairs = |seed, round| {
        let topology = RandomMatching::new(seed);
        (0..9)
            .map(|rank| topology.partners(Round(round), rank, 9).receive)
            .collect::<Vec<_>>()
    };
    assert_eq!(pairs(1, 5), pairs(1, 5));
    assert_ne!(pairs(1, 5), pairs(1, 6));
    assert_ne!(pairs(1, 5), pairs(2, 5));
    assert_eq!(
        pairs(1, 5)
            .iter()
            .filter(|partners| partners.is_empty())
            .count(),
        1
    );
}

#[test]
fn every_pair_is_matched_equally_often() {
    let rounds = 6000u64;
    let mut met = [0u32; 6];
    for round in 0..rounds {
        let partners = RandomMatching::new(3).partners(Round(round), 0, 6);
        met[partners.receive[0]] += 1;
    }
    for count in &met[1..] {
        // 1200 expected, standard deviation 31: five of them.
        assert!(count.abs_diff(1200) < 155, "{met:?}");
    }
}
