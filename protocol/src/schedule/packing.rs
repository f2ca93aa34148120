//! Packed trees: a schedule that was found for one table of links (`synthesis.rs`). Every shard climbs
//! a tree of its own and descends it again. The trees are data of the plan, with a certificate: what
//! they and the butterfly cost over these links, and what no packing can be below.
//!
//! With n members, k trees and m encoded bytes: k shards, 2 d hops for trees of depth d, 2 k (n - 1)
//! pushes. The busiest member sends its edges up and down: sum over trees of (1 unless it is the root)
//! + its children. A partial sum is encoded again d - 1 times.
//!
//! Special case: a group of another size than the table (a member is absent, or one came) goes along
//! the butterfly. Ranks are places in `PeerId` order, so one member in place of another leaves sums
//! right, but over links that were not measured.
//!
//! **Source:** Blink (Wang et al., MLSys 2020) packs spanning trees over the links that exist; TACCL
//! (Shah et al., NSDI 2023) states links and what a schedule costs over them.

use super::shape::{ScheduleCost, Trees};
use super::trees::Butterfly;
use crate::limits::{SYNTHESIZED_DEPTH_MAX, SYNTHESIZED_MEMBERS_MAX, SYNTHESIZED_TREES_MAX};
use serde::{Deserialize, Serialize};

/// Why packed trees are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackingError {
    /// Too few or too many members.
    #[error("{found} members: packed trees have 2 to {SYNTHESIZED_MEMBERS_MAX}")]
    Members {
        /// How many it has.
        found: u8,
    },
    /// No trees, or too many.
    #[error("{found} trees: there are 1 to {SYNTHESIZED_TREES_MAX}")]
    Trees {
        /// How many it has.
        found: u8,
    },
    /// Parents that lead in a circle, too deep, or to a rank that does not exist.
    #[error("tree {tree} does not lead every rank to one root in {SYNTHESIZED_DEPTH_MAX} steps")]
    NoTree {
        /// Its place.
        tree: u8,
    },
    /// The certificate does not claim a gain, or claims more than is possible.
    #[error(
        "the certificate says {micros} us a megabyte, {butterfly} for the butterfly and {least} at least"
    )]
    Certificate {
        /// Its time of the trees, in microseconds for a megabyte.
        micros: u32,
        /// Of the butterfly.
        butterfly: u32,
        /// Of any packing.
        least: u32,
    },
}

/// What packed trees cost over the links that they were found for, in microseconds for a megabyte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PackingCertificate {
    /// The trees.
    pub micros: u32,
    /// The butterfly.
    pub butterfly: u32,
    /// What no packing of trees is below, by cuts of the links.
    pub least: u32,
}

/// Trees of up to sixteen members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "RawPacking")]
pub struct Packing {
    members: u8,
    trees: u8,
    /// The parent of rank r in the four bits from 4 r; a root is its own.
    parents: [u64; SYNTHESIZED_TREES_MAX],
    certificate: PackingCertificate,
}

/// A packing as it is written, before it is checked.
#[derive(Deserialize)]
struct RawPacking {
    members: u8,
    trees: u8,
    parents: [u64; SYNTHESIZED_TREES_MAX],
    certificate: PackingCertificate,
}

impl TryFrom<RawPacking> for Packing {
    type Error = PackingError;

    fn try_from(raw: RawPacking) -> Result<Self, PackingError> {
        let n = usize::from(raw.members);
        if !(2..=SYNTHESIZED_MEMBERS_MAX).contains(&n) {
            return Err(PackingError::Members { found: raw.members });
        }
        if !(1..=SYNTHESIZED_TREES_MAX).contains(&usize::from(raw.trees)) {
            return Err(PackingError::Trees { found: raw.trees });
        }
        let trees = raw.parents.iter().take(usize::from(raw.trees));
        let trees: Vec<Vec<usize>> = trees
            .map(|word| (0..n).map(|rank| parent_of(*word, rank)).collect())
            .collect();
        let packed = Self::new(&trees, raw.certificate)?;
        // Bits beyond the members and the trees would be plans that differ and mean the same.
        if packed.parents == raw.parents {
            Ok(packed)
        } else {
            Err(PackingError::NoTree { tree: raw.trees })
        }
    }
}

fn parent_of(word: u64, rank: usize) -> usize {
    (word >> (4 * rank) & 15) as usize
}

/// The depth of a tree of parents, if it is one.
pub(super) fn depth(parents: &[usize]) -> Option<usize> {
    let root = |rank: usize| parents.get(rank) == Some(&rank);
    let mut roots = (0..parents.len()).filter(|rank| root(*rank));
    if roots.next().is_none() || roots.next().is_some() {
        return None;
    }
    let mut deepest = 0;
    for rank in 0..parents.len() {
        let (mut at, mut steps) = (rank, 0);
        while !root(at) {
            at = *parents.get(at)?;
            steps += 1;
            if steps > SYNTHESIZED_DEPTH_MAX {
                return None;
            }
        }
        deepest = deepest.max(steps);
    }
    Some(deepest)
}

