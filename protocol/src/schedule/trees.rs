//! The schedules whose trees are written down: butterfly, ring, torus, hierarchical, binary tree and double tree.
//! Halving and doubling are in `doubling`; `packing` has trees that `synthesis` finds, `islands` those of sites.

use crate::schedule::shape::{ScheduleCost, Trees};

/// The next place in one direction of a ring of this many places.
type Step = fn(usize, usize) -> usize;

fn after(place: usize, count: usize) -> usize {
    (place + 1) % count
}

fn before(place: usize, count: usize) -> usize {
    (place + count - 1) % count
}

/// Butterfly: member s owns shard s; every member pushes to every owner, every owner to all others.
///
/// With n members and m encoded bytes: n shards, 2 hops, 2 n (n - 1) pushes; each member sends
/// 2 (n - 1) of them, 2 m (n - 1) / n bytes. The exchange does not carry it out as a schedule,
/// so that an owner can leave out late members.
///
/// **Source:** Ryabinin et al. 2021 (Moshpit SGD), section 3.2; the bound: Patarasuk & Yuan 2009.
#[derive(Debug)]
pub(super) struct Butterfly;

impl Trees for Butterfly {
    fn up(&self, _: usize, shard: usize, rank: usize) -> Option<usize> {
        (rank != shard).then_some(shard)
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

/// Ring: shard s starts at rank s + 1 and takes one member's contribution up after the other until
/// it is whole at rank s; its aggregate goes around once more.
///
/// With n members and m encoded bytes: n shards, 2 (n - 1) hops, 2 n (n - 1) pushes; each member
/// sends 2 (n - 1) of them, 2 m (n - 1) / n bytes, all to one neighbour. No member sends less in
/// any algorithm, and none waits longer for the first byte: for few members or large fragments.
/// A partial sum is encoded again n - 2 times.
///
/// **Source:** Patarasuk & Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
/// workstations", section 4.
#[derive(Debug)]
pub(super) struct Ring;

impl Trees for Ring {
    fn up(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        (rank != shard).then_some(after(rank, n))
    }

    fn down(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        (rank != shard).then_some(before(rank, n))
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

/// 2D torus: ranks on a grid of r rows and c columns, r the largest divisor of n with r <= c. Rings
/// along the rows reduce, rings along the columns reduce and pass on, rings along the rows pass on.
/// Where n is a prime the grid has one row, and this is the ring.
///
/// With n members and m encoded bytes: n shards, 2 (r - 1) + 2 (c - 1) hops, 2 n (n - 1) pushes;
/// each member sends 2 (n - 1) of them, 2 m (n - 1) / n bytes, to two neighbours. A partial sum is
/// encoded again r + c - 3 times.
///
/// **Source:** Mikami et al. 2018, "Massively distributed SGD: ImageNet/ResNet-50 training in a
/// flash", section 2.2; as BlueConnect: Cho et al., SysML 2019.
#[derive(Debug)]
pub(super) struct Torus;

/// Rows and columns.
fn grid(n: usize) -> (usize, usize) {
    let rows = (1..=n.isqrt()).rev().find(|rows| n.is_multiple_of(*rows));
    let rows = rows.unwrap_or(1);
    (rows, n / rows)
}

impl Torus {
    /// The next rank along the row, and in the shard's column along that.
    fn next(n: usize, shard: usize, rank: usize, step: Step) -> Option<usize> {
        let (rows, columns) = grid(n);
        let (row, column) = (rank / columns, rank % columns);
        if column != shard % columns {
            return Some(row * columns + step(column, columns));
        }
        (rank != shard).then_some(step(row, rows) * columns + column)
    }
}

impl Trees for Torus {
    fn up(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        Self::next(n, shard, rank, after)
    }

    fn down(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        Self::next(n, shard, rank, before)
    }

    fn cost(&self, n: usize) -> ScheduleCost {
        let (rows, columns) = grid(n);
        let n = n as u64;
        ScheduleCost {
            shards: n,
            hops: 2 * (rows + columns - 2) as u64,
            pushes: 2 * n * (n - 1),
            busiest: 2 * (n - 1),
        }
    }
}

/// Hierarchical: members of an island give everything to its leader, the leaders reduce along a
/// ring and pass the result on, every leader sends it to its island. An island is a run of `island`
/// ranks, the last one perhaps shorter, and the first rank of it leads.
///
/// With n members, islands of g, L = ceil(n / g) leaders and m encoded bytes: L shards; 2 (L - 1)
/// hops and 2 more where g > 1; 2 L (n - 1) pushes. The busiest member is the leader of a whole
/// island: 2 (L - 1) pushes to the next leader and L to each of its g - 1 members, so
/// m (2 (L - 1) / L + g - 1) bytes, of which 2 m (L - 1) / L leave the island; no other algorithm
/// sends as little between islands. A partial sum is encoded again L - 1 times.
///
/// Ranks follow `PeerId`s and not the network: the machines of an island are near one another only
/// if their ids were chosen in that order. [`islands`](super::islands) goes by their sites.
///
/// **Source:** Jia et al. 2018, "Highly scalable deep learning training system with
/// mixed-precision", section 4.2 (three phases); Thakur et al. 2005 for the leaders' part.
#[derive(Debug)]
pub(super) struct Hierarchical {
    pub(super) island: usize,
}

impl Hierarchical {
    fn leaders(&self, n: usize) -> usize {
        n.div_ceil(self.island)
    }

    /// The leader of the island, and of a leader the next one.
    fn next(&self, n: usize, shard: usize, rank: usize, step: Step) -> Option<usize> {
        let island = rank / self.island;
        if !rank.is_multiple_of(self.island) {
            return Some(island * self.island);
        }
        (island != shard).then_some(step(island, self.leaders(n)) * self.island)
    }
}

impl Trees for Hierarchical {
    fn up(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        self.next(n, shard, rank, after)
    }

    fn down(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        self.next(n, shard, rank, before)
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

/// Binary tree: contributions climb to rank 0, each node adding its own; the aggregate descends.
/// The children of rank i are 2 i + 1 and 2 i + 2. Fragments follow one another through it: the
/// window of fragments is its pipeline.
///
/// With n members and m encoded bytes: 1 shard, 2 floor(log2 n) hops, 2 (n - 1) pushes of m bytes.
/// The busiest member (an inner one with two children) sends 3 of them from n = 5 on, before that
/// 1, 2, 2; half of the members are leaves and send one. A partial sum is encoded again
/// floor(log2 n) - 1 times.
///
/// **Source:** Thakur, Rabenseifner & Gropp 2005, sections 4.3 and 4.4 (reduce, then broadcast).
#[derive(Debug)]
pub(super) struct BinaryTree;

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

/// Double binary tree: one half of the fragment through a binary tree over the ranks as they are,
/// the other through one over the ranks in reverse. The inner places of a heap are its first
/// floor(n / 2), so that no rank is an inner one of both: every link is used, where a single
/// tree leaves half of them idle.
///
/// With n members and m encoded bytes: 2 shards, 2 floor(log2 n) hops, 4 (n - 1) pushes of m / 2
/// bytes. The busiest member (an inner one with two children here, a leaf there) sends 4 of them
/// from n = 5 on, 2 m bytes; before that 2, 3, 3. A partial sum is encoded again floor(log2 n) - 1
/// times.
///
/// **Source:** Sanders, Speck & Traeff 2009, "Two-tree algorithms for full bandwidth broadcast,
/// reduction and scan". Of it the property of the pair of trees; they number their trees in order
/// and colour the edges for links that carry one message at a time, which links here do not.
#[derive(Debug)]
pub(super) struct DoubleTree;

impl Trees for DoubleTree {
    fn up(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        match shard {
            0 => parent(rank),
            _ => Some(n - 1 - parent(n - 1 - rank)?),
        }
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
