//! Which of an island's trainers one is.

/// The most ranks of one island: what one machine can hold.
pub const RANKS_MAX: u32 = 64;

/// A trainer's place in its island.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// From zero.
    pub index: u32,
    /// Number of ranks; 1 where the trainer is a peer's only one.
    pub of: u32,
}

impl Rank {
    /// The only trainer of its peer.
    pub const ALONE: Self = Self { index: 0, of: 1 };

    /// All ranks of an island.
    pub fn all(of: u32) -> impl Iterator<Item = Self> {
        (0..of).map(move |index| Self { index, of })
    }

    /// Set for an only rank.
    pub const fn is_alone(self) -> bool {
        self.of <= 1
    }

    /// Set if the item of this number is this rank's: the items of a peer go to its ranks in turn.
    pub const fn has(self, number: u64) -> bool {
        self.is_alone() || number % self.of as u64 == self.index as u64
    }

    /// Part `index` of a shard that is itself divided: its number among the parts of all shards, and
    /// their number.
    pub const fn of_shard(self, index: u32, of: u32) -> (u32, u32) {
        let ranks = if self.is_alone() { 1 } else { self.of };
        (
            index.saturating_mul(ranks).saturating_add(self.index),
            of.saturating_mul(ranks),
        )
    }
}

impl Default for Rank {
    fn default() -> Self {
        Self::ALONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_one_ranks() {
        for number in 0..20 {
            let owners = Rank::all(3).filter(|rank| rank.has(number));
            assert_eq!(owners.count(), 1);
        }
        assert!((0..20).all(|number| Rank::ALONE.has(number)));
    }

    #[test]
    fn the_parts_of_all_shards_are_numbered_through() {
        let parts = (0..2).flat_map(|shard| Rank::all(3).map(move |rank| rank.of_shard(shard, 2)));
        assert!(parts.eq((0..6).map(|part| (part, 6))));
        assert_eq!(Rank::ALONE.of_shard(4, 9), (4, 9));
    }
}
