//! The result of one run of a comparison.

use super::spec::{Cell, Target};
use crate::report::{Report, Sample};
use serde::Serialize;

/// One measurement during a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Completed rounds.
    pub round: u64,
    /// Virtual seconds since the start.
    pub at_s: f64,
    /// Bytes that a peer had sent, on average.
    pub bytes: f64,
    /// Mean over the peers of the loss on held-out data, in nats.
    pub loss: Option<f64>,
    /// Mean accuracy, where the task has one.
    pub accuracy: Option<f64>,
    /// Mean ||theta_i - mean theta||.
    pub consensus_distance: f64,
}

/// What the run needed to reach the target, interpolated between two measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Reached {
    /// Rounds.
    pub round: f64,
    /// Virtual seconds.
    pub at_s: f64,
    /// Bytes that a peer had sent, on average.
    pub bytes: f64,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Name of the task.
    pub task: String,
    /// Name of the data distribution.
    pub data: String,
    /// Number of peers.
    pub peers: usize,
    /// Name of the network.
    pub network: String,
    /// Name of the preset.
    pub preset: String,
    /// Seed of the run.
    pub seed: u64,
    /// The curve.
    pub points: Vec<Point>,
    /// What the run needed to reach the target; `None` if it did not reach it.
    pub reached: Option<Reached>,
    /// Virtual seconds of the whole run.
    pub virtual_s: f64,
    /// Running hash over all inputs and outputs.
    pub trace: String,
    /// Why the run failed, if it did.
    pub error: Option<String>,
}

impl Outcome {
    pub(super) fn new(cell: &Cell<'_>, report: &Report) -> Self {
        let peers = report.peers as f64;
        let points: Vec<_> = report.samples.iter().map(|s| point(s, peers)).collect();
        Self {
            reached: reached(&points, cell.task.target),
            points,
            virtual_s: report.virtual_s,
            trace: report.trace.clone(),
            error: None,
            ..Self::failed(cell, String::new())
        }
    }

    pub(super) fn failed(cell: &Cell<'_>, reason: String) -> Self {
        Self {
            task: cell.task.name.clone(),
            data: cell.data.name.clone(),
            peers: cell.peers,
            network: cell.network.name.clone(),
            preset: cell.preset.to_owned(),
            seed: cell.seed,
            points: Vec::new(),
            reached: None,
            virtual_s: 0.0,
            trace: String::new(),
            error: Some(reason),
        }
    }

    /// The last value of the target's quantity.
    pub fn last(&self, target: Target) -> Option<f64> {
        self.points.iter().rev().find_map(|p| measure(p, target))
    }
}

pub(super) fn measure(point: &Point, target: Target) -> Option<f64> {
    let value = match target.accuracy {
        Some(_) => point.accuracy,
        None => point.loss,
    };
    value.filter(|value| value.is_finite())
}

fn point(sample: &Sample, peers: f64) -> Point {
    Point {
        round: sample.round,
        at_s: sample.at_s,
        bytes: sample.bytes as f64 / peers,
        loss: sample.loss,
        accuracy: sample.accuracy,
        consensus_distance: sample.consensus_distance,
    }
}

/// Where the curve first passes the target, by linear interpolation between the measurements before and after it.
fn reached(points: &[Point], target: Target) -> Option<Reached> {
    let (goal, sign) = match (target.accuracy, target.loss) {
        (Some(goal), _) => (goal, 1.0),
        (None, goal) => (goal?, -1.0),
    };
    let mut before: Option<(&Point, f64)> = None;
    for point in points {
        let Some(value) = measure(point, target) else {
            continue;
        };
        if (value - goal) * sign >= 0.0 {
            let (from, share) = match before {
                Some((from, old)) if old != value => (from, (goal - old) / (value - old)),
                _ => (point, 1.0),
            };
            let between = |a: f64, b: f64| a + (b - a) * share;
            return Some(Reached {
                round: between(from.round as f64, point.round as f64),
                at_s: between(from.at_s, point.at_s),
                bytes: between(from.bytes, point.bytes),
            });
        }
        before = Some((point, value));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(round: u64, loss: f64) -> Point {
        Point {
            round,
            at_s: round as f64 * 2.0,
            bytes: round as f64 * 100.0,
            loss: Some(loss),
            accuracy: Some(1.0 - loss),
            consensus_distance: 0.0,
        }
    }

    #[test]
    fn the_target_is_met_between_two_looks() {
        let points = [at(0, 1.0), at(10, 0.6), at(20, 0.2)];
        let loss = Target {
            loss: Some(0.4),
            accuracy: None,
        };
        let found = reached(&points, loss).unwrap();
        assert_eq!((found.round, found.at_s, found.bytes), (15.0, 30.0, 1500.0));
        let accuracy = Target {
            loss: None,
            accuracy: Some(0.6),
        };
        let same = reached(&points, accuracy).unwrap();
        assert!((same.round - 15.0).abs() < 1e-9);
        let never = Target {
            loss: Some(0.1),
            accuracy: None,
        };
        assert_eq!(reached(&points, never), None);
    }

    #[test]
    fn what_is_not_finite_is_no_look() {
        let points = [at(0, 1.0), at(10, f64::NAN), at(20, 0.5)];
        let target = Target {
            loss: Some(0.5),
            accuracy: None,
        };
        assert_eq!(reached(&points, target).unwrap().round, 20.0);
    }
}
