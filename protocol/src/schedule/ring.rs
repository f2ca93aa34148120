//! Ring: shard s starts at rank s + 1 and takes one member's contribution up after the other until
//! it is whole at rank s; its aggregate goes around once more.
//!
//! With n members and m encoded bytes: n shards, 2 (n - 1) hops, 2 n (n - 1) pushes; each member
//! sends 2 (n - 1) of them, 2 m (n - 1) / n bytes, all to one neighbour. No member sends less in
//! any algorithm, and none waits longer for the first byte: for few members or large fragments.
//! A partial sum is encoded again n - 2 times.
//!
//! **Source:** Patarasuk & Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
//! workstations", section 4.

use super::shape::{ScheduleCost, Trees};

#[derive(Debug)]
pub(super) struct Ring;

impl Trees for Ring {
    fn up(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        (rank != shard).then_some((rank + 1) % n)
    }

    fn down(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        (rank != shard).then_some((rank + n - 1) % n)
    }

    fn cost(&self, n: usize) -> ScheduleCost {
        let n = n as u64;
        ScheduleCost {
            shards: n,
            hops: 2 * (n - 1),
            pushes: 2 * n * (n - 1),
            busiest: 2 * (n - 1),
        }
    }
}
