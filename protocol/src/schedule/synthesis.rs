//! Schedules from measured links, in the manner of Blink (Wang et al., MLSys 2020): trees are packed
//! onto the links so that the most loaded one carries as little as possible.
//!
//! A link from i to j has the rate that was measured over it alone. A peer's own line has in each
//! direction the rate of its fastest link. With k trees each shard is m / k bytes; an edge between a
//! rank and its parent carries one shard up, while sums climb, and then one down, while results
//! descend. A result exists only once its sum does, so for one fragment the two follow one another, and
//! a packing costs, for a byte,
//!
//! T = sum over both ways of max over links, lines out and lines in of (shards over it) / (k rate),
//!
//! and the butterfly is the packing of n stars. The search begins there and moves one rank of one tree
//! to another parent, its root to another rank, or swaps two ranks of a tree, as long as T falls, or the sum of squared loads at
//! the same T. It finds a local optimum; the certificate states the bound below which
//! no packing can be, so that everyone sees how far it may be from the best:
//!
//! T >= 2 (n - 1) / (sum of lines out), because any tree has n - 1 edges up and down, and
//! T >= 1 / (rate out of S) for any set S of peers, because a sum of its contributions must leave it.
//!
//! All of it is integer arithmetic in a fixed order: every peer that reads the same table makes the
//! same plan.

use super::Schedule;
use super::packing::{Packing, PackingCertificate, depth};
use super::rates::{LinkTable, MICROS_PER_MB};
use crate::limits::{LINK_MBIT_MAX, SYNTHESIS_KICKS, SYNTHESIS_PASSES_MAX, SYNTHESIZED_TREES_MAX};

/// A part of the butterfly's time that trees must save, one in this number: they take four hops
/// instead of two and encode sums once more.
const GAIN_ONE_IN: u64 = 10;

/// Trees that are moved at random before the next descent.
const KICKED_TREES: usize = 4;

/// How the ways up and down use a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ways {
    /// Results descend once all sums have climbed, so the most loaded lines of both ways add up.
    InTurn,
    /// Results descend while other shards climb, so a line's loads of both ways add up.
    Together,
}

/// What a packing loads every link and line with: shards, and the rate that carries them.
struct Loads<'a> {
    table: &'a LinkTable,
    /// While sums climb, and while results descend: links row by row, then lines out, then lines in.
    shards: [Vec<u64>; 2],
    /// What a shard on each costs: the fastest rate divided by its own.
    costs: Vec<u64>,
    ways: Ways,
}

/// The costs' unit: fine enough to tell the fastest links apart.
const UNIT: u64 = 1 << 10;

impl<'a> Loads<'a> {
    fn new(table: &'a LinkTable, ways: Ways) -> Self {
        let n = table.members();
        let rates = (0..n * n + 2 * n).map(|at| Self::rate(table, at));
        let fastest = (0..n).map(|rank| table.out(rank)).max().unwrap_or(1);
        let costs: Vec<u64> = rates.map(|rate| UNIT * fastest / rate).collect();
        Self {
            table,
            shards: [vec![0; costs.len()], vec![0; costs.len()]],
            costs,
            ways,
        }
    }

    /// The rate of a link or a line. Nothing goes from a rank to itself.
    fn rate(table: &LinkTable, at: usize) -> u64 {
        let n = table.members();
        match (at / n, at % n) {
            (from, to) if from < n && from == to => u64::from(LINK_MBIT_MAX),
            (from, to) if from < n => table.rate(from, to),
            (row, rank) if row == n => table.out(rank),
            (_, rank) => table.into(rank),
        }
    }

    fn tree(&mut self, parents: &[usize], add: bool) {
        let n = parents.len();
        let edges = parents
            .iter()
            .enumerate()
            .filter(|(rank, parent)| rank != *parent);
        for (rank, parent) in edges {
            let ways = [(rank, *parent), (*parent, rank)];
            for (shards, (from, to)) in self.shards.iter_mut().zip(ways) {
                for at in [from * n + to, n * n + from, n * n + n + to] {
                    shards[at] = if add { shards[at] + 1 } else { shards[at] - 1 };
                }
            }
        }
    }

    /// The largest loads of both ways, and the sum of squares, which tells equal ones apart.
    fn value(&self) -> (u64, u128) {
        let mut sum = (0, 0);
        if self.ways == Ways::Together {
            let [up, down] = &self.shards;
            for ((up, down), cost) in up.iter().zip(down).zip(&self.costs) {
                let load = (up + down) * cost;
                sum.0 = sum.0.max(load);
                sum.1 += u128::from(load) * u128::from(load);
            }
            return sum;
        }
        for shards in &self.shards {
            let mut most = 0;
            for (shards, cost) in shards.iter().zip(&self.costs) {
                let load = shards * cost;
                most = most.max(load);
                sum.1 += u128::from(load) * u128::from(load);
            }
            sum.0 += most;
        }
        sum
    }

