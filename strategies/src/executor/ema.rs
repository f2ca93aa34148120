//! A moving average of the anchor, kept beside it.

use crate::state::{StateError, StateSink, StateSource, finite};
use murmurate_protocol::Round;
use std::ops::Range;

/// Its name in a checkpoint.
const EMA: &str = "ema";

/// The exponential moving average of the anchor.
///
/// ```text
/// e' = d e + (1 - d) a,   d = min(decay, (1 + r) / (10 + r))
/// ```
///
/// after each round r that changes the anchor a, fragment by fragment. The smaller d of the first rounds
/// makes e forget where it began. Shapes: `[len]`, f32: one time the parameters. It is this peer's own
/// and changes nothing that others see. Source: Polyak and Juditsky, "Acceleration of stochastic
/// approximation by averaging" (1992); d as in `tf.train.ExponentialMovingAverage`. Special case:
/// `decay = 0` is the anchor.
#[derive(Clone, Debug)]
pub(super) struct Ema {
    decay: f64,
    values: Vec<f32>,
}

impl Ema {
    pub(super) fn new(decay: f64, anchor: &[f32]) -> Self {
        Self {
            decay,
            values: anchor.to_vec(),
        }
    }

    /// Number of f32 that it keeps.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// A fragment's round has ended with this anchor. A fragment of the companion is left out.
    pub(super) fn follow(&mut self, round: Round, range: Range<usize>, anchor: &[f32]) {
        let Some(values) = self.values.get_mut(range.clone()) else {
            return;
        };
        let rounds = round.0 as f64;
        let keep = self.decay.min((1.0 + rounds) / (10.0 + rounds)) as f32;
        for (e, a) in values.iter_mut().zip(&anchor[range]) {
            *e = keep * *e + (1.0 - keep) * a;
        }
    }

    /// The anchor was replaced by another state: begins again there.
    pub(super) fn start_over(&mut self, anchor: &[f32]) {
        let len = self.values.len();
        self.values.copy_from_slice(&anchor[..len]);
    }

    pub(super) fn save(&self, sink: &mut dyn StateSink) -> Result<(), StateError> {
        sink.tensor(EMA, &self.values)
    }

    /// Reads it from a checkpoint; `None` from one that was written without it.
    pub(super) fn read(&self, source: &dyn StateSource) -> Result<Option<Vec<f32>>, StateError> {
        let there = source.contains(EMA);
        there
            .then(|| finite(source, EMA, self.values.len()))
            .transpose()
    }

    /// Takes over what [`Ema::read`] found.
    pub(super) fn restore(&mut self, values: Vec<f32>) {
        self.values = values;
    }
}
