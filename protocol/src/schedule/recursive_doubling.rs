//! Recursive doubling: in log2 p steps pairs at distance 1, 2, 4, ... swap whole partial sums,
//! after which every member has the whole sum; no aggregate is passed on. The fewest steps of all,
//! and for small fragments the fastest; for large ones log2 p / 2 times the bytes of the others.
//!
//! Both members of a pair sum the same encoded values, their own included, in the same order. So
//! all hold the same bits after every step, and every member can check its aggregate against the
//! owner's hash.
//!
//! p is the largest power of two that is not above n; the r = n - p ranks that are too many fold as
//! in `halving_doubling`.
//!
//! With m encoded bytes: 1 shard, p log2 p + 2 r pushes of m bytes. The busiest member sends log2 p
//! of them, one more where r > 0. log2 p hops; one more where r > 0, because a pair whose one had
//! to wait for a fold waits once; two where r > p / 2, because then the wait may come back to
//! another that serves a folded one. A partial sum is encoded again log2 p - 1 times (once more
//! where r > 0).
//!
//! **Source:** Thakur, Rabenseifner & Gropp 2005, "Optimization of collective communication
//! operations in MPICH", section 4.5.

use super::halving_doubling::Fold;
use super::shape::{Plain, ScheduleCost};

/// The rank whose name the aggregate bears: the first of the core.
pub(super) fn owner(n: usize) -> usize {
    Fold::of(n).rank(0)
}

/// What a rank does.
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
