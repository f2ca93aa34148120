//! The size of the common state that all members of a strategy keep for its codec.

use super::{STATE_HEADER_BYTES, Strategy};
use crate::Layout;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use std::ops::Range;

/// What every member holds of how many, as states are listed.
pub(in crate::grid) const HELD: &str = "held of 16 members";
pub(in crate::grid) const HELD_MEMBERS: usize = 16;

/// Members that a transferred state holds the last word of, at most: those of a group, and as many
/// that were in it within the last rounds.
const COMMON_MEMBERS: u64 = 128;

impl Strategy {
    /// Bytes of a transferred state beside its runs of parameters.
    pub(super) fn kept_bytes(&self, layout: &Layout) -> u64 {
        let fragments = self.fragments(layout);
        // Of each fragment is said whether it keeps a first half.
        let halves = match self.halves_runs() {
            0 => 0,
            _ => 4 * fragments.len() as u64,
        };
        STATE_HEADER_BYTES + halves + self.common_bytes(&fragments)
    }

    /// Runs that every member holds of others, among 16.
    pub(super) fn held_runs(&self) -> usize {
        let mut codec = self.codec();
        let holds = codec.gathering().is_some_and(|common| common.holds());
        if holds { HELD_MEMBERS } else { 0 }
    }

    /// What the codec keeps in common at most, in bytes of a transferred state.
    fn common_bytes(&self, fragments: &[Range<usize>]) -> u64 {
        let mut codec = self.codec();
        if let Some(twice) = codec.two_passes() {
            // The number of shards, and the number of values of each.
            let of = |len: usize| twice.shared_most(len) as u64 + 1 + GROUP_MEMBERS_MAX as u64;
            return fragments.iter().map(|f| 4 * of(f.len()) + 16).sum();
        }
        let Some(common) = codec.gathering() else {
            return 0;
        };
        let members = if common.holds() { COMMON_MEMBERS } else { 0 };
        let of = |len: usize| (common.shared_most(len) as u64) + members * (len as u64 + 16);
        fragments.iter().map(|f| 4 * of(f.len()) + 16).sum()
    }
}
