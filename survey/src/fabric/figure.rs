//! One prediction of a model of a network, and what its paper measured.

use serde::Serialize;
use std::fmt;

/// What a paper states.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Published {
    /// One measurement.
    Measured(f64),
    /// A measurement that the model was calibrated on.
    CalibratedOn(f64),
    /// The best of several measurements ("up to"): the model of one case must not pass it by much.
    UpTo(f64),
    /// The smallest and the largest of several measurements.
    Between(f64, f64),
}

impl Published {
    /// How far a prediction is from it: 0 inside a range and below the best.
    pub fn relative_error(self, predicted: f64) -> f64 {
        let (low, high) = match self {
            Self::Measured(value) | Self::CalibratedOn(value) => (value, value),
            Self::UpTo(high) => (0.0, high),
            Self::Between(low, high) => (low, high),
        };
        if predicted < low {
            predicted / low - 1.0
        } else if predicted > high {
            predicted / high - 1.0
        } else {
            0.0
        }
    }
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The method that exists in the simulator only.
    pub method: &'static str,
    /// The predicted quantity.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// The prediction.
    pub predicted: f64,
    /// What the paper states, if it states it.
    pub published: Option<Published>,
    /// The paper.
    pub source: &'static str,
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let published = match self.published {
            None => "-".to_owned(),
            Some(Published::Measured(value)) => format!("{value:.2}"),
            Some(Published::CalibratedOn(value)) => format!("{value:.2} calibrated on"),
            Some(Published::UpTo(value)) => format!("up to {value:.2}"),
            Some(Published::Between(low, high)) => format!("{low:.2} to {high:.2}"),
        };
        write!(
            f,
            "{:<23} {:<56} {:>9.2} {:<9} {published}",
            self.method, self.what, self.predicted, self.unit
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_from_the_nearest_end() {
        assert_eq!(Published::Measured(2.0).relative_error(3.0), 0.5);
        assert_eq!(Published::UpTo(2.0).relative_error(1.0), 0.0);
        assert_eq!(Published::UpTo(2.0).relative_error(3.0), 0.5);
        assert_eq!(Published::Between(2.0, 4.0).relative_error(3.0), 0.0);
        assert_eq!(Published::Between(2.0, 4.0).relative_error(1.0), -0.5);
    }
}
