//! The value that members vote for.

use super::ballot::ShardVersion;
use crate::Digest;
use crate::wire::canonical;

/// What a vote names where members do not sign and there are many shards.
pub(super) fn vote_of(versions: &[ShardVersion]) -> Digest {
    Digest::of(&canonical(&("murmurate vote", versions)))
}

/// The value that stands for versions in a group with this digest; no versions stand for a void
/// round.
pub fn value_of(group: &Digest, versions: &[ShardVersion]) -> Digest {
    Digest::of(&canonical(&("murmurate value", group, versions)))
}