    /// Microseconds of a megabyte, rounded up, when it is cut into this many shards.
    fn micros(&self, trees: usize) -> u64 {
        let way = |shards: &Vec<u64>| {
            let loaded = shards.iter().enumerate().filter(|(_, shards)| **shards > 0);
            let time = loaded.map(|(at, shards)| {
                let rate = Self::rate(self.table, at);
                (MICROS_PER_MB * shards).div_ceil(rate * trees as u64)
            });
            time.max().unwrap_or(0)
        };
        self.shards.iter().map(way).sum()
    }
}

/// The trees that one move makes of a tree: a rank, with its subtree, under another parent; another
/// rank as the root, with the old root below it; or two ranks in each other's places.
fn moves(parents: &[usize]) -> Vec<Vec<usize>> {
    let n = parents.len();
    let mut all = Vec::new();
    for rank in 0..n {
        for to in (0..n).filter(|to| *to != rank && *to != parents[rank]) {
            let mut other = parents.to_vec();
            other[rank] = to;
            if parents[rank] == rank {
                other[to] = to;
            }
            if depth(&other).is_some() {
                all.push(other);
            }
        }
        for with in 0..rank {
            let place = |at: usize| match at {
                at if at == rank => with,
                at if at == with => rank,
                at => at,
            };
            all.push((0..n).map(|at| place(parents[place(at)])).collect());
        }
    }
    all
}

/// Moves trees as long as that helps.
fn descend(trees: &mut [Vec<usize>], loads: &mut Loads<'_>) {
    for _ in 0..SYNTHESIS_PASSES_MAX {
        let before = loads.value();
        for tree in &mut *trees {
            let mut best = loads.value();
            loads.tree(tree, false);
            for other in moves(tree) {
                loads.tree(&other, true);
                let value = loads.value();
                loads.tree(&other, false);
                if value < best {
                    best = value;
                    tree.clone_from(&other);
                }
            }
            loads.tree(tree, true);
        }
        if loads.value() == before {
            return;
        }
    }
}

/// Packs trees, beginning with the butterfly's stars. Where moves help no more, some trees are moved at
/// random, and the result is kept unless it is worse in the end. The random numbers are a fixed row.
///
/// Special case: a packing at the bound is left as it is.
pub(super) fn pack(table: &LinkTable, count: usize, kicks: usize, ways: Ways) -> Vec<Vec<usize>> {
    let n = table.members();
    let least = match ways {
        Ways::InTurn => table.least(),
        // What loads of this kind are below is not known.
        Ways::Together => 0,
    };
    let mut trees: Vec<Vec<usize>> = (0..count).map(|tree| vec![tree % n; n]).collect();
    let mut loads = Loads::new(table, ways);
    for tree in &trees {
        loads.tree(tree, true);
    }
    descend(&mut trees, &mut loads);
    let mut state = 1u64;
    let mut draw = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..kicks {
        if ways == Ways::InTurn && loads.micros(count) <= least {
            break;
        }
        let (value, kept) = (loads.value(), trees.clone());
        for _ in 0..KICKED_TREES {
            let tree = &mut trees[draw(count)];
            let mut others = moves(tree);
            if others.is_empty() {
                continue;
            }
            loads.tree(tree, false);
            *tree = others.swap_remove(draw(others.len()));
            loads.tree(tree, true);
        }
        descend(&mut trees, &mut loads);
        if loads.value() > value {
            for (tree, kept) in trees.iter_mut().zip(kept) {
                loads.tree(tree, false);
                *tree = kept;
                loads.tree(tree, true);
            }
        }
    }
    trees
}

