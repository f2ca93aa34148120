//! The machines that a question is about: a model, machines and the links between them.

use super::Link;
use core::time::Duration;
use serde::Serialize;

/// Why a question cannot be answered.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A number out of range.
    #[error("`{key}` is {value}: give {low} to {high}")]
    Value {
        /// Its name on the command line.
        key: &'static str,
        /// The number that was given.
        value: f64,
        /// The smallest that is allowed.
        low: f64,
        /// The largest that is allowed.
        high: f64,
    },
    /// A link that cannot be read.
    #[error("`link` {0}")]
    Link(String),
}

/// A model on equal machines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cluster {
    /// Number of parameters.
    pub parameters: u64,
    /// Duration of one inner step on one machine.
    pub step: Duration,
    /// Each machine's link.
    pub link: Link,
    /// Number of machines.
    pub peers: usize,
    /// The utilization from which a preset is advised.
    pub target: f64,
}

impl Cluster {
    /// Checks the numbers of a question.
    ///
    /// # Errors
    /// Names the number that is out of range.
    pub fn new(
        parameters: f64,
        step_ms: f64,
        link: &str,
        peers: usize,
        target: f64,
    ) -> Result<Self, ClusterError> {
        let within = |key, value: f64, (low, high): (f64, f64)| {
            if value.is_finite() && (low..=high).contains(&value) {
                Ok(value)
            } else {
                Err(ClusterError::Value {
                    key,
                    value,
                    low,
                    high,
                })
            }
        };
        // A state with one moment of more parameters is too large to transfer.
        let parameters = within("params", parameters, (1.0, 4e9))?.round() as u64;
        let step = within("step-ms", step_ms, (1e-3, 1e9))?;
        within("peers", peers as f64, (1.0, 1e6))?;
        Ok(Self {
            parameters,
            step: Duration::from_secs_f64(step * 1e-3),
            link: link.parse().map_err(ClusterError::Link)?,
            peers,
            target: within("target", target, (0.01, 0.99))?,
        })
    }

    /// This number of the same machines.
    #[must_use]
    pub fn with_peers(&self, peers: usize) -> Self {
        Self { peers, ..*self }
    }

    /// Seconds to transfer all parameters once, as f32, over the slower direction of the link.
    pub fn exchange_seconds_f32(&self) -> f64 {
        4.0 * self.parameters as f64 / self.link.up.min(self.link.down)
    }

    /// Model intensity (Shi et al. 2021): the time of one inner step divided by the time to
    /// exchange all parameters once. Above 1 every method works. The lower it is, the rarer or
    /// smaller exchanges must be.
    pub fn intensity(&self) -> f64 {
        self.step.as_secs_f64() / self.exchange_seconds_f32()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_out_of_range_is_named() {
        let message = |params, step, link, peers, target| {
            Cluster::new(params, step, link, peers, target)
                .unwrap_err()
                .to_string()
        };
        let link = "100mbit/40ms";
        assert!(message(0.0, 1.0, link, 2, 0.8).starts_with("`params` is 0"));
        assert!(message(f64::NAN, 1.0, link, 2, 0.8).starts_with("`params` is NaN"));
        assert!(message(1e6, -1.0, link, 2, 0.8).starts_with("`step-ms` is -1"));
        assert!(message(1e6, 1.0, "fast", 2, 0.8).starts_with("`link` `fast`"));
        assert!(message(1e6, 1.0, link, 0, 0.8).starts_with("`peers` is 0"));
        assert!(message(1e6, 1.0, link, 2, 1.0).starts_with("`target` is 1"));
    }

    #[test]
    fn intensity_is_computing_over_exchanging() {
        // 1.3 G parameters at 12.5 MB/s take 416 s; a step of 0.4 s is a 1040th of that.
        let cluster = Cluster::new(1.3e9, 400.0, "100mbit/40ms", 16, 0.8).unwrap();
        assert!((cluster.intensity() * 1040.0 - 1.0).abs() < 1e-9);
    }
}
