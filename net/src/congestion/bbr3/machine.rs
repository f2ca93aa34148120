//! The phases of the controller and the window they allow.
//!
//! It turns rate samples and losses into a window. It uses neither quinn nor packets, so its tests
//! drive it with plain numbers. [`super`] explains where it differs from the draft.

mod window;

use std::time::{Duration, Instant};

use super::filters::{LossMeter, MaxBandwidth, MinRtt};
use super::sampler::{LostFlight, RateSample};

/// Startup ends if three rounds grow the bandwidth by less than this factor (section 5.3.1.2).
const FULL_BANDWIDTH_GROWTH: f64 = 1.25;
const FULL_BANDWIDTH_ROUNDS: u32 = 3;
/// How long the minimum round trip is probed (`ProbeRTTDuration`).
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// The bounds keep at least this fraction after a round with congestive loss (`Beta`).
const BETA: f64 = 0.7;
/// A probe that grew the bandwidth by less than this factor found no room.
const PROBE_GROWTH: f64 = 1.05;
/// Rounds after which a probe ends if it found neither room nor a queue.
const PROBE_ROUNDS: u64 = 4;
/// A round-trip time this much above the minimum indicates a queue: an eighth of the minimum, but
/// at least the jitter of hosts.
const QUEUE_JITTER: Duration = Duration::from_millis(4);
/// Shorter round-trip times count as this long. Below it, acknowledgements are timed by the hosts'
/// schedulers rather than by the path, and the minimum window would starve a fast LAN.
const SHORTEST_MODEL_RTT: Duration = Duration::from_millis(5);
/// Losses of fewer packets are not evidence.
const LOSS_EVIDENCE_PACKETS: u64 = 8;
/// Packets which may always be in flight (`MinPipeCwnd`).
const MIN_WINDOW_PACKETS: u64 = 4;

/// The phase of the controller (draft-ietf-ccwg-bbr, section 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Searches for the bandwidth by exponential growth.
    Startup,
    /// Empties the queue that Startup made.
    Drain,
    /// Sends below the bandwidth until the queue of the last probe is empty.
    Down,
    /// Sends at the bandwidth.
    Cruise,
    /// Sends at the bandwidth for one round without the short-term bounds, before a probe.
    Refill,
    /// Sends above the bandwidth to find out whether there is more.
    Up,
    /// Sends little, so that the queue empties and the minimum round-trip time can be measured.
    ProbeRtt,
}

/// The state machine: bandwidth, minimum round-trip time, bounds, and the resulting window.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    mtu: u64,
    initial_window: u64,
    jitter: u64,
    phase: Phase,
    phase_at: Instant,
    phase_round: u64,
    cycle_at: Instant,
    cycle_for: Duration,
    max_bandwidth: MaxBandwidth,
    min_rtt: MinRtt,
    loss: LossMeter,
    smoothed_rtt: Duration,
    round: u64,
    round_ends: u64,
    round_min_rtt: Duration,
    round_samples: u32,
    last_round_min_rtt: Duration,
    round_bandwidth: f64,
    round_delivered: u64,
    full_bandwidth: f64,
    full_bandwidth_rounds: u32,
    pipe_full: bool,
    probe_base: f64,
    probe_rtt: Duration,
    bandwidth_lo: f64,
    in_flight_lo: f64,
    in_flight_hi: f64,
    window: u64,
}

impl Machine {
    /// The state at the start of a connection. `seed` spreads the probes of several flows over
    /// time.
    pub(super) fn new(now: Instant, mtu: u64, initial_window: u64, seed: u64) -> Self {
        Self {
            mtu,
            initial_window,
            jitter: seed,
            phase: Phase::Startup,
            phase_at: now,
            phase_round: 0,
            cycle_at: now,
            cycle_for: Duration::from_secs(1),
            max_bandwidth: MaxBandwidth::default(),
            min_rtt: MinRtt::new(now),
            loss: LossMeter::default(),
            smoothed_rtt: Duration::ZERO,
            round: 0,
            round_ends: 0,
            round_min_rtt: Duration::MAX,
            round_samples: 0,
            last_round_min_rtt: Duration::MAX,
            round_bandwidth: 0.0,
            round_delivered: 0,
            full_bandwidth: 0.0,
            full_bandwidth_rounds: 0,
            pipe_full: false,
            probe_base: 0.0,
            probe_rtt: Duration::ZERO,
            bandwidth_lo: f64::INFINITY,
            in_flight_lo: f64::INFINITY,
            in_flight_hi: f64::INFINITY,
            window: initial_window,
        }
    }

