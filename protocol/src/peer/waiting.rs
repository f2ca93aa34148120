//! What the peer waits for, as its host shows it.

use crate::core::{Wait, Waiting};
use crate::peer::Peer;
use crate::peer::lag::CatchUp;
use crate::{FragmentId, PeerId};

impl Peer {
    /// Every wait that is under way, with the peers that it is for. At most one of a kind for each open
    /// fragment. It changes nothing, and the same inputs give the same answer.
    pub fn waiting(&self) -> Vec<Waiting> {
        let waits = self.cx.waits.iter();
        let waits = waits.map(|((wait, fragment), (since, allowed))| {
            let mut peers = self.awaited(*wait, *fragment);
            peers.retain(|peer| *peer != self.cx.me());
            peers.sort_unstable();
            peers.dedup();
            Waiting {
                wait: *wait,
                fragment: *fragment,
                peers,
                since: *since,
                deadline: *since + *allowed,
            }
        });
        waits.collect()
    }

    fn awaited(&self, wait: Wait, fragment: FragmentId) -> Vec<PeerId> {
        match wait {
            Wait::Peers => self.missing_mates(),
            Wait::State => self.donors_awaited(),
            _ => self.exchange.awaited(&self.cx, wait, fragment),
        }
    }

    /// Peers that a state or a past round is expected from.
    fn donors_awaited(&self) -> Vec<PeerId> {
        match &self.catch_up {
            CatchUp::Asking { asked, .. } => asked.iter().copied().collect(),
            CatchUp::Vouching(vouching) => vouching.donors.clone(),
            CatchUp::Fetching(_, donors)
            | CatchUp::Keeping(_, _, donors)
            | CatchUp::Loading(_, _, donors) => donors.clone(),
            CatchUp::Replaying(replay) => replay.donor.into_iter().collect(),
            CatchUp::Idle => Vec::new(),
        }
    }
}
