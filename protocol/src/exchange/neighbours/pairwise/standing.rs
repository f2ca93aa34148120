//! How far a peer is with one neighbour, for observers that see both ends.

use crate::{FragmentId, PeerId};

/// How far a peer is with one neighbour and fragment. Where both ends are in the same session and
/// have finished as many exchanges, their weights are the same to the bit; else one end has
/// finished exactly one more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// The neighbour.
    pub peer: PeerId,
    /// The fragment.
    pub fragment: FragmentId,
    /// Number of the session.
    pub session: u32,
    /// Exchanges finished in it.
    pub exchanges: u32,
    /// Sum of the weights that they were mixed with.
    pub weight: f64,
}
