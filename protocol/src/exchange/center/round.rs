//! A worker's round: what it waits for of each shard.

use crate::exchange::Ending;
use crate::{FragmentId, PeerId, SliceId, Time};

/// What a worker waits for of one shard.
#[derive(Debug)]
pub(super) struct WantedShard {
    pub(super) owner: Option<PeerId>,
    /// Peers that said that they are not the owner.
    pub(super) refused: Vec<PeerId>,
    /// Encoded bytes of the contribution; zero until it is encoded.
    pub(super) bytes: u64,
    pub(super) tries: u8,
    /// The shard that came back, and its version.
    pub(super) got: Option<(SliceId, u64)>,
    /// No owner answers.
    pub(super) given_up: bool,
}

/// One fragment in one round.
#[derive(Debug)]
pub(super) struct WorkerFragment {
    pub(super) fragment: FragmentId,
    pub(super) shards: Vec<WantedShard>,
    pub(super) since: Time,
    pub(super) deadline: Time,
    pub(super) ending: Option<Ending>,
    pub(super) told: bool,
    pub(super) closed: bool,
}

impl WorkerFragment {
    pub(super) fn open(&self) -> impl Iterator<Item = u16> {
        let open = |w: &WantedShard| w.got.is_none() && !w.given_up;
        let all = (0u16..).zip(&self.shards);
        all.filter(move |(_, w)| open(w)).map(|(shard, _)| shard)
    }
}
