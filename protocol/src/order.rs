//! Work orders: what the peer asks of the Executor, and what the Executor answers.
//!
//! The peer speaks of stores, slices and weights by name; the tensors stay in the Executor.

use crate::{Digest, FragmentId, PeerId, Round, Settlement, SliceId};
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// How much to train in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepBudget {
    /// So many inner steps.
    Steps(u32),
    /// As many inner steps as fit, at least one.
    Time(Duration),
}

/// A place where the Executor keeps a run of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StoreId {
    /// What this peer has to say this round: parameters, a delta or a gradient, as the plan says.
    Local,
    /// The last parameters agreed on.
    Anchor,
    /// The reduction of one shard that this peer owns.
    Shard(u16),
    /// This peer's shards of a parameter server's center.
    Center,
    /// What this neighbour knows of the own parameters: encoding from it is encoding what they differ
    /// from it, and moves it there; a whole slice (`Part::Aggregate`) begins it anew.
    Replica(PeerId),
}

/// A piece of work for the Executor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Train, then leave this round's contribution in [`StoreId::Local`]: the round's cut. Without a cut
    /// it is the beginning of a round whose rest comes with another order, while the contribution of
    /// the round before is still being exchanged. Answered by [`Done::Trained`].
    Train {
        /// The round it is for.
        round: Round,
        /// How much; no inner steps where all of the round's were taken before.
        budget: StepBudget,
        /// Whether it ends with the cut.
        cut: bool,
        /// Peers that take part as far as this one knows, itself among them: what it trains is about
        /// such a share of what comes of a round.
        peers: u16,
    },
    /// Encode a shard of a store under the slice's name. Answered by [`Done::Encoded`].
    Encode {
        /// From where.
        store: StoreId,
        /// Under which name; its `part` picks the codec.
        slice: SliceId,
        /// Into how many shards the fragment is cut.
        of: u16,
    },
    /// `into = (keep * into + sum_k a_k * decode(slice_k)) / (keep + sum_k a_k)`, summed in the
    /// order given. With [`StoreId::Local`] it changes the parameters' mix for [`Order::Apply`]. With
    /// [`StoreId::Center`] and no inputs the shard becomes the anchor's.
    /// In a run of replicas each slice moves the replica of its origin instead, and
    /// `into += rate * sum_k a_k (replica of k here - own replica at k)`. Nothing has changed when it
    /// fails. Answered by [`Done::Combined`].
    Combine {
        /// The round it is for.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The shard.
        shard: u16,
        /// Into how many shards the fragment is cut.
        of: u16,
        /// Where the result goes.
        into: StoreId,
        /// Weight of what is there already.
        keep: f64,
        /// Slices with their weights (negative: taken out again).
        inputs: Vec<(SliceId, f64)>,
    },
    /// Make the agreed content of a fragment the new anchor and hand it to the trainer.
    /// `aggregates` are the decided slices in shard order; empty after gossip, where
    /// [`StoreId::Local`] already holds the mix. Answered by [`Done::Applied`].
    Apply {
        /// The round that ends.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The decided aggregates, shard by shard.
        aggregates: Vec<SliceId>,
        /// Whether what was trained since the anchor stays on top of the new one: for a straggler
        /// whose contribution was not part of the round.
        keep_local: bool,
    },
    /// Move an own shard of the center by contributions, each with its staleness: how many versions
    /// of the shard there were since its sender pulled it. Answered by [`Done::Combined`]; a failure
    /// changes nothing.
    Arrive {
        /// The fragment.
        fragment: FragmentId,
        /// The shard.
        shard: u16,
        /// Into how many shards the fragment is cut.
        of: u16,
        /// The contributions in the order in which they came.
        inputs: Vec<(SliceId, u64)>,
    },
    /// Make the weighted mean of contributions, summed in the order given, the move of a fragment's
    /// anchor, and hand the new anchor to the trainer: what every member does by itself where
    /// contributions travel as they are. Answered by [`Done::Applied`]; a failure changes nothing.
    Gather {
        /// The round that ends.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The contributions with their weights, in `PeerId` order.
        inputs: Vec<(SliceId, f64)>,
        /// As in [`Order::Apply`].
        keep_local: bool,
    },
    /// Give up this round's exchange of a fragment: the anchor stays, the parameters go on from
    /// where training left them, and the contribution is part of the next one. Answered by
    /// [`Done::Applied`] with the unchanged anchor's digest.
    Void {
        /// The round that ends.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
    },
    /// Tell the codec what became of a slice it encoded. Not answered.
    Settle {
        /// The slice.
        slice: SliceId,
        /// What became of it.
        outcome: Settlement,
    },
    /// Forget a slice's bytes. Not answered.
    Release {
        /// The slice.
        slice: SliceId,
    },
    /// Measure loss and accuracy on held data: of the anchor, where the trainer's parameters are more than that
    /// between rounds. Answered by [`Done::Evaluated`].
    Evaluate {
        /// The parameters of the start of this round.
        round: Round,
    },
    /// Write a checkpoint: tensors and the peer's own snapshot. Answered by [`Done::Saved`].
    Save {
        /// The round the checkpoint starts at.
        round: Round,
        /// The peer's state, opaque to the Executor.
        snapshot: Vec<u8>,
    },
    /// Keep the state that opens `round` for newcomers. Answered by [`Done::Pinned`].
    Pin {
        /// The round that the state opens.
        round: Round,
    },
    /// Forget a pinned state. Not answered.
    Unpin {
        /// The round that the state opens.
        round: Round,
    },
    /// Take over a fetched state. What was trained since the own anchor, and what error feedback
    /// kept, is given up: it was computed along a way that the swarm did not take.
    /// Answered by [`Done::Loaded`].
    Load {
        /// The state.
        state: StateId,
    },
    /// Forget all replicas that have to do with a peer. Not answered.
    Forget {
        /// The peer.
        peer: PeerId,
    },
    /// Encode, under the slice's name, `(local + sum_k a_k decode(slice_k)) / (1 + sum_k a_k)`, summed in
    /// the order given: what is relayed of a fragment. Nothing has changed when it fails. Answered by
    /// [`Done::Encoded`].
    Relay {
        /// Under which name.
        slice: SliceId,
        /// What came from others, with how many peers' parameters each is the mean of.
        inputs: Vec<(SliceId, f64)>,
    },
}

