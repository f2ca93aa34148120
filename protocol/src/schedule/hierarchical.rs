//! Hierarchical: members of an island give everything to its leader, the leaders reduce along a
//! ring and pass the result on, every leader sends it to its island. An island is a run of `island`
//! ranks, the last one perhaps shorter, and the first rank of it leads.
//!
//! With n members, islands of g, L = ceil(n / g) leaders and m encoded bytes: L shards; 2 (L - 1)
//! hops and 2 more where g > 1; 2 L (n - 1) pushes. The busiest member is the leader of a whole
//! island: 2 (L - 1) pushes to the next leader and L to each of its g - 1 members, so
//! m (2 (L - 1) / L + g - 1) bytes, of which 2 m (L - 1) / L leave the island; no other algorithm
//! sends as little between islands. A partial sum is encoded again L - 1 times.
//!
//! Ranks follow `PeerId`s and not the network: the machines of an island are near one another only
//! if their ids were chosen in that order. [`islands`](super::islands) goes by their sites.
//!
//! **Source:** Jia et al. 2018, "Highly scalable deep learning training system with
//! mixed-precision", section 4.2 (three phases); Thakur et al. 2005 for the leaders' part.

use super::shape::{ScheduleCost, Trees};

#[derive(Debug)]
pub(super) struct Hierarchical {
    pub(super) island: usize,
}

impl Hierarchical {
    fn leaders(&self, n: usize) -> usize {
        n.div_ceil(self.island)
    }
}

impl Trees for Hierarchical {
    fn up(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        let (island, leaders) = (rank / self.island, self.leaders(n));
        if !rank.is_multiple_of(self.island) {
            return Some(island * self.island);
        }
        (island != shard).then_some((island + 1) % leaders * self.island)
    }

    fn down(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        let (island, leaders) = (rank / self.island, self.leaders(n));
        if !rank.is_multiple_of(self.island) {
            return Some(island * self.island);
        }
        (island != shard).then_some((island + leaders - 1) % leaders * self.island)
    }

    fn cost(&self, n: usize) -> ScheduleCost {
        let (leaders, largest) = (self.leaders(n) as u64, self.island.min(n) as u64);
        ScheduleCost {
            shards: leaders,
            hops: 2 * (leaders - 1) + if largest > 1 { 2 } else { 0 },
            pushes: 2 * leaders * (n as u64 - 1),
            busiest: 2 * (leaders - 1) + leaders * (largest - 1),
        }
    }
}
