//! Who pushes to whom in a round of gossip: topologies, which `strategies` implements, the rates of links by which some
//! choose, and a spanning tree of each. No tensors here.

use crate::Round;

/// Where one peer's mass goes in one round, and from where it expects some.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Partners {
    /// Ranks to push to, each with the share of this peer's mass that it gets. The shares sum to
    /// less than one; the rest stays. With W the mixing matrix, the share for `j` is `W[j][me]`.
    pub send: Vec<(usize, f64)>,
    /// Ranks whose push is expected, in ascending order.
    pub receive: Vec<usize>,
}

/// A mixing matrix as a function of round and rank.
///
/// Ranks are positions in the list of live peers sorted by `PeerId`. Where two peers' lists
/// differ, push-sum keeps the mean right: it does not need both ends to agree.
pub trait Topology: Send {
    /// The partners of `rank` among `count` peers in `round`.
    fn partners(&self, round: Round, rank: usize, count: usize) -> Partners;

    /// The same where all peers agree on the rates of their links. Only for a topology with
    /// [`Topology::rates_every`].
    fn partners_by_rate(&self, round: Round, rank: usize, rates: &LinkRates) -> Partners {
        self.partners(round, rank, rates.count())
    }

    /// Rounds after which peers tell each other the rates of their links; zero for never.
    fn rates_every(&self) -> u64 {
        0
    }
}

/// What the peers of a round agree on about the rates of their links, for topologies that choose by it.
///
/// The class of every link among `count` peers, by rank; symmetric.
///
/// Class c from 1 to 64 is a rate of at least `2^(c - 1)` and less than `2^c` bytes per second. Class 0
/// is a link that neither end has measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRates {
    count: usize,
    classes: Vec<u8>,
}

impl LinkRates {
    /// The fastest class.
    pub const CLASS_MAX: u8 = u64::BITS as u8;

    /// Asks for the class of every pair of different ranks, the lower one first.
    pub fn new(count: usize, class: impl Fn(usize, usize) -> u8) -> Self {
        let mut classes = vec![0; count * count];
        for a in 0..count {
            for b in a + 1..count {
                let class = class(a, b);
                classes[a * count + b] = class;
                classes[b * count + a] = class;
            }
        }
        Self { count, classes }
    }

    /// How many peers there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The class of the link between two ranks; 0 beyond the last rank.
    pub fn class(&self, a: usize, b: usize) -> u8 {
        if b < self.count {
            self.classes.get(a * self.count + b).copied().unwrap_or(0)
        } else {
            0
        }
    }
}

/// A spanning tree of a topology's graph, along which relay-sum passes sums on. All peers with the
/// same list of ranks get the same tree.
///
/// A tree over ranks. The parent of a rank is its neighbour with the lowest rank, if that rank is
/// below its own. The graph is the topology's in round 0, with undirected edges. For a tree the
/// result is that tree, for a ring the ring without one edge. Ranks without a lower neighbour are
/// roots; rank 0 always is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanningTree {
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    /// The number of ranks in the subtree of each rank.
    sizes: Vec<usize>,
}

impl SpanningTree {
    /// The tree of `count` ranks.
    pub fn of(topology: &dyn Topology, count: usize) -> Self {
        let mut parents: Vec<Option<usize>> = vec![None; count];
        for rank in 0..count {
            for (to, _) in topology.partners(Round(0), rank, count).send {
                let (low, high) = (rank.min(to), rank.max(to));
                if low < high && high < count {
                    let lowest = parents[high].map_or(low, |known| known.min(low));
                    parents[high] = Some(lowest);
                }
            }
        }
        let mut children = vec![Vec::new(); count];
        let mut sizes = vec![1; count];
        for rank in (0..count).rev() {
            if let Some(parent) = parents[rank] {
                sizes[parent] += sizes[rank];
                children[parent].insert(0, rank);
            }
        }
        Self {
            parents,
            children,
            sizes,
        }
    }

    /// The number of ranks.
    pub const fn len(&self) -> usize {
        self.parents.len()
    }

    /// Returns `true` if there are no ranks.
    pub const fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// The parent of a rank; `None` for a root.
    pub fn parent(&self, rank: usize) -> Option<usize> {
        self.parents.get(rank).copied().flatten()
    }

