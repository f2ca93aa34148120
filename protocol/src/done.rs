//! What the Executor answers to a work order.

use crate::{Digest, PeerId, Round, SliceId};
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

/// The result of one stretch of training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainSummary {
    /// Inner steps taken.
    pub steps: u64,
    /// Samples seen.
    pub samples: u64,
    /// Mean training loss over these inner steps, in nats.
    pub loss: f64,
    /// Seconds spent in them.
    pub seconds: f64,
    /// How many of the [`Blocks`](crate::Blocks) that it was told are finished, of those behind them too.
    pub blocks: u64,
}

/// The result of an evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Mean loss on held-out data, in nats.
    pub loss: f64,
    /// Share of held-out samples that are classified correctly, in `[0, 1]`; `None` where the task
    /// has no accuracy.
    pub accuracy: Option<f64>,
    /// Share whose class is among the five that the model takes for the most likely; `None` where the
    /// task has fewer than ten classes.
    pub top_5: Option<f64>,
    /// Number of held-out samples.
    pub samples: u64,
}

/// Why an order could not be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum WorkError {
    /// A slice that came from a peer does not decode, or decodes to NaN, Inf or an absurd norm.
    #[error("a slice of {origin} does not decode: {reason}")]
    BadSlice {
        /// The slice.
        slice: SliceId,
        /// Who encoded it.
        origin: PeerId,
        /// Why it is refused.
        reason: String,
    },
    /// A slice is no longer here, although others may have it: the order fails at this peer only.
    #[error("a slice of {} is no longer here", slice.origin)]
    Gone {
        /// The slice.
        slice: SliceId,
    },
    /// A fetched state does not fit this model.
    #[error("a fetched state does not fit: {reason}")]
    BadState {
        /// Why it does not fit.
        reason: String,
    },
    /// Training itself failed (device, data, loss not finite).
    #[error("training failed: {reason}")]
    Training {
        /// What happened.
        reason: String,
    },
    /// The checkpoint could not be written.
    #[error("the checkpoint was not written: {reason}")]
    Storage {
        /// What happened.
        reason: String,
    },
    /// A state could not be kept for newcomers.
    #[error("the state could not be kept for newcomers: {reason}")]
    Pin {
        /// What happened.
        reason: String,
    },
    /// The model could not be evaluated. Training goes on.
    #[error("the model was not evaluated: {reason}")]
    Evaluation {
        /// What happened.
        reason: String,
    },
}
