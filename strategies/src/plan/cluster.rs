//! What is asked about: a model, machines and what lies between them.

use super::Link;
use core::time::Duration;
use serde::Serialize;

/// Why there is nothing to plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A number that cannot be.
    #[error("`{key}` is {value}: give {low} to {high}")]
    Value {
        /// Its name on the command line.
        key: &'static str,
        /// What was given.
        value: f64,
        /// The least.
        low: f64,
        /// The most.
        high: f64,
    },
    /// A link that cannot be read.
    #[error("`link` {0}")]
    Link(String),
}

/// A model on machines that are all alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cluster {
    /// Parameters.
    pub parameters: u64,
    /// One inner step on one machine.
    pub step: Duration,
    /// Each machine's link.
    pub link: Link,
    /// Machines.
    pub peers: usize,
    /// The utilization from which a preset is advised.
    pub target: f64,
}

impl Cluster {
    /// Checks what was asked.
    ///
    /// # Errors
    /// Names the number that cannot be.
    pub fn new(
        parameters: f64,
        step_ms: f64,
        link: &str,
        peers: usize,
        target: f64,
    ) -> Result<Self, ClusterError> {
        let within = |key, value: f64, (low, high): (f64, f64)| match value.is_finite()
            && (low..=high).contains(&value)
        {
            true => Ok(value),
            false => Err(ClusterError::Value {
                key,
                value,
                low,
                high,
            }),
        };
        // More do not fit a state transfer with one moment.
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

    /// The same machines, but so many.
    #[must_use]
    pub fn with_peers(&self, peers: usize) -> Self {
        Self { peers, ..*self }
    }

    /// Seconds that the model's parameters take, as f32, out and in over the slower direction.
    pub fn exchange_seconds_f32(&self) -> f64 {
        4.0 * self.parameters as f64 / self.link.up.min(self.link.down)
    }

    /// Model intensity (Shi et al. 2021): seconds of computing for a second of exchanging all
    /// parameters once. Above 1 everything works; the smaller, the rarer or smaller exchanges
    /// must be.
    pub fn intensity(&self) -> f64 {
        self.step.as_secs_f64() / self.exchange_seconds_f32()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_named() {
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
