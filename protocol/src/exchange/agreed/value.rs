//! The value that members vote for.

use super::ballot::ShardVersion;
use crate::wire::canonical;
use crate::{Digest, FragmentId, GroupTag, Round};

/// What a vote names where members do not sign: one digest in place of all versions.
pub(super) fn vote_of(
    round: Round,
    fragment: FragmentId,
    group: GroupTag,
    versions: &[ShardVersion],
) -> Digest {
    let all = ("murmurate vote", round, fragment, group, versions);
    Digest::of(&canonical(&all))
}

/// The value that stands for versions in a group with this digest; no versions stand for a void
/// round.
pub fn value_of(group: &Digest, versions: &[ShardVersion]) -> Digest {
    Digest::of(&canonical(&("murmurate value", group, versions)))
}