impl Packing {
    /// Trees by the parents of their ranks, with a certificate that claims a gain.
    ///
    /// # Errors
    /// When these are not trees over the same ranks, or the certificate contradicts itself.
    pub fn new(
        trees: &[Vec<usize>],
        certificate: PackingCertificate,
    ) -> Result<Self, PackingError> {
        let n = trees.first().map_or(0, Vec::len);
        let members = u8::try_from(n).unwrap_or(u8::MAX);
        if !(2..=SYNTHESIZED_MEMBERS_MAX).contains(&n) {
            return Err(PackingError::Members { found: members });
        }
        let count = u8::try_from(trees.len()).unwrap_or(u8::MAX);
        if trees.len() > SYNTHESIZED_TREES_MAX {
            return Err(PackingError::Trees { found: count });
        }
        let mut parents = [0; SYNTHESIZED_TREES_MAX];
        for (tree, (word, of)) in parents.iter_mut().zip(trees).enumerate() {
            let tree = tree as u8;
            if of.len() != n || depth(of).is_none() {
                return Err(PackingError::NoTree { tree });
            }
            for (rank, parent) in of.iter().enumerate() {
                *word |= (*parent as u64) << (4 * rank);
            }
        }
        let PackingCertificate {
            micros,
            butterfly,
            least,
        } = certificate;
        if least > micros || micros >= butterfly {
            return Err(PackingError::Certificate {
                micros,
                butterfly,
                least,
            });
        }
        Ok(Self {
            members,
            trees: count,
            parents,
            certificate,
        })
    }

    /// The certificate of its cost over the links that it was found for.
    pub const fn certificate(&self) -> PackingCertificate {
        self.certificate
    }

    /// Members of the groups that it is for.
    pub fn members(&self) -> usize {
        usize::from(self.members)
    }

    /// The parent of each rank, tree by tree; a root is its own.
    pub fn trees(&self) -> Vec<Vec<usize>> {
        let trees = self.parents.iter().take(usize::from(self.trees));
        let ranks = |word: &u64| {
            (0..self.members())
                .map(|rank| parent_of(*word, rank))
                .collect()
        };
        trees.map(ranks).collect()
    }

    fn parent(&self, tree: usize, rank: usize) -> Option<usize> {
        let parent = parent_of(self.parents[tree], rank);
        (parent != rank).then_some(parent)
    }
}

impl Trees for Packing {
    fn up(&self, n: usize, shard: usize, rank: usize) -> Option<usize> {
        if n == self.members() {
            self.parent(shard, rank)
        } else {
            Butterfly.up(n, shard, rank)
        }
    }

    fn cost(&self, n: usize) -> ScheduleCost {
        if n != self.members() {
            return Butterfly.cost(n);
        }
        let trees = self.trees();
        let sends = |rank: usize| -> u64 {
            let edges = trees
                .iter()
                .map(|parents| parents.iter().filter(|parent| **parent == rank).count() as u64);
            // A root counts itself among its children, and another rank sends one edge up.
            let of = trees.iter().map(|parents| parents[rank] == rank);
            edges
                .zip(of)
                .map(|(children, root)| children + 1 - 2 * u64::from(root))
                .sum()
        };
        let depths = trees.iter().filter_map(|parents| depth(parents));
        ScheduleCost {
            shards: trees.len() as u64,
            hops: 2 * depths.max().unwrap_or(0) as u64,
            pushes: 2 * trees.len() as u64 * (n as u64 - 1),
            busiest: (0..n).map(sends).max().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: PackingCertificate = PackingCertificate {
        micros: 5,
        butterfly: 6,
        least: 4,
    };

    #[test]
    fn trees_come_back_as_they_went_in() {
        let trees = vec![vec![0, 0, 1, 1], vec![3, 3, 3, 3]];
        let packed = Packing::new(&trees, CLAIM).unwrap();
        assert_eq!((packed.trees(), packed.members()), (trees, 4));
        let bytes = crate::wire::canonical(&packed);
        assert_eq!(read(&bytes), Ok(packed));
    }

    /// What a peer makes of the bytes.
    fn read(bytes: &[u8]) -> Result<Packing, ()> {
        crate::wire::decode_value(bytes).map_err(|_| ())
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let no_tree = |parents: Vec<usize>| {
            let error = Packing::new(&[parents], CLAIM).unwrap_err();
            assert_eq!(error, PackingError::NoTree { tree: 0 });
        };
        // A circle beside the root, two roots, a rank that does not exist, and a line of four.
        no_tree(vec![0, 2, 1, 0]);
        no_tree(vec![0, 1, 0, 1]);
        no_tree(vec![0, 7, 0, 0]);
        no_tree(vec![0, 0, 1, 2]);
        let none = Packing::new(&[], CLAIM).unwrap_err();
        assert_eq!(none, PackingError::Members { found: 0 });
        let many = vec![vec![0, 0]; SYNTHESIZED_TREES_MAX + 1];
        assert!(matches!(
            Packing::new(&many, CLAIM),
            Err(PackingError::Trees { .. })
        ));
        for claim in [(6, 6, 4), (3, 6, 4)] {
            let claim = PackingCertificate {
                micros: claim.0,
                butterfly: claim.1,
                least: claim.2,
            };
            let error = Packing::new(&[vec![0, 0]], claim).unwrap_err();
            assert!(matches!(error, PackingError::Certificate { .. }));
        }
    }

    #[test]
    fn bytes_of_others_are_checked() {
        let packed = Packing::new(&[vec![0, 0, 1, 1]], CLAIM).unwrap();
        let mut circle = packed;
        circle.parents[0] = 0x0120;
        let mut beyond = packed;
        beyond.parents[5] = 1;
        let mut none = packed;
        none.trees = 0;
        for bad in [circle, beyond, none] {
            assert_eq!(read(&crate::wire::canonical(&bad)), Err(()), "{bad:?}");
        }
    }
}
