//! How the peers of a run divide one data set among themselves, without numbers in their
//! configuration: by rendezvous hashing of its blocks.

use crate::rng;
use murmurate_protocol::{Participants, PeerId};

/// The most blocks of a data set. With n peers the shares differ by about `sqrt(n / BLOCKS_MAX)` of
/// their size: 3 % with 4 peers, 12 % with 64.
pub(super) const BLOCKS_MAX: usize = 4096;

/// A data set cut into blocks, each of which one peer trains: the one with the highest hash of block
/// and peer. Peers that see the same participants agree without a message, and the blocks are disjoint
/// and cover the data. If a peer goes, only its blocks find another owner. While two peers see different
/// participants, a block may be trained by both or by none.
///
/// **Source:** Thaler and Ravishankar, Using name-based mappings to increase hit rates, 1998
/// (rendezvous or highest random weight hashing).
#[derive(Clone, Copy, Debug)]
pub(super) struct Division {
    blocks: usize,
    seed: u64,
}

impl Division {
    /// Of a data set with this number of units (samples, windows), which are never cut.
    ///
    /// # Panics
    /// When there are no units.
    pub(super) fn of(units: usize, seed: u64) -> Self {
        assert!(units > 0, "no data can be divided");
        let blocks = units.min(BLOCKS_MAX);
        Self { blocks, seed }
    }

    /// Number of blocks.
    pub(super) const fn blocks(&self) -> usize {
        self.blocks
    }

    /// The blocks of this peer, ascending. If there are more peers than blocks, a peer that owns none
    /// trains one that another peer owns too.
    pub(super) fn blocks_of(&self, participants: &Participants) -> Vec<usize> {
        let (me, others) = (participants.me(), participants.others());
        let mine = |block: &usize| {
            let own = (self.weight(*block, me), me);
            others
                .iter()
                .all(|other| (self.weight(*block, *other), *other) < own)
        };
        let mine: Vec<usize> = (0..self.blocks).filter(mine).collect();
        if mine.is_empty() {
            return vec![(key(me) % self.blocks as u64) as usize];
        }
        mine
    }

    /// The seed of a peer's order of samples.
    pub(super) fn order_seed(&self, me: PeerId) -> u64 {
        rng::mix(self.seed ^ key(me))
    }

    fn weight(&self, block: usize, peer: PeerId) -> u64 {
        rng::mix(rng::mix(self.seed ^ key(peer)) ^ block as u64)
    }
}

/// Eight bytes of an identity. They are bytes of a public key, so they are as good as random.
fn key(peer: PeerId) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&peer.as_bytes()[..8]);
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn peer(number: u8) -> PeerId {
        PeerId::from_bytes([number.wrapping_mul(37); 32])
    }

    fn dealt(division: Division, peers: &[PeerId]) -> Vec<Vec<usize>> {
        let of = |me: &PeerId| division.blocks_of(&Participants::new(*me, peers.iter().copied()));
        peers.iter().map(of).collect()
    }

    proptest! {
        #[test]
        fn blocks_are_disjoint_and_cover_the_data(
            units in 300..9000_usize, count in 1..20_u8, seed: u64
        ) {
            let peers: Vec<PeerId> = (0..count).map(peer).collect();
            let division = Division::of(units, seed);
            let mut all = dealt(division, &peers).concat();
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..division.blocks()));
        }
    }

    #[test]
    fn only_the_blocks_of_a_peer_that_goes_change_hands() {
        let peers: Vec<PeerId> = (1..=5).map(peer).collect();
        let division = Division::of(60_000, 7);
        let (before, after) = (dealt(division, &peers), dealt(division, &peers[..4]));
        for (had, has) in before.iter().zip(&after) {
            assert!(had.iter().all(|block| has.contains(block)));
        }
        let moved: usize = after.iter().map(Vec::len).sum::<usize>()
            - before[..4].iter().map(Vec::len).sum::<usize>();
        assert_eq!(moved, before[4].len());
    }

    #[test]
    fn shares_are_about_equal() {
        let peers: Vec<PeerId> = (1..=4).map(peer).collect();
        for blocks in dealt(Division::of(60_000, 3), &peers) {
            assert!((900..1150).contains(&blocks.len()), "{}", blocks.len());
        }
    }

    #[test]
    fn more_peers_than_blocks_share_some() {
        let peers: Vec<PeerId> = (1..=9).map(peer).collect();
        for blocks in dealt(Division::of(2, 3), &peers) {
            assert!(!blocks.is_empty());
        }
    }
}
