//! What a round's result says of the data.

use super::Taken;
use crate::PeerId;

/// Whose contributions are in a round's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Of these peers.
    Of(Vec<(PeerId, Taken)>),
    /// There is no result: training goes on, and the next contributions hold that of this round too.
    Void,
    /// It made the branches of a split one. Each had a ledger of its own, and a new one begins.
    Merged,
}
