//! The window of each phase, from the model and its bounds.

use std::time::Duration;

use super::{Machine, Phase};
use crate::congestion::bbr3::sampler::RateSample;

/// The window grows at most by this factor per round while the pipe is not full (section 5.6.1).
const STARTUP_GAIN: f64 = 2.0;
/// Send rate divided by bandwidth in each part of a cycle: probing, draining, cruising (section
/// 5.6.1).
const UP_GAIN: f64 = 1.35;
const DOWN_GAIN: f64 = 0.85;
const CRUISE_GAIN: f64 = 0.99;
/// Upper bound of the bytes in flight, in bandwidth-delay products (`cwnd_gain`).
const IN_FLIGHT_CAP: f64 = 2.0;
/// Bytes in flight while the minimum round-trip time is probed, in bandwidth-delay products.
const PROBE_RTT_GAIN: f64 = 0.5;
/// Fraction of the long-term bound that cruising leaves to other flows (`Headroom`).
const HEADROOM: f64 = 0.15;

impl Machine {
    /// The window that the phase requests, before the bounds.
    fn in_flight_target(&self) -> f64 {
        let bandwidth = self.bandwidth();
        let rtt = self.smoothed_rtt.max(self.model_rtt());
        let at_rate = |gain: f64, rtt: Duration| gain * bandwidth * rtt.as_secs_f64();
        match self.phase {
            Phase::Startup => STARTUP_GAIN * self.bdp(),
            Phase::Drain => self.bdp(),
            Phase::Down => at_rate(DOWN_GAIN, rtt),
            Phase::Cruise | Phase::Refill => at_rate(CRUISE_GAIN, rtt),
            Phase::Up => at_rate(UP_GAIN, self.probe_rtt.max(self.model_rtt())),
            Phase::ProbeRtt => PROBE_RTT_GAIN * self.bdp(),
        }
    }

    /// The window that the phase requests, within the bounds.
    fn bounded_target(&self) -> u64 {
        let mut target = self
            .in_flight_target()
            .min(IN_FLIGHT_CAP * self.bdp())
            .min(self.in_flight_lo);
        target = match self.phase {
            Phase::Cruise | Phase::Down | Phase::Drain | Phase::ProbeRtt => {
                target.min(self.in_flight_hi_with_headroom())
            }
            _ => target.min(self.in_flight_hi),
        };
        target as u64 + self.slack()
    }

    /// Additional bytes in flight: acknowledgements come for two packets at once, and one more
    /// packet is on its way out. Without them the path would be idle in between.
    pub(super) fn slack(&self) -> u64 {
        3 * self.mtu
    }

    pub(super) fn set_window(&mut self, sample: &RateSample) {
        if self.max_bandwidth.get() == 0.0 {
            return;
        }
        let target = self.bounded_target();
        let grown = self.window + sample.newly_acked;
        self.window = if self.pipe_full {
            grown.min(target)
        } else if sample.app_limited {
            self.window
        } else {
            grown.min(target.max(self.initial_window))
        }
        .max(self.min_window());
    }

    pub(super) fn clamp_window(&mut self) {
        if self.pipe_full && self.max_bandwidth.get() > 0.0 {
            self.window = self
                .window
                .min(self.bounded_target())
                .max(self.min_window());
        }
    }

    /// The long-term bound minus the headroom, but at least the bandwidth-delay product.
    fn in_flight_hi_with_headroom(&self) -> f64 {
        ((1.0 - HEADROOM) * self.in_flight_hi).max(self.bdp())
    }
}
