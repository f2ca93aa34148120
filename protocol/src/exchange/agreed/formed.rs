//! What forming a group came to.

use super::group::Group;
use crate::exchange::Outcome;

/// What forming a group came to.
pub(super) enum Formed {
    /// Not yet.
    Waiting,
    /// This group.
    Group(Box<Group>),
    /// No group, but an outcome.
    Outcome(Outcome),
    /// No proposer answered, or the ready peers have no common anchor.
    NoGroup,
    /// Too few peers are ready.
    Alone,
}
