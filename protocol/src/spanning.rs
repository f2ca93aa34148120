//! A spanning tree of a topology's graph: along which a relay passes sums on. Pure: the same for
//! all peers with the same list of ranks.

use crate::{Round, Topology};

/// A tree over ranks. The parent of a rank is the lowest of its neighbours below it, in the graph
/// that the topology has in round 0, with edges either way: of a tree it is that tree, of a ring
/// the ring without one edge. Ranks without a neighbour below them are roots; 0 is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanningTree {
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    /// Ranks at and below each.
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

    /// How many ranks there are.
    pub const fn len(&self) -> usize {
        self.parents.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// The parent of a rank; none of a root.
    pub fn parent(&self, rank: usize) -> Option<usize> {
        self.parents.get(rank).copied().flatten()
    }

    /// The children of a rank, ascending.
    pub fn children(&self, rank: usize) -> &[usize] {
        self.children.get(rank).map_or(&[], Vec::as_slice)
    }

    /// How many ranks a rank and all below it are.
    pub fn size(&self, rank: usize) -> usize {
        self.sizes.get(rank).copied().unwrap_or(0)
    }

    /// The neighbours of a rank, ascending.
    pub fn neighbours(&self, rank: usize) -> Vec<usize> {
        let parent = self.parent(rank).into_iter();
        parent.chain(self.children(rank).iter().copied()).collect()
    }

    /// The most neighbours that any rank has.
    pub fn degree(&self) -> usize {
        let degrees = (0..self.len()).map(|rank| self.neighbours(rank).len());
        degrees.max().unwrap_or(0)
    }

    /// The most edges between rank 0 and another, and then between that and any: the longest way
    /// there is.
    pub fn diameter(&self) -> usize {
        let (_, end) = self.farthest(0);
        self.farthest(end).0
    }

    /// How far the farthest rank is, and which.
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
    use crate::Partners;

    /// Every peer pushes to the next rank around a ring, one way, in round 0.
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
    fn what_is_below_the_children_and_the_rank_itself_is_what_is_below_it() {
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
