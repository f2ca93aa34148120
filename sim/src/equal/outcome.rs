//! The result of one run: a curve of the loss, the bytes, and the seconds on each network.

use super::spec::EqualCell;
use serde::{Deserialize, Serialize};

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EqualPoint {
    /// Inner steps that each peer had taken.
    pub inner_steps: f64,
    /// Mean over the peers of the loss on held-out data, in nats; `None` if it was not finite.
    pub loss: Option<f64>,
}

/// The seconds of an inner step with its share of the exchange.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// The network.
    pub network: String,
    /// Seconds of a round, by its inner steps.
    pub step_s: f64,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EqualOutcome {
    /// Name of the entrant.
    pub entrant: String,
    /// Name of its preset.
    pub preset: String,
    /// Name of the distribution of the data.
    pub data: String,
    /// Number of peers.
    pub peers: usize,
    /// The seed.
    pub seed: u64,
    /// Number of the model's parameters.
    pub parameters: u64,
    /// Samples of an inner step of one peer.
    pub batch: u64,
    /// Inner steps of each peer.
    pub inner_steps: u64,
    /// Rounds.
    pub rounds: u64,
    /// Inner steps between two exchanges of a value.
    pub period: f64,
    /// Bytes that a peer sent in the whole run, on average.
    pub bytes: f64,
    /// The curve, the start first.
    pub points: Vec<EqualPoint>,
    /// The seconds on each network.
    pub paces: Vec<Pace>,
}

impl EqualOutcome {
    /// The same run under the names that a trial has for it now.
    #[must_use]
    pub fn named(self, cell: &EqualCell<'_>) -> Self {
        Self {
            entrant: cell.entrant.name.clone(),
            data: cell.data.name.clone(),
            ..self
        }
    }

    /// The loss at the end.
    pub fn last(&self) -> Option<f64> {
        self.points.last().and_then(|point| point.loss)
    }

    /// The loss after this many inner steps, between two measurements by a line; at the end after it.
    pub fn at(&self, inner_steps: f64) -> Option<f64> {
        let after = self
            .points
            .iter()
            .position(|point| point.inner_steps >= inner_steps);
        let Some(after) = after else {
            return self.last();
        };
        let here = self.points[after];
        let before = after.checked_sub(1).map(|before| self.points[before]);
        let Some(before) = before.filter(|before| before.inner_steps < here.inner_steps) else {
            return here.loss;
        };
        let share = (inner_steps - before.inner_steps) / (here.inner_steps - before.inner_steps);
        let (from, to) = (before.loss?, here.loss?);
        Some(from + (to - from) * share)
    }

    /// Inner steps that this many bytes pay for.
    pub fn steps_of_bytes(&self, bytes: f64) -> f64 {
        bytes / self.bytes * self.inner_steps as f64
    }

    /// Seconds of an inner step on a network.
    pub fn step_s(&self, network: &str) -> Option<f64> {
        let pace = self.paces.iter().find(|pace| pace.network == network)?;
        Some(pace.step_s)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn outcome(entrant: &str, losses: &[f64], bytes: f64, step_s: f64) -> EqualOutcome {
        let points = losses.iter().enumerate().map(|(at, &loss)| EqualPoint {
            inner_steps: 10.0 * at as f64,
            loss: loss.is_finite().then_some(loss),
        });
        EqualOutcome {
            entrant: entrant.to_owned(),
            preset: "diloco".to_owned(),
            data: "iid".to_owned(),
            peers: 4,
            seed: 1,
            parameters: 1000,
            batch: 8,
            inner_steps: 10 * (losses.len() as u64 - 1),
            rounds: losses.len() as u64 - 1,
            period: 10.0,
            bytes,
            points: points.collect(),
            paces: vec![Pace {
                network: "wan".to_owned(),
                step_s,
            }],
        }
    }

    #[test]
    fn the_curve_is_read_between_measurements_and_stays_at_its_end() {
        let run = outcome("a", &[5.0, 3.0, 2.0], 400.0, 0.5);
        assert_eq!(run.at(0.0), Some(5.0));
        assert_eq!(run.at(5.0), Some(4.0));
        assert_eq!(run.at(20.0), Some(2.0));
        assert_eq!(run.at(90.0), Some(2.0));
        assert_eq!(run.steps_of_bytes(100.0), 5.0);
        assert_eq!((run.step_s("wan"), run.step_s("lan")), (Some(0.5), None));
    }

    #[test]
    fn a_loss_that_is_not_finite_is_no_number() {
        let run = outcome("a", &[5.0, f64::NAN], 400.0, 0.5);
        assert_eq!((run.at(5.0), run.last()), (None, None));
    }
}
