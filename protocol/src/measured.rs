//! What training and evaluation found.

use serde::{Deserialize, Serialize};

/// The result of one stretch of training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainSummary {
    /// Inner steps taken.
    pub steps: u64,
    /// Samples seen.
    pub samples: u64,
    /// Mean training loss over these inner steps, in nats.
    pub loss: f64,
    /// Seconds spent in them.
    pub seconds: f64,
    /// How many of the [`Blocks`](crate::Blocks) that it was told are finished, of those behind them too.
    pub blocks: u64,
}

/// The result of an evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Mean loss on held-out data, in nats.
    pub loss: f64,
    /// Share of held-out samples that are classified correctly, in `[0, 1]`; `None` where the task
    /// has no accuracy.
    pub accuracy: Option<f64>,
    /// Share whose class is among the five that the model takes for the most likely; `None` where the
    /// task has fewer than ten classes.
    pub top_5: Option<f64>,
    /// Number of held-out samples.
    pub samples: u64,
}
