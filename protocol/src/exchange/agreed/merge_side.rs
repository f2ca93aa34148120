//! The sides of a merge, on the wire.

use crate::limits::{GROUP_MEMBERS_MAX, MERGE_SIDES_MAX};
use crate::wire::{WireError, check};
use crate::{Digest, PeerId};
use serde::{Deserialize, Serialize};

/// One side of a merge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergeSide {
    /// Hash of its anchor.
    pub head: Digest,
    /// What its rounds have decided since the split; its members share it.
    pub weight: f64,
    /// Its members in `PeerId` order.
    pub members: Vec<PeerId>,
}

/// Checks the sides of a merge.
pub(super) fn merge(sides: &[MergeSide]) -> Result<(), WireError> {
    let count: usize = sides.iter().map(|side| side.members.len()).sum();
    let few = sides.len() <= MERGE_SIDES_MAX && count <= GROUP_MEMBERS_MAX;
    check::ok(few, "sides")?;
    for side in sides {
        check::weight(side.weight)?;
        let ascending = side.members.is_sorted_by(|one, next| one < next);
        check::ok(ascending && !side.members.is_empty(), "members")?;
    }
    Ok(())
}
