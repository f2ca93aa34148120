//! What members of a group vote on, and what a repair asks for.
//!
//! The value that members vote for.

use crate::wire::canonical;
use crate::{Attempt, Digest, Members, PeerId};
use serde::{Deserialize, Serialize};

/// A ballot: who coordinates it breaks ties between equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ballot {
    /// Zero for the first, which needs no coordinator.
    pub number: u8,
    /// The member that coordinates it.
    pub coordinator: PeerId,
}

impl Ballot {
    /// The attempt at a shard that belongs to this ballot.
    pub(crate) const fn attempt(&self) -> Attempt {
        Attempt(self.number)
    }
}

/// One version of one shard's aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ShardVersion {
    /// Who reduced it.
    pub owner: PeerId,
    /// In which ballot.
    pub attempt: Attempt,
    /// The members whose contributions are in it.
    pub contributors: Members,
    /// Hash of its encoded bytes.
    pub digest: Digest,
}

/// A vote: one version for each shard.
pub(super) type Versions = Vec<ShardVersion>;

/// A shard's version that a member holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The shard.
    pub shard: u16,
    /// Its version.
    pub version: ShardVersion,
}

/// What a repair asks for one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShardPlan {
    /// Some member holds it: take this version, from this holder if you lack it.
    Keep {
        /// The version.
        version: ShardVersion,
        /// A member that holds its bytes.
        holder: PeerId,
    },
    /// No member holds it: send your contribution to the new owner, who reduces it in this ballot.
    Redo {
        /// The successor.
        owner: PeerId,
    },
}

/// What a vote names where members do not sign and there are many shards.
pub(super) fn vote_of(versions: &[ShardVersion]) -> Digest {
    Digest::of(&canonical(&("murmurate vote", versions)))
}

/// The value that stands for versions in a group with this digest; no versions stand for a void
/// round.
pub fn value_of(group: &Digest, versions: &[ShardVersion]) -> Digest {
    Digest::of(&canonical(&("murmurate value", group, versions)))
}
