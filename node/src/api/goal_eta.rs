//! When a run will probably reach its goal, from the curve of its evaluations.
//!
//! Losses and shares of errors mostly fall by a power of the rounds: a straight line where both axes are
//! logarithmic. The line through the last evaluations is followed to the goal. Where they are not on a line
//! that falls, or the goal is too far away, the time is unknown.

use super::insight::Point;
use crate::goal::Target;

/// Evaluations that the line goes through.
const EVALUATIONS: usize = 32;

/// Fewer say nothing about the future.
const EVALUATIONS_MIN: usize = 6;

/// The share of the scatter that the line must explain.
const EXPLAINED_MIN: f64 = 0.7;

/// A goal is not predicted if it is this many times as many rounds away as there were.
const AHEAD_MAX: f64 = 10.0;

/// Rounds from the last one until the goal is reached; `None` if that is unknown.
pub(super) fn rounds_left(points: &[&Point], goal: Target) -> Option<f64> {
    let of_accuracy = goal.accuracy.map(|share| {
        let errors = |point: &Point| point.accuracy.map(|found| 1.0 - found);
        crossing(points, errors, 1.0 - share)
    });
    let of_loss = goal
        .loss
        .map(|loss| crossing(points, |point| point.eval_loss, loss));
    let parts = [of_accuracy, of_loss];
    // All parts of a goal must be reached.
    let latest = parts
        .into_iter()
        .flatten()
        .try_fold(0.0, |latest: f64, part| part.map(|round| latest.max(round)))?;
    let last = points.last()?.round as f64;
    goal.is_set().then(|| (latest - last).max(0.0))
}

/// The round at which a curve that falls reaches `goal`.
fn crossing(points: &[&Point], value: impl Fn(&Point) -> Option<f64>, goal: f64) -> Option<f64> {
    let found = points.iter().filter_map(|point| {
        let value = value(point).filter(|value| *value > 0.0 && value.is_finite())?;
        Some(((point.round as f64 + 1.0).ln(), value.ln()))
    });
    let all: Vec<(f64, f64)> = found.collect();
    let last = &all[all.len().saturating_sub(EVALUATIONS)..];
    if last.len() < EVALUATIONS_MIN || goal <= 0.0 {
        return None;
    }
    let (slope, start) = line(last)?;
    let at = ((goal.ln() - start) / slope).exp() - 1.0;
    let (newest, _) = last.last()?;
    let most = newest.exp() * AHEAD_MAX;
    (at.is_finite() && at <= most).then_some(at)
}

/// Slope and start of the line through points, if it falls and explains them.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (middle_x, middle_y) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        let parts = points.iter().map(|(x, y)| of(x - middle_x, y - middle_y));
        parts.sum()
    };
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    if xx <= 0.0 || yy <= 0.0 {
        return None;
    }
    let slope = xy / xx;
    let explained = xy * xy / (xx * yy);
    (slope < 0.0 && explained >= EXPLAINED_MIN).then_some((slope, middle_y - slope * middle_x))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(of: impl Fn(f64) -> (f64, Option<f64>)) -> Vec<Point> {
        let point = |round: u64| {
            let (loss, accuracy) = of(round as f64 + 1.0);
            Point {
                round,
                eval_loss: Some(loss),
                accuracy,
                ..Point::default()
            }
        };
        (0..40).map(point).collect()
    }

    fn left(points: &[Point], goal: Target) -> Option<f64> {
        rounds_left(&points.iter().collect::<Vec<_>>(), goal)
    }

    fn accuracy(share: f64) -> Target {
        Target {
            accuracy: Some(share),
            loss: None,
        }
    }

    #[test]
    fn a_curve_that_follows_a_power_is_followed_to_its_goal() {
        // Errors of 0.8 / sqrt(rounds): 0.1 of them are left after 64 rounds, so after round 63.
        let curve = points(|rounds| (1.0, Some(1.0 - 0.8 / rounds.sqrt())));
        let rounds = left(&curve, accuracy(0.9)).unwrap();
        assert!((rounds - (63.0 - 39.0)).abs() < 0.01, "{rounds}");
        assert_eq!(left(&curve, accuracy(0.5)), Some(0.0), "reached");
        let loss = points(|rounds| (2.0 / rounds, None));
        let goal = Target {
            accuracy: None,
            loss: Some(0.025),
        };
        let rounds = left(&loss, goal).unwrap();
        assert!((rounds - (79.0 - 39.0)).abs() < 0.01, "{rounds}");
    }

    #[test]
    fn what_the_curve_does_not_tell_is_unknown() {
        let falling = points(|rounds| (1.0, Some(1.0 - 0.8 / rounds.sqrt())));
        assert_eq!(left(&falling, Target::default()), None, "no goal");
        assert_eq!(left(&falling, accuracy(1.0)), None, "never");
        assert_eq!(left(&falling, accuracy(0.999)), None, "too far");
        assert_eq!(left(&falling[..5], accuracy(0.9)), None, "too few");
        assert_eq!(left(&[], accuracy(0.9)), None);
        let flat = points(|_| (1.0, Some(0.5)));
        assert_eq!(left(&flat, accuracy(0.9)), None);
        let worse = points(|rounds| (1.0, Some(0.9 - 0.01 * rounds)));
        assert_eq!(left(&worse, accuracy(0.95)), None);
        let scattered = points(|rounds| (1.0, Some(0.5 + 0.3 * (rounds * 2.4).sin())));
        assert_eq!(left(&scattered, accuracy(0.95)), None);
        // One part is known and the other is not.
        let both = Target {
            accuracy: Some(0.9),
            loss: Some(0.5),
        };
        assert_eq!(left(&falling, both), None);
    }
}
