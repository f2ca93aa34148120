//! What the Executor answers to a work order.

use crate::measured::{Evaluation, TrainSummary};
use crate::work_error::WorkError;
use crate::{Digest, Round};
use serde::{Deserialize, Serialize};

/// A swarm's state at the start of a round: anchor, outer optimizer, shared codec state, clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StateId {
    /// The round that the state opens.
    pub round: Round,
    /// Root hash over the hashes of its chunks.
    pub root: Digest,
    /// Its size.
    pub bytes: u64,
}

/// The Executor's answer to an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Done {
    /// Training ended; the contribution is in [`StoreId::Local`](crate::StoreId::Local).
    Trained(TrainSummary),
    /// The slice is encoded and ready to be pushed.
    Encoded {
        /// Its size.
        bytes: u64,
        /// Hash of the bytes; only for aggregates, which peers vote on.
        digest: Option<Digest>,
    },
    /// The combination is where the order says: a shard, the mix or the center.
    Combined,
    /// The fragment is applied.
    Applied {
        /// Hash over the fragment's anchor. Gossip and `none` keep their parameters there.
        digest: Digest,
        /// The note in the decided bytes; empty where there is none.
        note: Vec<u8>,
    },
    /// The evaluation's result.
    Evaluated(Evaluation),
    /// The checkpoint is on stable storage.
    Saved,
    /// The state is kept for newcomers.
    Pinned(StateId),
    /// The fetched state is loaded.
    Loaded {
        /// Hashes of the anchor, one per fragment.
        digests: Vec<Digest>,
        /// The note of [`Order::Pin`](crate::Order::Pin).
        note: Vec<u8>,
    },
    /// The order could not be done.
    Failed(WorkError),
    /// The loss of the held sample; infinite where it is not a number.
    Measured {
        /// In the task's unit.
        loss: f64,
    },
    /// The slice's bytes.
    Read {
        /// The bytes.
        bytes: Vec<u8>,
    },
}
