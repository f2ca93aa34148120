//! Halving-doubling, which is a tree, and recursive doubling, which is none.
//!
//! **Recursive doubling**: in log2 p steps pairs at distance 1, 2, 4, ... swap whole partial sums,
//! after which every member has the whole sum; no aggregate is passed on. The fewest steps of all,
//! and for small fragments the fastest; for large ones log2 p / 2 times the bytes of the others.
//!
//! Both members of a pair sum the same encoded values, their own included, in the same order. So
//! all hold the same bits after every step, and every member can check its aggregate against the
//! owner's hash.
//!
//! p is the largest power of two that is not above n; the r = n - p ranks that are too many fold as
//! in halving-doubling.
//!
//! With m encoded bytes: 1 shard, p log2 p + 2 r pushes of m bytes. The busiest member sends log2 p
//! of them, one more where r > 0. log2 p hops; one more where r > 0, because a pair whose one had
//! to wait for a fold waits once; two where r > p / 2, because then the wait may come back to
//! another that serves a folded one. A partial sum is encoded again log2 p - 1 times (once more
//! where r > 0).
//!
//! **Source:** Thakur, Rabenseifner & Gropp 2005, "Optimization of collective communication
//! operations in MPICH", section 4.5.

use crate::schedule::shape::{Plain, ScheduleCost, Trees};

/// Halving-doubling: in log2 p steps pairs at distance p/2, p/4, ..., 1 give each other the half
/// that the other keeps (recursive halving); then the same pairs, backwards, pass on whole shards
/// (recursive doubling). Seen from one shard that is a binomial tree, up and down.
///
/// p is the largest power of two that is not above n. The r = n - p ranks that are too many fold
/// first: of the first 2 r ranks the even ones give everything to the next odd one and get the
/// aggregates from it at the end.
///
/// With m encoded bytes: p shards, 2 log2 p hops (2 more where r > 0), 2 p (n - 1) pushes. The
/// busiest member sends 2 (p - 1) of them, 2 m (p - 1) / p bytes; where r > 0 the odd ones of the
/// fold send p more, 3 p - 2 in all. What a step sends to one partner leaves at once, a push a
/// shard. A partial sum is encoded again log2 p - 1 times (once more where r > 0).
///
/// **Source:** Thakur, Rabenseifner & Gropp 2005, "Optimization of collective communication
/// operations in MPICH", section 4.5 (Rabenseifner's algorithm and its fold).
#[derive(Debug)]
pub(super) struct HalvingDoubling;

/// The ranks that take part in the halving, and those that fold onto them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fold {
    /// Ranks of the core: a power of two.
    pub(super) core: usize,
    /// Ranks beyond it.
    pub(super) rest: usize,
}

impl Fold {
    pub(super) fn of(n: usize) -> Self {
        let core = power_below(n);
        Self {
            core,
            rest: n - core,
        }
    }

    /// Where in the core a rank is; none for those that fold onto the next rank.
    pub(super) fn place(self, rank: usize) -> Option<usize> {
        if rank < 2 * self.rest {
            (rank % 2 == 1).then_some(rank / 2)
        } else {
            Some(rank - self.rest)
        }
    }

    pub(super) fn rank(self, place: usize) -> usize {
        if place < self.rest {
            2 * place + 1
        } else {
            place + self.rest
        }
    }
}

impl Trees for HalvingDoubling {
    fn up(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        let fold = Fold::of(n);
        let Some(place) = fold.place(rank) else {
            return Some(rank + 1);
        };
        let apart = place ^ shard;
        (apart != 0).then(|| fold.rank(place ^ power_below(apart)))
    }

    fn cost(&self, n: usize) -> ScheduleCost {
        let Fold { core, rest } = Fold::of(n);
        let (p, folded) = (core as u64, u64::from(rest > 0));
        ScheduleCost {
            shards: p,
            hops: 2 * u64::from(p.ilog2()) + 2 * folded,
            pushes: 2 * p * (n as u64 - 1),
            busiest: 2 * (p - 1) + folded * p,
        }
    }
}

/// The largest power of two that is not above n.
fn power_below(n: usize) -> usize {
    1 << n.max(1).ilog2()
}

/// The rank whose name the aggregate bears: the first of the core.
pub(super) fn owner(n: usize) -> usize {
    Fold::of(n).rank(0)
}

pub(super) fn plain(n: usize, rank: usize) -> Plain {
    let fold = Fold::of(n);
    let mut plain = Plain::default();
    let Some(place) = fold.place(rank) else {
        plain.stages.push((Some(rank + 1), Vec::new()));
        plain.server = Some(rank + 1);
        return plain;
    };
    if place < fold.rest {
        plain.stages.push((None, vec![rank - 1]));
        plain.serves.push(rank - 1);
    }
    for step in 0..fold.core.ilog2() {
        let partner = fold.rank(place ^ (1 << step));
        plain.stages.push((Some(partner), vec![partner]));
    }
    plain.ends = true;
    plain
}

pub(super) fn cost(n: usize) -> ScheduleCost {
    let Fold { core, rest } = Fold::of(n);
    let (steps, rest) = (u64::from(core.ilog2()), rest as u64);
    let folded = u64::from(rest > 0);
    ScheduleCost {
        shards: 1,
        hops: steps + folded + u64::from(2 * rest > core as u64),
        pushes: core as u64 * steps + 2 * rest,
        busiest: steps + folded,
    }
}
