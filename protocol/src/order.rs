//! Work orders: what the peer asks of the Executor, and its answers.
//!
//! The peer speaks of stores, slices and weights by name; the tensors stay in the Executor.

use crate::{Blocks, Digest, FragmentId, PeerId, Round, Settlement, SliceId, TrainingRules};
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// How much to train in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepBudget {
    /// This number of inner steps.
    Steps(u32),
    /// As many inner steps as fit into this time, at least one.
    Time(Duration),
}

/// A place where the Executor keeps a run of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StoreId {
    /// This peer's contribution to the round: parameters, a delta or a gradient, as the plan says.
    Local,
    /// The last parameters agreed on.
    Anchor,
    /// The reduction of one shard that this peer owns.
    Shard(u16),
    /// The shards of a parameter server's center that this peer owns.
    Center,
    /// The copy of this peer's parameters that the given neighbour holds. Encoding from it encodes
    /// the difference between the parameters and the copy, and moves the copy by the encoded difference.
    /// With error feedback it encodes the parameters and the codec's last error, and the copy is the decoded result.
    /// Encoding a whole slice (`Part::Aggregate`) sets the copy to the parameters. With this peer itself it is the one
    /// copy that all neighbours hold, and a whole slice of it is the copy as it is; a new one begins at the parameters.
    Replica(PeerId),
    /// The anchor, as plain f32: this peer's side in a merge of branches.
    Branch,
    /// The mean of branches of one shard that this peer owns, as plain f32.
    Merged(u16),
    /// In a grid: the mean of a row's contributions to the shard of this peer's column.
    Row,
}

/// What the bytes of a slice are made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Source {
    /// A shard of a store.
    Store(StoreId),
    /// `(local + sum_k a_k decode(slice_k)) / (1 + sum_k a_k)`, summed in the order given: the message that a
    /// peer passes on along a tree. a_k is the number of peers whose parameters slice k is the mean of.
    Relayed(Vec<(SliceId, f64)>),
    /// In an exchange of two passes: first contributions to a shard with their weights. Members encode
    /// their second ones for the result.
    Basis(Vec<(SliceId, f64)>),
    /// In an exchange of two passes: this peer's contribution to a shard, encoded for this basis. The first one
    /// to the same shard must have been encoded in this round.
    Second {
        /// The basis.
        basis: SliceId,
    },
    /// In an exchange of two passes: a basis and the second contributions for it. The result is the aggregate.
    Joined {
        /// The basis.
        basis: SliceId,
        /// Second contributions with their weights.
        inputs: Vec<(SliceId, f64)>,
    },
    /// The slice's own bytes with a note behind them, so that members vote on both.
    Noted(Vec<u8>),
    /// The decided parts of a column's shard in one.
    Bundle {
        /// The parts in order.
        parts: Vec<SliceId>,
        /// Set where a note is behind the bytes of the first one.
        noted: bool,
    },
    /// These bytes.
    Bytes(Vec<u8>),
    /// A shard of this peer's contribution by its share of these weights, masked so that only the sum over exactly
    /// these members can be read. Members are in `PeerId` order, with this peer among them.
    Masked(Vec<(PeerId, f64)>),
}

impl Source {
    const fn name(&self) -> &'static str {
        match self {
            Self::Store(_) => "encode",
            Self::Relayed(_) => "encode relayed",
            Self::Basis(_) => "encode basis",
            Self::Second { .. } => "encode second",
            Self::Joined { .. } => "encode joined",
            Self::Noted(_) => "append",
            Self::Bundle { .. } => "bundle",
            Self::Bytes(_) => "keep",
            Self::Masked(_) => "encode masked",
        }
    }
}

/// A part of the parameters: one of the shards into which a fragment is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The fragment.
    pub fragment: FragmentId,
    /// The shard.
    pub shard: u16,
    /// Into how many shards the fragment is cut.
    pub of: u16,
}

impl Piece {
    /// All of a fragment.
    pub const fn whole(fragment: FragmentId) -> Self {
        Self {
            fragment,
            shard: 0,
            of: 1,
        }
    }
}

