//! Work orders: what the peer asks of the Executor. Its answers are in `done`.
//!
//! The peer speaks of stores, slices and weights by name; the tensors stay in the Executor.

use crate::{
    Blocks, FragmentId, Participants, PeerId, Round, Settlement, SliceId, StateId, TrainingRules,
};
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
    /// the difference between the parameters and the copy, and moves the copy by what was encoded.
    /// Encoding a whole slice (`Part::Aggregate`) sets the copy to the parameters. With this peer
    /// itself it is the one copy that all neighbours hold, and a whole slice of it is the copy as
    /// it is; only a copy that is not there yet begins at the parameters.
    Replica(PeerId),
    /// The anchor, as plain f32: this peer's side in a merge of branches.
    Branch,
    /// The mean of branches of one shard that this peer owns, as plain f32.
    Merged(u16),
    /// In a grid: the mean of a row's contributions to the shard of this peer's column.
    Row,
}

/// A piece of work for the Executor. Every order says by itself what is computed and where the
/// result goes. An order that fails has changed nothing, unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Train, then leave this round's contribution in [`StoreId::Local`]: the round's cut. Without
    /// a cut the order begins a round that a later order completes, while the previous round's
    /// contribution is still being exchanged. Answered by [`Done::Trained`](crate::Done::Trained).
    ///
    /// Without a cut and with no inner step it is the round's first forward pass alone: each layer
    /// waits until its fragment's round has ended. What it computed serves the order with the cut, if
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
    /// Encode a shard of a store under the slice's name. Answered by [`Done::Encoded`](crate::Done::Encoded).
    Encode {
        /// The store to read.
        store: StoreId,
        /// The name of the result; its `part` picks the codec.
        slice: SliceId,
        /// Into how many shards the fragment is cut.
        of: u16,
    },
    /// Encode `(local + sum_k a_k decode(slice_k)) / (1 + sum_k a_k)` under the slice's name,
    /// summed in the order given: the message that a peer passes on along a tree. Answered by
    /// [`Done::Encoded`](crate::Done::Encoded).
    EncodeRelayed {
        /// The name of the result.
        slice: SliceId,
        /// Messages of neighbours, each with the number of peers whose parameters it is the mean
        /// of.
        inputs: Vec<(SliceId, f64)>,
    },
    /// Reduce a shard that this peer owns: `shard = sum_k a_k decode(slice_k) / sum_k a_k`, or what
    /// the plan's aggregation rule makes of the slices, summed in the order given. The result goes
    /// to [`StoreId::Shard`]. Answered by [`Done::Combined`](crate::Done::Combined).
    Reduce {
        /// The fragment.
        fragment: FragmentId,
        /// The shard.
        shard: u16,
        /// Into how many shards the fragment is cut.
        of: u16,
        /// Contributions, or partial sums, with their weights.
        inputs: Vec<(SliceId, f64)>,
    },
    /// Reduce a row's contributions to the shard of this peer's column, as [`Order::Reduce`] does with
    /// the weighted mean. The result goes to [`StoreId::Row`], from which any part of the shard can be
    /// encoded until the fragment's round ends. Answered by [`Done::Combined`](crate::Done::Combined).
    SumRow {
        /// The fragment.
        fragment: FragmentId,
        /// The shard: this peer's column.
        shard: u16,
        /// Into how many shards the fragment is cut: the number of columns.
        of: u16,
        /// Contributions of the row with their weights.
        inputs: Vec<(SliceId, f64)>,
    },
    /// Put a note behind the bytes of an encoded slice, so that members vote on both. Answered by
    /// [`Done::Encoded`](crate::Done::Encoded) with the size and the hash of both.
    Append {
        /// The slice.
        slice: SliceId,
        /// Into how many shards the fragment is cut.
        of: u16,
        /// The note.
        note: Vec<u8>,
    },
    /// Put the decided parts of a column's shard into one slice. Answered by [`Done::Encoded`](crate::Done::Encoded).
    Bundle {
        /// The name of the result.
        slice: SliceId,
        /// Into how many shards the fragment is cut, of which the result is one.
        of: u16,
        /// The parts in order.
        parts: Vec<SliceId>,
        /// Set where a note is behind the bytes of the first one.
        noted: bool,
    },
    /// In an exchange of two passes: make of first contributions to a shard what members encode their second
    /// ones for. Answered by [`Done::Encoded`](crate::Done::Encoded).
    EncodeBasis {
        /// The name of the result.
        slice: SliceId,
        /// Into how many shards the fragment is cut.
        of: u16,
        /// First contributions with their weights.
        inputs: Vec<(SliceId, f64)>,
    },
    /// In an exchange of two passes: encode this peer's contribution to a shard for a basis. The first one
    /// to the same shard must have been encoded in this round. Answered by [`Done::Encoded`](crate::Done::Encoded).
    EncodeSecond {
        /// The name of the result.
        slice: SliceId,
        /// Into how many shards the fragment is cut.
        of: u16,
        /// The basis.
        basis: SliceId,
    },
    /// In an exchange of two passes: make the aggregate of a basis and the second contributions for it.
    /// Answered by [`Done::Encoded`](crate::Done::Encoded) with the hash of the result.
    EncodeJoined {
        /// The name of the result.
        slice: SliceId,
        /// Into how many shards the fragment is cut.
        of: u16,
        /// The basis.
        basis: SliceId,
        /// Second contributions with their weights.
        inputs: Vec<(SliceId, f64)>,
    },
    /// Average a shard of branches: `shard = sum_k a_k slice_k / sum_k a_k` of slices of plain f32,
    /// summed in the order given. The result goes to [`StoreId::Merged`]. Answered by
    /// [`Done::Combined`](crate::Done::Combined).
    Average {
        /// The fragment.
        fragment: FragmentId,
        /// The shard.
        shard: u16,
        /// Into how many shards the fragment is cut.
        of: u16,
        /// Slices of the members' branches with their weights.
        inputs: Vec<(SliceId, f64)>,
    },
    /// Mix this peer's parameters with those of others, summed in the order given: `mix = (keep *
    /// local + sum_k a_k decode(slice_k)) / (keep + sum_k a_k)`. [`Order::Apply`] puts the mix in
    /// force. Answered by [`Done::Combined`](crate::Done::Combined).
    Mix {
        /// The round it is for.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// Weight of this peer's parameters.
        keep: f64,
        /// Slices with their weights (negative: taken out again).
        inputs: Vec<(SliceId, f64)>,
    },
    /// Move the copy of each slice's origin by the slice, then move this peer's parameters towards
    /// the copies: `mix = local + rate * sum_k a_k (copy of k here - copy of this peer at k)`.
    /// [`Order::Apply`] puts the mix in force. Answered by [`Done::Combined`](crate::Done::Combined).
    MixReplicas {
        /// The round it is for.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// Slices with their weights.
        inputs: Vec<(SliceId, f64)>,
    },
    /// Set an owned shard of the center to another owner's copy of it, or to the anchor's values.
    /// Answered by [`Done::Combined`](crate::Done::Combined).
    ResetCenter {
        /// The fragment.
        fragment: FragmentId,
        /// The shard.
        shard: u16,
        /// Into how many shards the fragment is cut.
        of: u16,
        /// The other owner's copy; `None` takes the anchor.
        copy: Option<SliceId>,
    },
    /// Move an owned shard of the center by contributions. Answered by [`Done::Combined`](crate::Done::Combined).
    MoveCenter {
        /// The fragment.
        fragment: FragmentId,
        /// The shard.
        shard: u16,
        /// Into how many shards the fragment is cut.
        of: u16,
        /// Contributions in the order of their arrival, each with its staleness: the number of
        /// versions of the shard since its sender pulled it.
        inputs: Vec<(SliceId, u64)>,
    },
    /// Make the decided content of a fragment the new anchor and hand it to the trainer.
    /// `aggregates` are the decided slices in shard order; empty after [`Order::Mix`] and
    /// [`Order::MixReplicas`]. Answered by [`Done::Applied`](crate::Done::Applied).
    Apply {
        /// The round that ends.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The decided aggregates, shard by shard.
        aggregates: Vec<SliceId>,
        /// Set where what was trained since the old anchor stays on top of the new one: for a
        /// straggler whose contribution was not part of the round.
        keep_local: bool,
        /// What the owner has changed of the round's training.
        rules: TrainingRules,
    },
    /// Move a fragment's anchor by the weighted mean of contributions, summed in the order given,
    /// and hand the new anchor to the trainer. Every member does this itself where contributions
    /// travel to all members. Without contributions the anchor stays, and what was trained is given up. Answered
    /// by [`Done::Applied`](crate::Done::Applied).
    Gather {
        /// The round that ends.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The contributions with their weights, in `PeerId` order.
        inputs: Vec<(SliceId, f64)>,
        /// As in [`Order::Apply`].
        keep_local: bool,
        /// As in [`Order::Apply`].
        rules: TrainingRules,
    },
    /// Make merged branches the new anchor of a fragment and hand it to the trainer. Momentum, what
    /// codecs keep, and training since the old anchor are dropped: they belong to one side. Answered by
    /// [`Done::Applied`](crate::Done::Applied).
    Merge {
        /// The round that ends.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
        /// The decided means of plain f32, shard by shard.
        aggregates: Vec<SliceId>,
    },
    /// Give up this round's exchange of a fragment. The anchor stays, training continues from its
    /// present parameters, and the contribution becomes part of the next one. Answered by
    /// [`Done::Applied`](crate::Done::Applied) with the unchanged anchor's digest.
    Void {
        /// The round that ends.
        round: Round,
        /// The fragment.
        fragment: FragmentId,
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
    },
    /// Write a checkpoint that stays: another state is about to take the place of this peer's branch.
    /// Answered by [`Done::Saved`](crate::Done::Saved).
    SaveBranch {
        /// The round that the branch's state opens.
        round: Round,
        /// The peer's state, opaque to the Executor.
        snapshot: Vec<u8>,
    },
    /// Keep the state that opens `round` for newcomers. Answered by [`Done::Pinned`](crate::Done::Pinned).
    Pin {
        /// The round that the state opens.
        round: Round,
        /// What the peers of a grid agree on beside the parameters; opaque to the Executor.
        note: Vec<u8>,
    },
    /// Forget a pinned state. Not answered.
    Unpin {
        /// The round that the state opens.
        round: Round,
    },
    /// Take over a fetched state. Training since the old anchor and the error feedback's residual
    /// are dropped, because they belong to parameters that the swarm did not reach. Answered by
    /// [`Done::Loaded`](crate::Done::Loaded).
    Load {
        /// The state.
        state: StateId,
    },
    /// Forget the copies that this peer and a neighbour hold of each other. Not answered.
    ForgetReplicas {
        /// The neighbour.
        peer: PeerId,
    },
    /// Put the anchor aside, moved by one contribution alone, for the next [`Order::Measure`]. Answered by
    /// [`Done::Combined`](crate::Done::Combined).
    Stage {
        /// The contribution; none for the anchor as it is.
        slice: Option<SliceId>,
    },
    /// Measure the loss of what was put aside last, on the trainer's held sample of the round. The trainer's
    /// parameters stay as they are. Answered by [`Done::Measured`](crate::Done::Measured).
    Measure {
        /// The round, which chooses the sample.
        round: Round,
        /// Batches of the sample.
        batches: u16,
    },
    /// Keep these bytes under the slice's name. Answered by [`Done::Encoded`](crate::Done::Encoded).
    Keep {
        /// The name.
        slice: SliceId,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Read back the bytes of a small slice. Answered by [`Done::Read`](crate::Done::Read).
    Read {
        /// The slice.
        slice: SliceId,
    },
    /// Fragments may stay undecided: a forward pass that waits for them ends without them, and what it
    /// computed is dropped. Not answered.
    BreakOff {
        /// The round of the forward pass.
        round: Round,
    },
}
