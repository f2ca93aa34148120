//! The members of a group, as the one that makes its mean sees them.

use crate::PeerId;
use std::collections::BTreeSet;

/// What a maker does for the mean of a round.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Members that are asked.
    pub(super) others: Vec<PeerId>,
    /// Those that are waited for, this peer included.
    pub(super) waited: BTreeSet<PeerId>,
}
