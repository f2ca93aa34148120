//! A member of a group.

use crate::PeerId;
use serde::{Deserialize, Serialize};

/// A member of a group with the weight of its contribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The peer.
    pub peer: PeerId,
    /// Samples it trained on this round.
    pub weight: f64,
}