    pub(super) fn window(&self) -> u64 {
        self.window
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// The smallest round-trip time of the last seconds.
    pub(super) fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.get()
    }

    /// The estimated bandwidth in bytes per second.
    pub(super) fn bandwidth(&self) -> f64 {
        self.max_bandwidth.get().min(self.bandwidth_lo)
    }

    /// The background loss rate of the path, 0 to 1.
    pub(super) fn background_loss(&self) -> f64 {
        self.loss.background()
    }

    /// The rate in bytes per second at which the window lets data leave.
    pub(super) fn pacing_rate(&self) -> f64 {
        self.window as f64 / self.smoothed_rtt.as_secs_f64().max(1e-6)
    }

    /// Sets the largest packet size in bytes.
    pub(super) fn set_mtu(&mut self, mtu: u64) {
        self.mtu = mtu;
        self.window = self.window.max(self.min_window());
    }

    /// Processes a batch of acknowledgements.
    pub(super) fn on_sample(
        &mut self,
        now: Instant,
        sample: &RateSample,
        delivered: u64,
        in_flight: u64,
        smoothed_rtt: Duration,
    ) {
        self.smoothed_rtt = smoothed_rtt;
        self.loss.on_acked(sample.newly_acked);
        let probe_due = self.offer_rtt(now, sample.rtt);
        self.round_samples += 1;
        if let Some(rate) = sample.rate {
            self.max_bandwidth.offer(rate, sample.app_limited);
            self.round_bandwidth = self.round_bandwidth.max(rate);
        }
        self.round_delivered = self.round_delivered.max(sample.delivered);
        if sample.prior_delivered >= self.round_ends {
            self.round_ends = delivered;
            self.round += 1;
            self.end_round(sample.app_limited);
        }
        self.advance(now, in_flight, delivered, probe_due);
        self.set_window(sample);
    }

    /// Adds a round-trip time and returns whether the minimum must be probed. Zero is ignored:
    /// quinn reads the clock before it reads its socket, so packets that another thread sent in
    /// between seem to return at once.
    fn offer_rtt(&mut self, now: Instant, rtt: Duration) -> bool {
        if rtt.is_zero() {
            return false;
        }
        self.round_min_rtt = self.round_min_rtt.min(rtt);
        self.min_rtt.offer(now, rtt)
    }

    /// Processes a batch of losses: the flight that they were in, and their bytes.
    pub(super) fn on_loss(&mut self, now: Instant, flight: LostFlight, bytes: u64, delivered: u64) {
        self.loss.on_lost(bytes);
        let share = flight.lost as f64 / flight.in_flight.max(1) as f64;
        let starting = self.phase == Phase::Startup;
        let enough = flight.lost >= LOSS_EVIDENCE_PACKETS * self.mtu;
        if !enough || share <= self.loss.tolerance(self.queue_stands(), starting) {
            return;
        }
        // Only losses above the known bandwidth show where the path's capacity ends.
        if starting {
            self.in_flight_hi = self.bdp().max(self.round_delivered as f64);
            self.fill_pipe(now);
        } else if self.phase == Phase::Up {
            // A multiplicative decrease, as other flows at a full queue make, but not below the
            // bandwidth-delay product.
            self.in_flight_hi = (BETA * flight.in_flight as f64).max(self.bdp());
            self.enter_down(now, delivered);
        }
        self.clamp_window();
    }

