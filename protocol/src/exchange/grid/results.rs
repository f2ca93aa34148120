//! What the columns decided about one fragment, as far as it is here.

use crate::exchange::agreed::ShardVersion;
use crate::{Attempt, Digest, Members, PeerId, SliceId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// One column's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnResult {
    /// Its bundle's version. Without contributors the column found no result: its shard stays.
    pub(super) version: ShardVersion,
    /// Whether this peer's contribution is in it; `None` where no member of its row said so.
    pub(super) counted: Option<bool>,
}

impl ColumnResult {
    /// A column that found no result.
    pub(super) fn void(owner: PeerId) -> Self {
        Self {
            version: ShardVersion {
                owner,
                attempt: Attempt::VOID,
                contributors: Members::NONE,
                digest: Digest::from_bytes([0; 32]),
            },
            counted: Some(false),
        }
    }
}

/// The results of a fragment's columns.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) columns: BTreeMap<u16, ColumnResult>,
    /// Bundles that are on their way by a fetch, with what they must be.
    pub(super) fetching: BTreeMap<SliceId, (u16, ShardVersion)>,
    /// Members of the row that came back in this round and hand nothing down.
    pub(super) returned: BTreeSet<PeerId>,
    /// Since when only the results of other columns are missing.
    pub(super) since: Option<Time>,
    /// Peers that wait for this peer's results.
    pub(super) askers: BTreeSet<PeerId>,
    /// How often this peer asked others.
    pub(super) asked: u8,
    /// Whom it asked last.
    pub(super) helper: Option<PeerId>,
}
