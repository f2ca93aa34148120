//! What members say beside their votes and locks.

use std::collections::BTreeMap;

/// What a member says with a promise, beside the ballot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in super::super) struct Claim<V> {
    /// Its vote in ballot zero.
    pub(in super::super) zero: Option<V>,
    /// Ballot and value of the highest certificate that it has.
    pub(in super::super) highest: Option<(u8, V)>,
}

/// Equal votes of a quorum in one ballot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Certificate<V, S> {
    pub(in super::super) ballot: u8,
    pub(in super::super) value: V,
    /// The signatures, by member.
    pub(in super::super) votes: BTreeMap<usize, S>,
}