/// Which of the Executor's two lanes performs an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// One order at a time; owns the trainer.
    Train,
    /// A bounded queue beside it; owns anchor, codecs and outer optimizer.
    Mix,
}

impl Order {
    /// The lane that performs it.
    pub const fn lane(&self) -> Lane {
        match self {
            Self::Train { .. } | Self::Evaluate { .. } => Lane::Train,
            _ => Lane::Mix,
        }
    }
}

/// A swarm's state at the start of a round: anchor, outer optimizer, shared codec state, clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StateId {
    /// The round that the state opens.
    pub round: Round,
    /// Root hash over the hashes of its chunks.
    pub root: Digest,
    /// Bytes in all.
    pub bytes: u64,
}

/// What one stretch of training did.
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
}

/// What an evaluation found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Mean loss on held data, in nats.
    pub loss: f64,
    /// Share of held samples that are right, in `[0, 1]`; `None` where the task has no such thing.
    pub accuracy: Option<f64>,
    /// Held samples.
    pub samples: u64,
}

/// The Executor's answer to an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Done {
    /// Training ended; the contribution is in [`StoreId::Local`].
    Trained(TrainSummary),
    /// The slice is encoded and ready to be pushed.
    Encoded {
        /// Its size.
        bytes: u64,
        /// Hash of the bytes; only for aggregates, which peers vote on.
        digest: Option<Digest>,
    },
    /// The store holds the combination.
    Combined,
    /// The fragment is in force.
    Applied {
        /// Hash over the fragment's anchor (all-reduce) or parameters (gossip, none).
        digest: Digest,
    },
    /// The evaluation's outcome.
    Evaluated(Evaluation),
    /// The checkpoint is on stable storage.
    Saved,
    /// The state is kept for newcomers.
    Pinned(StateId),
    /// The fetched state is in force.
    Loaded {
        /// Hashes of the anchor, one per fragment.
        digests: Vec<Digest>,
    },
    /// The order could not be done.
    Failed(WorkError),
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
        /// What is wrong with it.
        reason: String,
    },
    /// A fetched state does not fit this model.
    #[error("a fetched state does not fit: {reason}")]
    BadState {
        /// What is wrong with it.
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
}
