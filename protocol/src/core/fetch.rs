//! The names of what one peer can ask another one's bulk side for.

use crate::{SliceId, StateId};
use serde::{Deserialize, Serialize};

/// Something that a peer fetches from another one over the bulk protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FetchId {
    /// An encoded slice.
    Slice(SliceId),
    /// A pinned state.
    State(StateId),
}