impl Schedule {
    /// Trees packed for these links, or the butterfly where trees would not save a tenth of its time.
    ///
    /// Special case: between equal links the butterfly is the best there is.
    pub fn synthesized(table: &LinkTable) -> Self {
        let n = table.members();
        let mut stars = Loads::new(table, Ways::InTurn);
        for root in 0..n {
            stars.tree(&vec![root; n], true);
        }
        let butterfly = stars.micros(n);
        let least = table.least();
        let count = n * (SYNTHESIZED_TREES_MAX / n);
        let trees = pack(table, count, SYNTHESIS_KICKS, Ways::InTurn);
        let mut packed = Loads::new(table, Ways::InTurn);
        trees.iter().for_each(|tree| packed.tree(tree, true));
        let micros = packed.micros(count);
        if micros * GAIN_ONE_IN > butterfly * (GAIN_ONE_IN - 1) {
            return Self::Butterfly;
        }
        let micro = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let certificate = PackingCertificate {
            micros: micro(micros),
            butterfly: micro(butterfly),
            least: micro(least.min(micros)),
        };
        Packing::new(&trees, certificate).map_or(Self::Butterfly, Self::Packed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(n: usize, rate: impl Fn(usize, usize) -> u32) -> LinkTable {
        LinkTable::new(
            (0..n)
                .map(|i| (0..n).map(|j| rate(i, j)).collect())
                .collect(),
        )
        .unwrap()
    }

    fn packing(table: &LinkTable) -> Packing {
        match Schedule::synthesized(table) {
            Schedule::Packed(packing) => packing,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn between_equal_links_the_butterfly_stays() {
        for n in 2..=16 {
            let equal = table(n, |_, _| 50);
            assert_eq!(Schedule::synthesized(&equal), Schedule::Butterfly, "{n}");
        }
    }

    #[test]
    fn a_slow_peer_sends_and_receives_little_more_than_one_message() {
        for (n, most) in [(4, 800_000), (8, 900_000), (16, 1_100_000)] {
            let links = table(n, |i, j| if i == 1 || j == 1 { 10 } else { 10_000 });
            let packing = packing(&links);
            let PackingCertificate {
                micros,
                butterfly,
                least,
            } = packing.certificate();
            // Each way half of a message, as the owner of half of the shards with one child each, in
            // place of (n - 1) / n. The search is local and may stop above that.
            assert_eq!(least, 800_000, "{n}");
            assert!((least..=most).contains(&micros), "{n}: {micros}");
            assert_eq!(butterfly, 1_600_000 * (n as u32 - 1) / n as u32, "{n}");
        }
    }

    #[test]
    fn traffic_goes_around_a_slow_link() {
        let links = table(6, |i, j| {
            if (i, j) == (0, 3) || (i, j) == (3, 0) {
                2
            } else {
                100
            }
        });
        let packing = packing(&links);
        let PackingCertificate {
            micros, butterfly, ..
        } = packing.certificate();
        // The butterfly sends two sixths of it at 2 Mbit/s.
        assert_eq!(butterfly, 2 * 666_667);
        assert!(micros < 200_000, "{packing:?}");
        let direct = |tree: &Vec<usize>| tree[0] == 3 || tree[3] == 0;
        assert!(!packing.trees().iter().any(direct), "{packing:?}");
    }

    #[test]
    fn two_sites_send_little_between_them() {
        let site = |rank: usize| rank / 4;
        let links = table(8, |i, j| if site(i) == site(j) { 1000 } else { 20 });
        let packing = packing(&links);
        let PackingCertificate {
            micros,
            butterfly,
            least,
        } = packing.certificate();
        // 32 pairs at 20 Mbit/s carry one sum each way if each tree crosses once.
        // Sixteen trees over sixteen pairs, each pair used for one tree in each direction and way.
        assert_eq!((micros, butterfly), (50_000, 100_000), "{packing:?}");
        assert!(least <= micros, "{packing:?}");
    }

    #[test]
    fn what_is_claimed_is_what_the_trees_load_and_never_below_the_bound() {
        let mut state = 3u64;
        let mut draw = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as u32
        };
        for case in 0..40 {
            let n = 2 + case % 9;
            let mut rows = vec![vec![0; n]; n];
            for at in 0..n * n {
                rows[at / n][at % n] = 1 + draw() % [3, 20, 1000, LINK_MBIT_MAX][case % 4];
            }
            let links = LinkTable::new(rows).unwrap();
            let schedule = Schedule::synthesized(&links);
            assert_eq!(schedule, Schedule::synthesized(&links));
            let Schedule::Packed(packing) = schedule else {
                continue;
            };
            let trees = packing.trees();
            let mut loads = Loads::new(&links, Ways::InTurn);
            for tree in &trees {
                loads.tree(tree, true);
            }
            let claim = packing.certificate();
            assert_eq!(u64::from(claim.micros), loads.micros(trees.len()));
            assert!(
                u64::from(claim.micros) * GAIN_ONE_IN
                    <= u64::from(claim.butterfly) * (GAIN_ONE_IN - 1)
            );
            assert!(claim.least <= claim.micros);
        }
    }

    /// Every packing of one tree among four ranks, by force: none is below the bound.
    #[test]
    fn no_tree_of_four_is_below_the_bound() {
        let links = table(4, |i, j| 5 + (7 * i + 3 * j) as u32 % 11);
        for code in 0..256 {
            let tree: Vec<usize> = (0..4).map(|rank| code >> (2 * rank) & 3).collect();
            if depth(&tree).is_none() {
                continue;
            }
            let mut loads = Loads::new(&links, Ways::InTurn);
            loads.tree(&tree, true);
            assert!(loads.micros(1) >= links.least(), "{tree:?}");
        }
    }

    #[test]
    fn tables_that_are_none_are_refused() {
        let refused = |rows: Vec<Vec<u32>>| LinkTable::new(rows).unwrap_err().to_string();
        assert!(refused(vec![vec![0]]).starts_with("1 rows"));
        assert!(refused(vec![vec![1; 17]; 17]).starts_with("17 rows"));
        assert!(refused(vec![vec![0, 1], vec![1]]).starts_with("row 1 has 1 numbers"));
        assert!(refused(vec![vec![0, 1], vec![0, 0]]).starts_with("from 1 to 0: 0 Mbit/s"));
        assert!(refused(vec![vec![0, LINK_MBIT_MAX + 1], vec![1, 0]]).starts_with("from 0 to 1"));
    }
}
