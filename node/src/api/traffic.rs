//! Bytes of one direction, counted at three points of their way.

use serde::{Deserialize, Serialize};

/// Bytes of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Values as f32, before the codec.
    pub payload: u64,
    /// After the codec.
    pub encoded: u64,
    /// On the network, with headers and control messages.
    pub wire: u64,
}

impl Traffic {
    /// Traffic of which only the bytes on the network are known.
    pub(crate) fn on_the_wire(wire: u64) -> Self {
        Self {
            wire,
            ..Self::default()
        }
    }
}

impl std::ops::Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            payload: self.payload + other.payload,
            encoded: self.encoded + other.encoded,
            wire: self.wire + other.wire,
        }
    }
}
