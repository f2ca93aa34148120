//! The windowed filters of the path model: maximum bandwidth, minimum round-trip time, background
//! loss.
//!
//! They keep measurements for a limited time; the controller decides what follows from them.

use std::time::{Duration, Instant};

/// How long a minimum round-trip time is valid (draft-ietf-ccwg-bbr, section 2.8:
/// `MinRTTFilterLen`).
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// Time without a sample near the minimum after which the minimum is probed (`ProbeRTTInterval`).
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// The highest loss rate that may count as background loss. Anything above it is congestion.
const MAX_BACKGROUND: f64 = 0.10;
/// Weight of a round in the average of the background loss, after the first rounds.
const BACKGROUND_WEIGHT: f64 = 1.0 / 16.0;

/// The highest delivery rate of the current probing cycle and of the previous one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MaxBandwidth {
    current: f64,
    previous: f64,
}

impl MaxBandwidth {
    /// Adds a sample in bytes per second. An application-limited sample can only raise the maximum.
    pub(super) fn offer(&mut self, rate: f64, app_limited: bool) {
        if !app_limited || rate >= self.get() {
            self.current = self.current.max(rate);
        }
    }

    /// Begins a new cycle, unless the current one has no sample.
    pub(super) fn advance(&mut self) {
        if self.current > 0.0 {
            self.previous = std::mem::take(&mut self.current);
        }
    }

    /// The maximum in bytes per second; zero before the first sample.
    pub(super) fn get(&self) -> f64 {
        self.current.max(self.previous)
    }
}

/// The smallest round-trip time of the last seconds, and when to probe it again.
#[derive(Debug, Clone, Copy)]
pub(super) struct MinRtt {
    value: Option<Duration>,
    value_at: Instant,
    probed: Duration,
    probed_at: Instant,
}

impl MinRtt {
    /// A filter without samples.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            value: None,
            value_at: now,
            probed: Duration::MAX,
            probed_at: now,
        }
    }

    /// The minimum; `None` before the first sample.
    pub(super) fn get(&self) -> Option<Duration> {
        self.value
    }

    /// Adds a sample. Returns `true` if the minimum must be probed, because no sample came near it
    /// for [`PROBE_INTERVAL`].
    pub(super) fn offer(&mut self, now: Instant, rtt: Duration) -> bool {
        let due = now.saturating_duration_since(self.probed_at) > PROBE_INTERVAL;
        if rtt <= self.probed || due {
            self.probed = rtt;
            self.probed_at = now;
        } else if rtt - self.probed <= self.probed / 32 {
            // The sample equals the minimum, so the queue was empty and no probe is needed.
            self.probed_at = now;
        }
        let old = now.saturating_duration_since(self.value_at) > MIN_RTT_WINDOW;
        if old || self.value.is_none_or(|value| self.probed <= value) {
            self.value = Some(self.probed);
            self.value_at = self.probed_at;
        } else if self
            .value
            .is_some_and(|value| self.probed - value <= value / 32)
        {
            self.value_at = self.probed_at;
        }
        due
    }
}

/// Loss rate of each round, divided into the path's background loss and congestion.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LossMeter {
    acked: u64,
    lost: u64,
    background: f64,
    quiet_rounds: u32,
}

impl LossMeter {
    pub(super) fn on_acked(&mut self, bytes: u64) {
        self.acked += bytes;
    }

    /// Counts lost bytes of this round.
    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// Ends a round and returns its loss rate. A `quiet` round, without a probe and without a
    /// queue, measures the background loss.
    pub(super) fn close_round(&mut self, quiet: bool) -> f64 {
        let total = self.acked + self.lost;
        let rate = if total == 0 {
            0.0
        } else {
            self.lost as f64 / total as f64
        };
        if quiet && total > 0 {
            self.quiet_rounds = self.quiet_rounds.saturating_add(1);
            let weight = (1.0 / f64::from(self.quiet_rounds)).max(BACKGROUND_WEIGHT);
            let next =
                self.background + weight * (rate.min(2.0 * MAX_BACKGROUND) - self.background);
            self.background = next.clamp(0.0, MAX_BACKGROUND);
        }
        self.acked = 0;
        self.lost = 0;
        rate
    }

