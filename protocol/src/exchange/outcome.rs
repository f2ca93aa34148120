//! How an exchange ended.

use crate::{PeerId, SliceId};

/// How the exchange of one fragment ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    /// Apply these aggregates; none where combining has already moved the parameters.
    Apply(Vec<SliceId>),
    /// Apply the weighted mean of these contributions.
    Gather(Vec<(SliceId, f64)>),
    /// Make these means of branches the anchor.
    Merge(Vec<SliceId>),
    /// Nothing was agreed, or nothing could be mixed: the anchor stays.
    Void,
}

/// How a round's exchange ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// Every fragment has ended, and the exchange has reported each ending.
    Ended,
    /// No peer exchanges with this one now: the round continues with more training. It has not
    /// ended, so that a peer that is alone for a while is not ahead of the others afterwards.
    Alone,
    /// The swarm is ahead of this peer.
    Behind {
        /// The peer that said so.
        teller: PeerId,
        /// Whether replaying past rounds is not enough, and a state must be taken over.
        resync: bool,
    },
}
