//! What other threads may read from a running train lane, and how they interrupt it.

use crate::DataReport;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The counters of a train lane, and its interrupt.
#[derive(Debug, Default)]
pub struct TrainSignals {
    pub(super) interrupt: Arc<AtomicBool>,
    pub(super) steps: AtomicU64,
    pub(super) samples: AtomicU64,
    pub(super) data: Vec<Arc<DataReport>>,
}

impl TrainSignals {
    /// Ends training before the next inner step, for good: the peer is leaving.
    pub fn interrupt(&self) {
        self.interrupt.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Inner steps taken since the start.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// What the trainer has found in its data.
    pub fn data(&self) -> impl Iterator<Item = &DataReport> {
        self.data.iter().map(Arc::as_ref)
    }

    /// Samples seen since the start.
    pub fn samples(&self) -> u64 {
        self.samples.load(Ordering::Relaxed)
    }
}
