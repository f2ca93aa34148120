//! Double binary tree: one half of the fragment through a binary tree over the ranks as they are,
//! the other through one over the ranks in reverse. The inner places of a heap are its first
//! floor(n / 2), so that no rank is an inner one of both: every link is used, where a single
//! tree leaves half of them idle.
//!
//! With n members and m encoded bytes: 2 shards, 2 floor(log2 n) hops, 4 (n - 1) pushes of m / 2
//! bytes. The busiest member (an inner one with two children here, a leaf there) sends 4 of them
//! from n = 5 on, 2 m bytes; before that 2, 3, 3. A partial sum is encoded again floor(log2 n) - 1
//! times.
//!
//! **Source:** Sanders, Speck & Traeff 2009, "Two-tree algorithms for full bandwidth broadcast,
//! reduction and scan". Of it the property of the pair of trees; they number their trees in order
//! and colour the edges for links that carry one message at a time, which links here do not.

use super::binary_tree::{hops, parent};
use super::shape::{ScheduleCost, Trees};

#[derive(Debug)]
pub(super) struct DoubleTree;

impl Trees for DoubleTree {
    fn up(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        match shard {
            0 => parent(rank),
            _ => Some(n - 1 - parent(n - 1 - rank)?),
        }
    }

    fn down(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        self.up(n, shard, rank)
    }

    fn cost(&self, n: usize) -> ScheduleCost {
        ScheduleCost {
            shards: 2,
            hops: hops(n),
            pushes: 4 * (n as u64 - 1),
            busiest: match n {
                2 => 2,
                3 | 4 => 3,
                _ => 4,
            },
        }
    }
}
