//! The counters of a daemon at one moment, without what takes time to measure.

use super::Status;

/// The counters of a daemon at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Inner steps in all, including earlier lives.
    pub inner_steps: u64,
    /// Samples in all, including earlier lives.
    pub samples: u64,
    /// Seconds spent in inner steps.
    pub train_s: f64,
    /// Mean training loss of the last round.
    pub loss: Option<f64>,
    /// Bytes sent on the wire.
    pub bytes_sent: u64,
    /// Bytes received from the wire.
    pub bytes_received: u64,
    /// Linked peers.
    pub peers: u64,
}

impl From<&Status> for Figures {
    fn from(status: &Status) -> Self {
        Self {
            inner_steps: status.inner_steps,
            samples: status.samples,
            train_s: status.train_s,
            loss: status.loss,
            bytes_sent: status.bytes_sent.wire,
            bytes_received: status.bytes_received.wire,
            peers: status.peers.values().filter(|p| p.linked).count() as u64,
        }
    }
}
