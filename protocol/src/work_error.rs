//! Why the Executor could not perform an order.

use crate::{PeerId, SliceId};
use serde::{Deserialize, Serialize};

/// Why an order could not be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum WorkError {
    /// A slice that came from a peer does not decode, or decodes to NaN, Inf or an absurd norm.
    #[error("a slice of {origin} does not decode: {reason}")]
    BadSlice {
        /// The slice.
        slice: SliceId,
        /// Who encoded it.
        origin: PeerId,
        /// What is wrong with it.
        reason: String,
    },
    /// A slice is no longer here, although others may have it: the order fails at this peer only.
    #[error("a slice of {} is no longer here", slice.origin)]
    Gone {
        /// The slice.
        slice: SliceId,
    },
    /// A fetched state does not fit this model.
    #[error("a fetched state does not fit: {reason}")]
    BadState {
        /// What is wrong with it.
        reason: String,
    },
    /// Training itself failed (device, data, loss not finite).
    #[error("training failed: {reason}")]
    Training {
        /// What happened.
        reason: String,
    },
    /// The checkpoint could not be written.
    #[error("the checkpoint was not written: {reason}")]
    Storage {
        /// What happened.
        reason: String,
    },
    /// A state could not be kept for newcomers.
    #[error("the state could not be kept for newcomers: {reason}")]
    Pin {
        /// What happened.
        reason: String,
    },
    /// The model could not be evaluated. Training goes on.
    #[error("the model was not evaluated: {reason}")]
    Evaluation {
        /// What happened.
        reason: String,
    },
}
