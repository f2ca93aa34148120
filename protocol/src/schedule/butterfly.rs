//! Butterfly: member s owns shard s; every member pushes to every owner, every owner to all others.
//!
//! With n members and m encoded bytes: n shards, 2 hops, 2 n (n - 1) pushes; each member sends
//! 2 (n - 1) of them, 2 m (n - 1) / n bytes. The exchange does not carry it out as a schedule,
//! so that an owner can leave out late members.
//!
//! **Source:** Ryabinin et al. 2021 (Moshpit SGD), section 3.2; the bound: Patarasuk & Yuan 2009.

use super::shape::{ScheduleCost, Trees};

#[derive(Debug)]
pub(super) struct Butterfly;

impl Trees for Butterfly {
    fn up(&self, _: usize, shard: usize, rank: usize) -> Option<usize> {
        (rank != shard).then_some(shard)
    }

    fn down(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        self.up(n, shard, rank)
    }

    fn cost(&self, n: usize) -> ScheduleCost {
        let n = n as u64;
        ScheduleCost {
            shards: n,
            hops: 2,
            pushes: 2 * n * (n - 1),
            busiest: 2 * (n - 1),
        }
    }
}