    /// Processes a mark of explicit congestion notification: nothing was lost, but the queue is too
    /// long.
    pub(super) fn on_mark(&mut self, now: Instant, delivered: u64) {
        match self.phase {
            Phase::Startup => self.fill_pipe(now),
            Phase::Up => self.enter_down(now, delivered),
            _ => {}
        }
    }

    /// Restarts carefully after everything sent for a long time was lost. The path model is kept.
    pub(super) fn on_persistent_congestion(&mut self) {
        self.window = self.min_window();
    }

    /// The round-trip time that the model uses.
    fn model_rtt(&self) -> Duration {
        self.min_rtt
            .get()
            .unwrap_or(self.smoothed_rtt)
            .max(SHORTEST_MODEL_RTT)
    }

    /// Bandwidth times minimum round-trip time, bytes.
    fn bdp(&self) -> f64 {
        self.bandwidth() * self.model_rtt().as_secs_f64()
    }

    fn queue_threshold(&self) -> Duration {
        let min = self.model_rtt();
        min + (min / 8).max(QUEUE_JITTER)
    }

    /// Every sample of this round saw a queue. While the round is young, the previous one
    /// is used.
    fn queue_stands(&self) -> bool {
        let seen = if self.round_samples >= 8 || self.last_round_min_rtt == Duration::MAX {
            self.round_min_rtt
        } else {
            self.last_round_min_rtt
        };
        seen != Duration::MAX && seen > self.queue_threshold()
    }

    fn min_window(&self) -> u64 {
        MIN_WINDOW_PACKETS * self.mtu
    }

    /// Ends a round: evaluates its losses, whether the pipe is full, and the bounds.
    fn end_round(&mut self, app_limited: bool) {
        self.last_round_min_rtt = self.round_min_rtt;
        let queued = self.last_round_min_rtt > self.queue_threshold();
        let pushing = matches!(self.phase, Phase::Up | Phase::Down | Phase::Drain);
        let rate = self.loss.close_round(!queued && !pushing);
        let congested = rate > self.loss.tolerance(queued, self.phase == Phase::Startup);
        if congested && matches!(self.phase, Phase::Cruise | Phase::Down | Phase::Drain) {
            // The delivered fraction limits what is worth sending. If a round loses nine tenths,
            // the path has a tenth of the bandwidth, and seven rounds with factor 0.7 would be too
            // slow.
            let keep = BETA.min(1.0 - rate);
            let bandwidth = self.bandwidth();
            self.bandwidth_lo = self.round_bandwidth.max(keep * bandwidth);
            let in_flight = self.in_flight_lo.min(self.window as f64);
            self.in_flight_lo = (self.round_delivered as f64).max(keep * in_flight);
        }
        if !self.pipe_full && !app_limited {
            self.check_full_bandwidth();
        }
        self.round_min_rtt = Duration::MAX;
        self.round_samples = 0;
        self.round_bandwidth = 0.0;
        self.round_delivered = 0;
    }

    fn check_full_bandwidth(&mut self) {
        let bandwidth = self.max_bandwidth.get();
        if bandwidth >= self.full_bandwidth * FULL_BANDWIDTH_GROWTH {
            self.full_bandwidth = bandwidth;
            self.full_bandwidth_rounds = 0;
        } else {
            self.full_bandwidth_rounds += 1;
            self.pipe_full = self.full_bandwidth_rounds >= FULL_BANDWIDTH_ROUNDS;
        }
    }

