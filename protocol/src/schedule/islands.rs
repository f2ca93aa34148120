//! Islands within sites: as [`hierarchical`](super::hierarchical), with islands that follow the sites of the
//! members in place of their ids.
//!
//! The members of a site are cut into islands of at most `island`, in the order of ranks, and the first of
//! an island leads it. Members that are alone at their sites, or whose sites are not known, are cut into islands
//! together. So where no site is known islands are runs of ranks. Leaders form a ring in which the islands of
//! a site follow one another, so a sum enters and leaves each site once.
//!
//! With n members, L islands, the largest of g members, and m encoded bytes: n shards, so that their number does
//! not depend on sites; shard s is summed up at island s mod L. 2 (L - 1) hops and 2 more where g > 1, and
//! 2 n (n - 1) pushes. With one island at each of S sites, 2 (S - 1) m bytes leave sites in all, and no other algorithm
//! sends less. In general a shard crosses between sites S times on each way, and once less on the way up if its
//! island is the last of a site, and on the way down if it is the first of one.
//!
//! **Source:** as of `hierarchical`; islands by the network as in Thakur et al. 2005 for clusters of nodes.

use super::shape::{ScheduleCost, Trees};

/// Where each rank is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot {
    island: usize,
    leader: usize,
}

/// The islands of a group.
#[derive(Debug)]
pub(super) struct Islands {
    spots: Vec<Spot>,
    leaders: Vec<usize>,
    largest: usize,
}

impl Islands {
    /// Islands of at most `island` of the ranks of a site; a site is named by its first rank.
    pub(super) fn new(sites: &[u8], island: usize) -> Self {
        let n = sites.len();
        let same = |rank: usize| (0..n).filter(move |other| sites[*other] == sites[rank]);
        let shared = |rank: &usize| same(*rank).count() > 1;
        let first = |rank: &usize| same(*rank).next() == Some(*rank);
        let mut groups: Vec<Vec<usize>> = (0..n)
            .filter(|rank| shared(rank) && first(rank))
            .map(|rank| same(rank).collect())
            .collect();
        groups.push((0..n).filter(|rank| !shared(rank)).collect());
        let mut this = Self {
            spots: vec![
                Spot {
                    island: 0,
                    leader: 0
                };
                n
            ],
            leaders: Vec::new(),
            largest: 0,
        };
        for ranks in groups.iter().flat_map(|ranks| ranks.chunks(island.max(1))) {
            let spot = Spot {
                island: this.leaders.len(),
                leader: ranks[0],
            };
            ranks.iter().for_each(|rank| this.spots[*rank] = spot);
            this.leaders.push(ranks[0]);
            this.largest = this.largest.max(ranks.len());
        }
        this
    }

    /// Islands among members whose sites are not known.
    pub(super) fn of_ranks(n: usize, island: usize) -> Self {
        let sites: Vec<u8> = (0..n).map(|rank| rank as u8).collect();
        Self::new(&sites, island)
    }

    /// The leader that is `by` further along the ring, or none at the island where a shard is summed up;
    /// to another member its leader.
    fn next(&self, shard: usize, rank: usize, by: usize) -> Option<usize> {
        let Spot { island, leader } = self.spots[rank];
        if rank != leader {
            return Some(leader);
        }
        let count = self.leaders.len();
        (island != shard % count).then(|| self.leaders[(island + by) % count])
    }
}

impl Trees for Islands {
    fn up(&self, _: usize, shard: usize, rank: usize) -> Option<usize> {
        self.next(shard, rank, 1)
    }

    fn down(&self, _: usize, shard: usize, rank: usize) -> Option<usize> {
        self.next(shard, rank, self.leaders.len() - 1)
    }

    fn cost(&self, n: usize) -> ScheduleCost {
        let mut sent = vec![0u64; n];
        for shard in 0..n {
            for rank in 0..n {
                sent[rank] += u64::from(self.up(n, shard, rank).is_some());
                if let Some(server) = self.down(n, shard, rank) {
                    sent[server] += 1;
                }
            }
        }
        ScheduleCost {
            shards: n as u64,
            hops: 2 * (self.leaders.len() as u64 - 1) + if self.largest > 1 { 2 } else { 0 },
            pushes: 2 * n as u64 * (n as u64 - 1),
            busiest: sent.into_iter().max().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn leaders(sites: &[u8], island: usize) -> Vec<usize> {
        Islands::new(sites, island).leaders
    }

    #[test]
    fn islands_follow_sites_and_without_sites_ranks() {
        // Interleaved: the even and the odd.
        assert_eq!(leaders(&[0, 1, 0, 1, 0, 1], 4), [0, 1]);
        assert_eq!(leaders(&[0, 1, 0, 1, 0, 1], 2), [0, 4, 1, 5]);
        // One site, or none known: runs of ranks.
        assert_eq!(leaders(&[0; 6], 4), [0, 4]);
        assert_eq!(leaders(&[0, 1, 2, 3, 4, 5], 4), [0, 4]);
        // Ranks 1 and 3 are alone, and in an island together.
        assert_eq!(leaders(&[0, 1, 0, 3, 0], 4), [0, 1]);
        assert_eq!(
            Islands::of_ranks(6, 4).spots[5],
            Spot {
                island: 1,
                leader: 4
            }
        );
    }

    /// Sites by their first ranks.
    fn any_sites() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(0usize..4, 2..20).prop_map(|labels| {
            let first = |label: &usize| labels.iter().position(|other| other == label);
            labels
                .iter()
                .map(|label| first(label).unwrap_or(0) as u8)
                .collect()
        })
    }

    proptest! {
        #[test]
        fn a_shard_leaves_each_site_once_each_way(sites in any_sites(), island in 1usize..9) {
            let (n, islands) = (sites.len(), Islands::new(&sites, island));
            // Those that are alone are no site together.
            let alone = |rank: usize| sites.iter().filter(|s| **s == sites[rank]).count() == 1;
            prop_assume!(!(0..n).any(alone));
            let count = (0..n).filter(|rank| usize::from(sites[*rank]) == *rank).count();
            let far = |a: usize, b: usize| usize::from(sites[a] != sites[b]);
            let at = |island: usize| islands.leaders[island % islands.leaders.len()];
            for shard in 0..n {
                let ups = (0..n).filter_map(|rank| Some(far(islands.up(n, shard, rank)?, rank)));
                let downs = (0..n).filter_map(|rank| Some(far(islands.down(n, shard, rank)?, rank)));
                let end = shard % islands.leaders.len();
                let last = far(at(end), at(end + 1));
                let first = far(at(end), at(end + islands.leaders.len() - 1));
                let all = if count > 1 { count } else { 0 };
                prop_assert_eq!(ups.sum::<usize>(), all - last);
                prop_assert_eq!(downs.sum::<usize>(), all - first);
            }
        }
    }
}