    /// The children of a rank, ascending.
    pub fn children(&self, rank: usize) -> &[usize] {
        self.children.get(rank).map_or(&[], Vec::as_slice)
    }

    /// The number of ranks in the subtree of a rank, itself included.
    pub fn size(&self, rank: usize) -> usize {
        self.sizes.get(rank).copied().unwrap_or(0)
    }

    /// The neighbours of a rank, ascending.
    pub fn neighbours(&self, rank: usize) -> Vec<usize> {
        let parent = self.parent(rank).into_iter();
        parent.chain(self.children(rank).iter().copied()).collect()
    }

    /// The largest number of neighbours of any rank.
    pub fn degree(&self) -> usize {
        let degrees = (0..self.len()).map(|rank| self.neighbours(rank).len());
        degrees.max().unwrap_or(0)
    }

    /// The number of edges on the longest path of the tree of rank 0. The rank farthest from rank 0
    /// is one of its ends.
    pub fn diameter(&self) -> usize {
        let (_, end) = self.farthest(0);
        self.farthest(end).0
    }

    /// The distance of the farthest rank, and that rank.
    fn farthest(&self, from: usize) -> (usize, usize) {
        let mut best = (0, from);
        let mut open = vec![(0, from, from)];
        while let Some((far, rank, before)) = open.pop() {
            best = best.max((far, rank));
            let on = self.neighbours(rank).into_iter();
            open.extend(on.filter(|to| *to != before).map(|to| (far + 1, to, rank)));
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_symmetric_and_none_beyond_the_last_rank() {
        let rates = LinkRates::new(3, |a, b| (10 * a + b) as u8);
        for (a, b, class) in [(0, 1, 1), (2, 0, 2), (1, 2, 12), (2, 1, 12), (1, 1, 0)] {
            assert_eq!(rates.class(a, b), class);
        }
        assert_eq!((rates.class(0, 3), rates.class(3, 0)), (0, 0));
    }
}

#[cfg(test)]
mod spanning_tests {
    use super::*;
    use crate::Partners;

    /// Every peer pushes to the next rank of a ring, in round 0 only.
    struct Around;

    impl Topology for Around {
        fn partners(&self, round: Round, rank: usize, count: usize) -> Partners {
            let next = (rank + 1) % count;
            let send = (round == Round(0)).then_some((next, 0.5));
            Partners {
                send: send.into_iter().collect(),
                receive: Vec::new(),
            }
        }
    }

    /// No peer pushes.
    struct Apart;

    impl Topology for Apart {
        fn partners(&self, _: Round, _: usize, _: usize) -> Partners {
            Partners::default()
        }
    }

    #[test]
    fn of_a_ring_it_is_the_ring_without_one_edge() {
        let tree = SpanningTree::of(&Around, 6);
        // 5 - 0 - 1 - 2 - 3 - 4.
        assert_eq!(tree.neighbours(0), [1, 5]);
        assert_eq!(tree.neighbours(3), [2, 4]);
        assert_eq!((tree.parent(5), tree.parent(0)), (Some(0), None));
        assert_eq!((tree.size(0), tree.size(1), tree.size(5)), (6, 4, 1));
        assert_eq!((tree.degree(), tree.diameter()), (2, 5));
        assert_eq!(tree.neighbours(6), []);
    }

    #[test]
    fn a_peer_without_edges_is_a_root() {
        let tree = SpanningTree::of(&Apart, 3);
        assert!((0..3).all(|rank| tree.neighbours(rank).is_empty()));
        assert_eq!((tree.degree(), tree.diameter(), tree.len()), (0, 0, 3));
        assert!(SpanningTree::of(&Around, 0).is_empty());
    }

    #[test]
    fn a_subtree_is_its_rank_and_the_subtrees_of_its_children() {
        for count in 1..40 {
            let tree = SpanningTree::of(&Around, count);
            for rank in 0..count {
                let children = tree.children(rank).iter();
                let below: usize = children.map(|child| tree.size(*child)).sum();
                assert_eq!(tree.size(rank), 1 + below);
            }
            assert_eq!(tree.size(0), count);
        }
    }
}