/// How slices are combined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Combination {
    /// Of contributions or partial sums to a shard that this peer owns: `sum_k a_k decode(slice_k) / sum_k a_k`,
    /// or what the plan's aggregation rule makes of them. Masked ones hold their weights already, and only their
    /// sum decodes. The result goes to [`StoreId::Shard`].
    Reduce(Vec<(SliceId, f64)>),
    /// As [`Combination::Reduce`] with the weighted mean, of a row's contributions to the shard of this peer's
    /// column. The result goes to [`StoreId::Row`], from which any part of the shard can be encoded until the
    /// fragment's round ends.
    SumRow(Vec<(SliceId, f64)>),
    /// The weighted mean of a shard of branches, which are slices of plain f32. The result goes to
    /// [`StoreId::Merged`].
    Average(Vec<(SliceId, f64)>),
    /// This peer's parameters with those of others:
    /// `mix = (keep * local + sum_k a_k decode(slice_k)) / (keep + sum_k a_k)`. [`Order::Apply`] puts the mix
    /// in force.
    Mix {
        /// The round it is for.
        round: Round,
        /// Weight of this peer's parameters.
        keep: f64,
        /// Slices with their weights (negative: taken out again).
        inputs: Vec<(SliceId, f64)>,
    },
    /// Each slice moves the copy of its origin, then this peer's parameters move towards the copies:
    /// `mix = local + rate * sum_k a_k (copy of k here - copy of this peer at k)`. [`Order::Apply`] puts the mix
    /// in force.
    MixReplicas {
        /// The round it is for.
        round: Round,
        /// Slices with their weights.
        inputs: Vec<(SliceId, f64)>,
    },
    /// An owned shard of the center becomes another owner's copy of it; `None` takes the anchor's values.
    ResetCenter(Option<SliceId>),
    /// Contributions move an owned shard of the center in the order of their arrival. Each comes with its
    /// staleness: the number of versions of the shard since its sender pulled it.
    MoveCenter(Vec<(SliceId, u64)>),
}

impl Combination {
    const fn name(&self) -> &'static str {
        match self {
            Self::Reduce(_) => "reduce",
            Self::SumRow(_) => "sum row",
            Self::Average(_) => "average",
            Self::Mix { .. } => "mix",
            Self::MixReplicas { .. } => "mix replicas",
            Self::ResetCenter(_) => "reset center",
            Self::MoveCenter(_) => "move center",
        }
    }

    /// The slices that are combined.
    pub fn slices(&self) -> Vec<SliceId> {
        match self {
            Self::Reduce(inputs)
            | Self::SumRow(inputs)
            | Self::Average(inputs)
            | Self::Mix { inputs, .. }
            | Self::MixReplicas { inputs, .. } => inputs.iter().map(|(slice, _)| *slice).collect(),
            Self::ResetCenter(copy) => copy.iter().copied().collect(),
            Self::MoveCenter(inputs) => inputs.iter().map(|(slice, _)| *slice).collect(),
        }
    }
}

/// What an Executor may forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unneeded {
    /// The pinned state that opens this round.
    Pinned(Round),
    /// The copies that this peer and a neighbour hold of each other.
    Replicas(PeerId),
    /// The forward pass of this round, which waits for fragments that may stay undecided: it ends without them,
    /// and its result is dropped.
    Forward(Round),
}

/// How the round of a fragment ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Ending {
    /// The decided aggregates are the new anchor, shard by shard; none where combining has already moved the
    /// parameters.
    Apply(Vec<SliceId>),
    /// The anchor moves by the weighted mean of contributions, summed in the order given, which is that of
    /// `PeerId`. Every member does this itself where contributions travel to all members. Without contributions
    /// the anchor stays, and the training since is given up.
    Gather(Vec<(SliceId, f64)>),
    /// Means of branches of plain f32, shard by shard, are the new anchor. Momentum, what codecs keep, and
    /// training since the old anchor are dropped: they belong to one side.
    Merge(Vec<SliceId>),
    /// Nothing was agreed, or nothing could be mixed. The anchor stays, training continues from its present
    /// parameters, and the contribution becomes part of the next one.
    Void,
}

