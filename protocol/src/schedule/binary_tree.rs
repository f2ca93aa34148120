//! Binary tree: contributions climb to rank 0, each node adding its own; the aggregate descends.
//! The children of rank i are 2 i + 1 and 2 i + 2. Fragments follow one another through it: the
//! window of fragments is its pipeline.
//!
//! With n members and m encoded bytes: 1 shard, 2 floor(log2 n) hops, 2 (n - 1) pushes of m bytes.
//! The busiest member (an inner one with two children) sends 3 of them from n = 5 on, before that
//! 1, 2, 2; half of the members are leaves and send one. A partial sum is encoded again
//! floor(log2 n) - 1 times.
//!
//! **Source:** Thakur, Rabenseifner & Gropp 2005, sections 4.3 and 4.4 (reduce, then broadcast).

use super::shape::{ScheduleCost, Trees};

#[derive(Debug)]
pub(super) struct BinaryTree;

/// The parent of a place in the heap.
pub(super) fn parent(place: usize) -> Option<usize> {
    Some(place.checked_sub(1)? / 2)
}

/// Hops up and down a heap of n places.
pub(super) fn hops(n: usize) -> u64 {
    2 * u64::from(n.ilog2())
}

impl Trees for BinaryTree {
    fn up(&self, _: usize, _: usize, rank: usize) -> Option<usize> {
        parent(rank)
    }

    fn down(&self, _: usize, _: usize, rank: usize) -> Option<usize> {
        parent(rank)
    }

    fn cost(&self, n: usize) -> ScheduleCost {
        ScheduleCost {
            shards: 1,
            hops: hops(n),
            pushes: 2 * (n as u64 - 1),
            busiest: match n {
                2 => 1,
                3 | 4 => 2,
                _ => 3,
            },
        }
    }
}