    pub(super) fn background(&self) -> f64 {
        self.background
    }

    /// The loss rate above which loss counts as congestion. With a standing queue (`queued`) it is
    /// the draft's 2 % (section 2.7, `LossThresh`) above the background loss. Without a queue it is
    /// higher, since only a clear excess is evidence. It is highest before the background loss is
    /// known (`starting`).
    pub(super) fn tolerance(&self, queued: bool, starting: bool) -> f64 {
        match (queued, starting) {
            (true, _) => 0.02 + 1.5 * self.background,
            (false, false) => 0.05 + 2.0 * self.background,
            (false, true) => 0.10 + 2.0 * self.background,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_is_forgotten_after_two_cycles() {
        let mut filter = MaxBandwidth::default();
        filter.offer(10.0, false);
        filter.advance();
        filter.offer(4.0, false);
        assert_eq!(filter.get(), 10.0);
        filter.advance();
        assert_eq!(filter.get(), 4.0);
        filter.advance();
        filter.advance();
        assert_eq!(filter.get(), 4.0, "an empty cycle forgets nothing");
    }

    #[test]
    fn a_limited_sample_only_raises_the_bandwidth() {
        let mut filter = MaxBandwidth::default();
        filter.offer(10.0, false);
        filter.advance();
        filter.offer(3.0, true);
        filter.advance();
        assert_eq!(filter.get(), 10.0, "a lazy sender is no slow path");
        filter.offer(12.0, true);
        assert_eq!(filter.get(), 12.0);
    }

    #[test]
    fn the_minimum_round_trip_is_probed_and_expires() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let mut filter = MinRtt::new(start);
        assert!(!filter.offer(start, ms(100)));
        assert!(!filter.offer(start + ms(4_000), ms(150)));
        assert_eq!(filter.get(), Some(ms(100)));
        assert!(
            filter.offer(start + ms(5_100), ms(150)),
            "nothing near it for 5 s"
        );
        assert_eq!(filter.get(), Some(ms(100)), "it is believed for 10 s");
        assert!(filter.offer(start + ms(10_300), ms(140)));
        assert_eq!(filter.get(), Some(ms(140)), "and no longer");
        filter.offer(start + ms(10_400), ms(90));
        assert_eq!(filter.get(), Some(ms(90)));
    }

    #[test]
    fn a_sample_near_the_minimum_saves_the_probe() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let mut filter = MinRtt::new(start);
        for second in 0..60 {
            assert!(!filter.offer(start + ms(second * 1000), ms(100 + second % 3)));
        }
        assert_eq!(filter.get(), Some(ms(100)));
    }

    #[test]
    fn background_loss_is_learnt_in_quiet_rounds_only() {
        let mut meter = LossMeter::default();
        for _ in 0..50 {
            meter.on_acked(97_000);
            meter.on_lost(3_000);
            assert!((meter.close_round(true) - 0.03).abs() < 1e-9);
        }
        assert!((meter.background() - 0.03).abs() < 1e-6);
        assert!(0.03 < meter.tolerance(true, false));
        meter.on_acked(50_000);
        meter.on_lost(50_000);
        assert!((meter.close_round(false) - 0.5).abs() < 1e-9);
        assert!((meter.background() - 0.03).abs() < 1e-6);
        for _ in 0..200 {
            meter.on_lost(1_000);
            meter.close_round(true);
        }
        assert_eq!(meter.background(), MAX_BACKGROUND);
        assert!(
            meter.tolerance(false, true) < 0.5,
            "half lost is always congestion"
        );
    }
}