impl Ending {
    /// The slices whose bytes it needs.
    pub(crate) fn slices(&self) -> Vec<SliceId> {
        match self {
            Self::Apply(aggregates) | Self::Merge(aggregates) => aggregates.clone(),
            Self::Gather(inputs) => inputs.iter().map(|(slice, _)| *slice).collect(),
            Self::Void => Vec::new(),
        }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Apply(_) => "apply",
            Self::Gather(_) => "gather",
            Self::Merge(_) => "merge",
            Self::Void => "void",
        }
    }
}

/// A piece of work for the Executor. Every order names by itself the computation and the place of its
/// result. An order that fails has changed nothing, unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Train, then leave this round's contribution in [`StoreId::Local`]: the round's cut. Without
    /// a cut the order begins a round that a later order completes, while the previous round's
    /// contribution is still being exchanged. Answered by [`Done::Trained`](crate::Done::Trained).
    ///
    /// Without a cut and with no inner step it is the round's first forward pass alone: each layer
    /// waits until its fragment's round has ended. Its result serves the order with the cut, if
    /// all parameters are still those that it used.
    Train {
        /// The round it is for.
        round: Round,
        /// How much; zero inner steps where an earlier order has taken all of the round's steps.
        budget: StepBudget,
        /// Set where it ends with the cut.
        cut: bool,
        /// The live peers. Eager updates scale by the inverse of their number, and data that is dealt
        /// is divided among them.
        peers: Participants,
        /// The blocks of data to train. None where peers do not agree on the data: then it is divided among
        /// `peers`.
        blocks: Option<Blocks>,
        /// What the round's training goes by beside the plan: the owner's changes, and its inner steps where
        /// these follow from a loss.
        rules: TrainingRules,
    },
    /// Make the bytes of a slice. Answered by [`Done::Encoded`](crate::Done::Encoded).
    Encode {
        /// The name of the result; its `part` picks the codec.
        slice: SliceId,
        /// Into how many shards the fragment is cut.
        of: u16,
        /// What the bytes are made of.
        from: Source,
    },
    /// Combine slices, each with a weight, in the order given. Answered by
    /// [`Done::Combined`](crate::Done::Combined).
    Combine {
        /// Which values they are of.
        piece: Piece,
        /// How, and where the result goes.
        how: Combination,
    },
    /// End a fragment's round, and hand its anchor to the trainer. Answered by
    /// [`Done::Applied`](crate::Done::Applied).
    Apply {
        /// The round that ends.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The new anchor.
        ending: Ending,
        /// Set where the training since the old anchor stays on top of the new one: for a
        /// straggler whose contribution was not part of the round.
        keep_local: bool,
        /// What the owner has changed of the round's training.
        rules: TrainingRules,
    },
    /// Tell the codec the fate of a slice that it encoded. Not answered.
    Settle {
        /// The slice.
        slice: SliceId,
        /// Its fate.
        outcome: Settlement,
    },
    /// Forget a slice's bytes. Not answered.
    Release {
        /// The slice.
        slice: SliceId,
    },
    /// Measure loss and accuracy of the anchor on held-out data, also where the trainer's
    /// parameters are ahead of it. Answered by [`Done::Evaluated`](crate::Done::Evaluated).
    Evaluate {
        /// The round whose first parameters are measured.
        round: Round,
    },
    /// Write a checkpoint: tensors and the peer's snapshot. Answered by [`Done::Saved`](crate::Done::Saved).
    Save {
        /// The round the checkpoint starts at.
        round: Round,
        /// The peer's state, opaque to the Executor.
        snapshot: Vec<u8>,
        /// Set for a checkpoint that stays: another state is about to take the place of this peer's branch.
        branch: bool,
    },
    /// Keep the state that opens `round` for newcomers. Answered by [`Done::Pinned`](crate::Done::Pinned).
    Pin {
        /// The round that the state opens.
        round: Round,
        /// What the peers of a grid agree on beside the parameters; opaque to the Executor.
        note: Vec<u8>,
    },
    /// Take over a fetched state. Training since the old anchor and the error feedback's residual
    /// are dropped, because they belong to parameters that the swarm did not reach. Answered by
    /// [`Done::Loaded`](crate::Done::Loaded).
    Load {
        /// The state.
        state: StateId,
    },
    /// Forget something that is not needed any more. Not answered.
    Forget(Unneeded),
    /// Put the anchor aside, moved by one contribution alone, for the next [`Order::Measure`]. Answered by
    /// [`Done::Combined`](crate::Done::Combined).
    Stage {
        /// The contribution; none for the anchor as it is.
        slice: Option<SliceId>,
    },
    /// Measure the loss of the parameters that were put aside last, on the trainer's held sample of the round. The
    /// trainer's parameters stay as they are. Answered by [`Done::Measured`](crate::Done::Measured).
    Measure {
        /// The round, which chooses the sample.
        round: Round,
        /// Batches of the sample.
        batches: u16,
    },
    /// Read back the bytes of a small slice. Answered by [`Done::Read`](crate::Done::Read).
    Read {
        /// The slice.
        slice: SliceId,
    },
}

