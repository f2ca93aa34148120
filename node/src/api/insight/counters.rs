//! What is read when a round ends.

/// The counters of a daemon at the end of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Mean training loss of the last round.
    pub loss: Option<f64>,
    /// Bytes sent on the wire since the start.
    pub sent: u64,
    /// Bytes received from the wire since the start.
    pub received: u64,
}
