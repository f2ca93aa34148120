//! The peers that train in a round, as one peer sees them.

use crate::PeerId;
use serde::{Deserialize, Serialize};

/// A peer and the live peers that it knows. Two peers may see different sets for a while, so nothing
/// that must be agreed on may depend on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participants {
    me: PeerId,
    others: Vec<PeerId>,
}

impl Participants {
    /// This peer and the others, in any order and without this one.
    pub fn new(me: PeerId, others: impl IntoIterator<Item = PeerId>) -> Self {
        let mut others: Vec<PeerId> = others.into_iter().filter(|peer| *peer != me).collect();
        others.sort_unstable();
        others.dedup();
        Self { me, others }
    }

    /// This peer without others.
    pub const fn alone(me: PeerId) -> Self {
        let others = Vec::new();
        Self { me, others }
    }

    /// This peer.
    pub const fn me(&self) -> PeerId {
        self.me
    }

    /// The others, ascending.
    pub fn others(&self) -> &[PeerId] {
        &self.others
    }

    /// Number of peers, this one included; at least 1.
    pub fn count(&self) -> u16 {
        u16::try_from(1 + self.others.len()).unwrap_or(u16::MAX)
    }

    /// This peer's place among all in the order of their ids, from zero; below [`Self::count`].
    pub fn place(&self) -> u16 {
        let below = self.others.partition_point(|peer| *peer < self.me);
        u16::try_from(below).unwrap_or(u16::MAX - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::tests::peer;

    #[test]
    fn the_order_in_which_peers_were_met_does_not_matter() {
        let one = Participants::new(peer(5), [9, 2, 5, 2].map(peer));
        assert_eq!(one, Participants::new(peer(5), [2, 9].map(peer)));
        assert_eq!((one.count(), one.place()), (3, 1));
        assert_eq!(one.others(), [2, 9].map(peer));
        let alone = Participants::alone(peer(5));
        assert_eq!((alone.count(), alone.place()), (1, 0));
    }
}