impl Order {
    /// Its name in traces and logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Train { .. } => "train",
            Self::Encode { from, .. } => from.name(),
            Self::Combine { how, .. } => how.name(),
            Self::Apply { ending, .. } => ending.name(),
            Self::Settle { .. } => "settle",
            Self::Release { .. } => "release",
            Self::Evaluate { .. } => "evaluate",
            Self::Save { branch: false, .. } => "save",
            Self::Save { branch: true, .. } => "save branch",
            Self::Pin { .. } => "pin",
            Self::Forget(Unneeded::Pinned(_)) => "unpin",
            Self::Forget(Unneeded::Replicas(_)) => "forget replicas",
            Self::Forget(Unneeded::Forward(_)) => "break off",
            Self::Load { .. } => "load",
            Self::Stage { .. } => "stage",
            Self::Measure { .. } => "measure",
            Self::Read { .. } => "read",
        }
    }

    /// The slices that become one in it; empty for other orders.
    pub fn inputs(&self) -> Vec<SliceId> {
        match self {
            Self::Combine { how, .. } => how.slices(),
            Self::Encode {
                from:
                    Source::Relayed(inputs) | Source::Basis(inputs) | Source::Joined { inputs, .. },
                ..
            }
            | Self::Apply {
                ending: Ending::Gather(inputs),
                ..
            } => inputs.iter().map(|(slice, _)| *slice).collect(),
            _ => Vec::new(),
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

/// One of the Executor's two lanes. Each performs its orders one after another; the lanes run
/// beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Owns the trainer.
    Train,
    /// Owns anchor, codecs and outer optimizer.
    Mix,
}

/// The lanes that an order passes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The mix lane performs the order.
    Mix,
    /// The mix lane lends its buffer to the train lane, which performs the order.
    MixThenTrain,
    /// The train lane writes its half of a checkpoint; the mix lane adds its own and commits both.
    TrainThenMix,
}

impl Route {
    /// The last lane of the route: it ends the order and answers it.
    pub const fn last(self) -> Lane {
        match self {
            Self::MixThenTrain => Lane::Train,
            Self::Mix | Self::TrainThenMix => Lane::Mix,
        }
    }
}

impl Order {
    /// The lanes that it passes through.
    pub const fn route(&self) -> Route {
        match self {
            Self::Train { .. } | Self::Evaluate { .. } | Self::Measure { .. } => {
                Route::MixThenTrain
            }
            Self::Save { .. } => Route::TrainThenMix,
            _ => Route::Mix,
        }
    }

    /// Returns `true` for a round's first forward pass alone, which may wait for fragments of the round before.
    pub const fn begins_forward(&self) -> bool {
        matches!(
            self,
            Self::Train {
                budget: StepBudget::Steps(0),
                cut: false,
                ..
            }
        )
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
