//! Names of what travels: slices of fragments, and what a receiver must know about one.

use crate::{FragmentId, PeerId, Round};
use serde::{Deserialize, Serialize};

/// Which way a slice goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Part {
    /// From a member towards whoever reduces or mixes it.
    Contribution,
    /// From a shard's owner back to the members: what they vote on by its hash. Where contributions
    /// are gathered, each of them as it is; between neighbours with replicas the whole parameters, which
    /// a session begins with.
    Aggregate,
    /// From member to member along a schedule: the mean of some contributions.
    Partial,
}

/// A slice: what travels of one fragment, from one peer, in one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SliceId {
    /// The round it belongs to.
    pub round: Round,
    /// The fragment it was cut from.
    pub fragment: FragmentId,
    /// Which of the fragment's equal shards, from zero.
    pub shard: u16,
    /// Which way it goes.
    pub part: Part,
    /// The peer that encoded it. Schedules in which all members make the same aggregate name one.
    pub origin: PeerId,
    /// The ballot's number in which its shard was reduced; in gossip a tag of the sender's life, so
    /// that what it pushed before a restart is not taken for what it pushes after; of a partial sum
    /// the stage of its sender's part in the schedule; between neighbours, and relayed, the tag and which
    /// of the round's slices it is.
    pub attempt: u8,
}

/// What the receiver of a slice must know beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SliceMeta {
    /// Into how many shards the fragment is cut; the slice's shard is below it.
    pub of: u16,
    /// The weight that travels with it: samples (all-reduce), push-sum mass (gossip), the share that
    /// its sender offers (between neighbours), or how many peers' parameters it is the mean of (relayed).
    pub weight: f64,
    /// Which members (bits in `PeerId` order) an aggregate or a partial sum is the weighted mean of;
    /// between neighbours the number of the exchange in its session; relayed one on the way to the root;
    /// zero otherwise.
    pub contributors: u64,
    /// A tag of the group it was made for, so that two groups of one round do not mix; between
    /// neighbours the session.
    pub group: u64,
    /// Encoded bytes.
    pub bytes: u64,
}

/// How a push ended, as its sender knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PushOutcome {
    /// The receiver acknowledged it.
    Delivered,
    /// It surely did not arrive.
    Lost,
    /// The receiver declined it.
    Refused,
    /// The link died with the slice under way: it may have arrived.
    Unknown,
}

/// What happened to a slice's content, as the peers agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Settlement {
    /// It is part of what was applied: the residual is committed.
    Delivered,
    /// It is not: the decoded contribution goes back into the residual.
    Lost,
}
