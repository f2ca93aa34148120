//! The units of a data set (images, windows) that one peer trains when the peers divide the set.

use super::Division;
use crate::rng;
use murmurate_protocol::Participants;

/// This peer's part of a data set, which changes with the participants.
#[derive(Clone, Debug)]
pub struct Dealt {
    division: Division,
    /// A random order of all units: the one at place p is in block `p % blocks`, so that every block is
    /// a random sample.
    order: Vec<u32>,
    /// As last told; `None` before the first round, when all units are this peer's.
    participants: Option<Participants>,
    mine: Vec<u32>,
}

impl Dealt {
    /// All of the data set, until the participants are known. `seed` must be the same at all peers.
    ///
    /// # Panics
    /// When there are no units.
    pub fn new(units: usize, seed: u64) -> Self {
        let order = rng::permutation(units, &mut rng::stream(seed, rng::SHARDS, 0));
        Self {
            division: Division::of(units, seed),
            mine: (0..units as u32).collect(),
            order,
            participants: None,
        }
    }

    /// Takes this peer's part among these participants; true if they are others than before.
    pub fn deal(&mut self, participants: &Participants) -> bool {
        if self.participants.as_ref() == Some(participants) {
            return false;
        }
        let blocks = self.division.blocks_of(participants);
        let of_block = |block: usize| self.order[block..].iter().step_by(self.division.blocks());
        self.mine = blocks.into_iter().flat_map(of_block).copied().collect();
        self.mine.sort_unstable();
        self.participants = Some(participants.clone());
        true
    }

    /// Number of this peer's units, at least one.
    pub fn count(&self) -> usize {
        self.mine.len()
    }

    /// Whether a unit is this peer's.
    pub fn has(&self, unit: u32) -> bool {
        self.mine.binary_search(&unit).is_ok()
    }

    /// Number of all peers' units.
    pub fn total(&self) -> usize {
        self.order.len()
    }

    /// One of this peer's units.
    ///
    /// # Panics
    /// When `place` is not below [`Dealt::count`].
    pub fn unit(&self, place: u32) -> u32 {
        self.mine[place as usize]
    }

    /// The seed of this peer's order of its units.
    pub fn order_seed(&self) -> u64 {
        let me = self.participants.as_ref().map(Participants::me);
        me.map_or(0, |me| self.division.order_seed(me))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_protocol::PeerId;

    #[test]
    fn each_unit_is_one_peers() {
        let peer = |number: u8| PeerId::from_bytes([number; 32]);
        let mine = |me: u8| {
            let mut dealt = Dealt::new(10_000, 3);
            assert_eq!(dealt.count(), 10_000);
            let all = Participants::new(peer(me), (1..=3).map(peer));
            assert!(dealt.deal(&all) && !dealt.deal(&all));
            (0..dealt.count() as u32)
                .map(move |place| dealt.unit(place))
                .collect::<Vec<_>>()
        };
        let mut all: Vec<u32> = (1..=3).flat_map(mine).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..10_000));
    }
}