    fn advance(&mut self, now: Instant, in_flight: u64, delivered: u64, probe_due: bool) {
        let rounds = self.round - self.phase_round;
        let round_ended = self.round_samples == 0;
        match self.phase {
            Phase::Startup if self.pipe_full || self.startup_queued() => self.fill_pipe(now),
            Phase::Drain if in_flight as f64 <= self.drained() => self.enter_down(now, delivered),
            Phase::Down if in_flight as f64 <= self.drained() => self.enter(Phase::Cruise, now),
            Phase::Down | Phase::Cruise if self.cycle_over(now) => {
                self.bandwidth_lo = f64::INFINITY;
                self.in_flight_lo = f64::INFINITY;
                self.enter(Phase::Refill, now);
                self.round_ends = delivered;
            }
            Phase::Refill if rounds >= 1 => self.enter_up(now, delivered),
            Phase::Up if rounds > 0 && round_ended => {
                self.lift_bound(rounds);
                if self.probe_over(rounds) {
                    self.enter_down(now, delivered);
                }
            }
            Phase::ProbeRtt if rounds >= 1 && now - self.phase_at >= PROBE_RTT_TIME => {
                self.enter_down(now, delivered);
            }
            _ => {}
        }
        if probe_due && self.pipe_full && self.phase != Phase::ProbeRtt {
            self.enter(Phase::ProbeRtt, now);
        }
    }

    /// Startup made a queue, which means that the pipe is full although the bandwidth still
    /// grows.
    fn startup_queued(&self) -> bool {
        self.round > 1 && self.round_samples >= 8 && self.round_min_rtt > self.queue_threshold()
    }

    /// Raises the long-term bound while it limits a probe. The steps grow with each round.
    fn lift_bound(&mut self, rounds: u64) {
        if self.in_flight_hi.is_finite() && self.window as f64 >= 0.9 * self.in_flight_hi {
            let least = 8.0 * self.mtu as f64;
            self.in_flight_hi +=
                least.max(self.in_flight_hi / 64.0) * f64::from(1 << rounds.min(3));
        }
    }

    /// The end of a probe: a full round at the higher rate found a queue without more
    /// bandwidth, or several rounds found neither.
    fn probe_over(&mut self, rounds: u64) -> bool {
        if rounds < 2 {
            return false;
        }
        let bandwidth = self.max_bandwidth.get();
        let grew = bandwidth > self.probe_base * PROBE_GROWTH;
        self.probe_base = self.probe_base.max(bandwidth);
        let queued = self.last_round_min_rtt > self.queue_threshold();
        !grew && (queued || rounds >= PROBE_ROUNDS)
    }

    /// The bytes in flight at which the queue of a probe is empty.
    fn drained(&self) -> f64 {
        self.bdp().max(self.min_window() as f64) + self.slack() as f64
    }

    fn cycle_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.cycle_at) >= self.cycle_for
    }

    fn enter(&mut self, phase: Phase, now: Instant) {
        self.phase = phase;
        self.phase_at = now;
        self.phase_round = self.round;
    }

    fn fill_pipe(&mut self, now: Instant) {
        self.pipe_full = true;
        self.enter(Phase::Drain, now);
    }

    fn enter_down(&mut self, now: Instant, delivered: u64) {
        if self.phase == Phase::Up {
            // The probe has measured the bandwidth, so samples from before the previous cycle are
            // dropped.
            self.max_bandwidth.advance();
        }
        self.enter(Phase::Down, now);
        self.round_ends = delivered;
        self.cycle_at = now;
        self.cycle_for = self.draw_cycle();
    }

    fn enter_up(&mut self, now: Instant, delivered: u64) {
        self.enter(Phase::Up, now);
        self.round_ends = delivered;
        self.probe_base = self.max_bandwidth.get();
        self.probe_rtt = self.smoothed_rtt;
    }

    /// Draws the length of a cycle: 1 to 1.5 s, or eight to twelve round trips if those are longer.
    /// It is random, so that flows on the same path do not probe together.
    fn draw_cycle(&mut self) -> Duration {
        // SplitMix64 (Steele, Lea and Flood, 2014), because one draw per cycle needs no generator.
        self.jitter = self.jitter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.jitter;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        let share = (bits >> 11) as f64 / (1u64 << 53) as f64;
        let base = (self.model_rtt() * 8).max(Duration::from_secs(1));
        base.mul_f64(1.0 + share / 2.0)
    }
}

#[cfg(test)]
mod tests;
