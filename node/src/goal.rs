//! When a run has reached its goal: an accuracy, a loss, or both.

use crate::api::EvaluationStatus;

/// Goal of a run for its evaluations; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Target {
    /// At least this accuracy.
    pub accuracy: Option<f64>,
    /// At most this loss, in nats.
    pub loss: Option<f64>,
}

impl Target {
    /// There is something to reach.
    pub const fn is_set(&self) -> bool {
        self.accuracy.is_some() || self.loss.is_some()
    }

    /// An evaluation reaches all of it. Without a goal nothing does.
    pub fn reached(&self, accuracy: Option<f64>, loss: Option<f64>) -> bool {
        let right = |target| accuracy.is_some_and(|found| found >= target);
        let low = |target| loss.is_some_and(|found| found <= target);
        self.is_set() && self.accuracy.is_none_or(right) && self.loss.is_none_or(low)
    }

    /// As [`Target::reached`], of an evaluation.
    pub fn reached_by(&self, found: &EvaluationStatus) -> bool {
        self.reached(found.accuracy, Some(found.loss))
    }

    /// Why an end at these values is none, as the beginning of a line, with the flag to change.
    pub fn missed(&self, accuracy: Option<f64>, loss: Option<f64>) -> Option<Missed> {
        let right = accuracy.unwrap_or(0.0);
        if let Some(target) = self.accuracy.filter(|target| right < *target) {
            return Some(Missed {
                flag: "--until-accuracy",
                found: right,
                by: self.accuracy.unwrap_or_default() - right,
                words: format!("below {target}"),
                remedy: "a lower target",
            });
        }
        let loss = loss.unwrap_or(f64::INFINITY);
        let target = self.loss.filter(|target| loss > *target)?;
        Some(Missed {
            flag: "--until-loss",
            found: loss,
            by: loss - target,
            words: format!("above {target}"),
            remedy: "a higher target",
        })
    }
}

/// A goal that a run has not reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Missed {
    /// The flag that asked for it.
    pub flag: &'static str,
    /// The last value.
    pub found: f64,
    /// Distance to the goal.
    pub by: f64,
    /// Comparison with the goal.
    pub words: String,
    /// Another goal to ask for.
    pub remedy: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_target_must_be_reached() {
        let none = Target::default();
        assert!(!none.is_set() && !none.reached(Some(1.0), Some(0.0)));
        let both = Target {
            accuracy: Some(0.9),
            loss: Some(0.5),
        };
        assert!(both.reached(Some(0.9), Some(0.5)));
        assert!(!both.reached(Some(0.8), Some(0.5)) && !both.reached(None, Some(0.1)));
        assert!(!both.reached(Some(0.9), Some(0.6)) && !both.reached(Some(0.9), None));
        let loss = Target {
            accuracy: None,
            loss: Some(2.0),
        };
        assert!(loss.reached(None, Some(1.9)) && !loss.reached(None, Some(f64::NAN)));
    }

    #[test]
    fn what_was_missed_names_its_flag() {
        let both = Target {
            accuracy: Some(0.9),
            loss: Some(0.5),
        };
        assert_eq!(both.missed(Some(0.9), Some(0.5)), None);
        assert_eq!(
            both.missed(None, Some(0.1)).unwrap().flag,
            "--until-accuracy"
        );
        let missed = both.missed(Some(0.95), Some(0.75)).unwrap();
        assert_eq!((missed.flag, missed.found), ("--until-loss", 0.75));
        assert_eq!(missed.words, "above 0.5");
    }
}
