//! The state machine on a fluid model of a path, in virtual time.

use super::*;

const MTU: u64 = 1200;
const RATE: f64 = 6.25e6;
const BASE: Duration = Duration::from_millis(100);
const BDP: f64 = 625_000.0;

/// A fluid model of a path: bytes in flight beyond its bandwidth-delay product wait in a queue.
struct Path {
    machine: Machine,
    now: Instant,
    delivered: u64,
    rate: f64,
    /// The queue that other flows keep, as time.
    others: Duration,
    greatest: u64,
}

impl Path {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            machine: Machine::new(now, MTU, 32 * MTU, 0),
            now,
            delivered: 0,
            rate: RATE,
            others: Duration::ZERO,
            greatest: 0,
        }
    }

    /// Simulates one round: a window is sent and acknowledged in sixteen batches.
    fn round(&mut self) {
        let window = self.machine.window();
        self.greatest = self.greatest.max(window);
        let rtt = BASE.max(Duration::from_secs_f64(window as f64 / self.rate)) + self.others;
        let prior = self.delivered;
        for batch in 1..=16 {
            self.now += rtt / 16;
            self.delivered += window / 16;
            let sample = RateSample {
                rate: Some(window as f64 / rtt.as_secs_f64()),
                delivered: window,
                prior_delivered: if batch == 1 { prior } else { 0 },
                newly_acked: window / 16,
                rtt,
                app_limited: false,
            };
            let (delivered, in_flight) = (self.delivered, self.machine.window().min(window));
            self.machine
                .on_sample(self.now, &sample, delivered, in_flight, rtt);
        }
    }

    fn rounds(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.round();
        }
    }

    /// Simulates rounds until the machine is in `phase`.
    fn until(&mut self, phase: Phase) {
        for _ in 0..1000 {
            if self.machine.phase() == phase {
                return;
            }
            self.round();
        }
        panic!("never in {phase:?}: {:?}", self.machine);
    }

    /// Loses the fraction `share` of a window.
    fn lose(&mut self, share: f64) {
        let in_flight = self.machine.window();
        let lost = (in_flight as f64 * share) as u64;
        let flight = LostFlight { in_flight, lost };
        self.machine.on_loss(self.now, flight, lost, self.delivered);
    }
}

#[test]
fn startup_finds_the_bandwidth_and_leaves_at_the_queue() {
    let mut path = Path::new();
    path.until(Phase::Cruise);
    let bandwidth = path.machine.bandwidth();
    assert!((bandwidth / RATE - 1.0).abs() < 0.05, "{bandwidth}");
    assert_eq!(path.machine.min_rtt(), Some(BASE));
    assert!((path.greatest as f64) < 2.1 * BDP, "{}", path.greatest);
}

#[test]
fn a_cycle_goes_through_its_phases_and_keeps_in_flight_bounded() {
    let mut path = Path::new();
    path.until(Phase::Cruise);
    path.greatest = 0;
    for phase in [
        Phase::Refill,
        Phase::Up,
        Phase::Down,
        Phase::Cruise,
        Phase::Up,
    ] {
        path.until(phase);
    }
    assert!((path.greatest as f64) < 1.5 * BDP, "{}", path.greatest);
    let bandwidth = path.machine.bandwidth();
    assert!((bandwidth / RATE - 1.0).abs() < 0.05, "{bandwidth}");
}

#[test]
fn more_bandwidth_is_found_and_less_is_believed_after_two_cycles() {
    let mut path = Path::new();
    path.until(Phase::Cruise);
    path.rate = 4.0 * RATE;
    path.rounds(120);
    assert!(path.machine.bandwidth() > 3.0 * RATE, "{:?}", path.machine);
    path.rate = RATE;
    path.rounds(120);
    assert!(path.machine.bandwidth() < 1.1 * RATE, "{:?}", path.machine);
}

#[test]
fn loss_without_a_queue_is_the_paths_own() {
    let mut path = Path::new();
    path.until(Phase::Cruise);
    for _ in 0..40 {
        path.lose(0.03);
        path.round();
    }
    assert!(path.machine.in_flight_hi.is_infinite());
    assert!(path.machine.bandwidth() > 0.9 * RATE, "{:?}", path.machine);
    let background = path.machine.background_loss();
    assert!((0.02..0.04).contains(&background), "{background}");
}

#[test]
fn loss_in_a_probe_ends_it_and_bounds_what_is_in_flight() {
    let mut path = Path::new();
    path.until(Phase::Up);
    path.round();
    path.lose(0.2);
    assert_eq!(path.machine.phase(), Phase::Down);
    assert!(path.machine.in_flight_hi.is_finite());
    assert!(
        (path.machine.window() as f64) < 1.1 * BDP,
        "{:?}",
        path.machine
    );
}

#[test]
fn a_round_that_lost_nine_tenths_is_followed_at_once() {
    let mut path = Path::new();
    path.until(Phase::Cruise);
    // A tenth of the window arrives after a full queue; the rest is lost.
    let arrived = (BDP / 10.0) as u64;
    for _ in 0..2 {
        path.machine.loss.on_lost(9 * arrived);
        path.now += BASE;
        path.delivered += arrived;
        let sample = RateSample {
            rate: Some(RATE / 10.0),
            delivered: arrived,
            prior_delivered: path.delivered,
            newly_acked: arrived,
            rtt: BASE * 2,
            app_limited: false,
        };
        path.machine
            .on_sample(path.now, &sample, path.delivered, arrived, BASE * 2);
    }
    let bandwidth = path.machine.bandwidth();
    assert!(bandwidth < 0.15 * RATE, "{bandwidth} {:?}", path.machine);
}

#[test]
fn a_few_lost_packets_prove_nothing() {
    let mut path = Path::new();
    let flight = LostFlight {
        in_flight: 10 * MTU,
        lost: 5 * MTU,
    };
    path.round();
    path.machine
        .on_loss(path.now, flight, 5 * MTU, path.delivered);
    assert_eq!(path.machine.phase(), Phase::Startup);
}

#[test]
fn a_mark_ends_what_pushes() {
    let mut path = Path::new();
    path.rounds(2);
    path.machine.on_mark(path.now, path.delivered);
    assert_eq!(path.machine.phase(), Phase::Drain);
    path.until(Phase::Up);
    path.machine.on_mark(path.now, path.delivered);
    assert_eq!(path.machine.phase(), Phase::Down);
}

#[test]
fn the_minimum_round_trip_is_probed_when_others_keep_a_queue() {
    let mut path = Path::new();
    path.until(Phase::Cruise);
    path.others = Duration::from_millis(60);
    path.until(Phase::ProbeRtt);
    assert!(
        (path.machine.window() as f64) < 0.6 * BDP,
        "{:?}",
        path.machine
    );
    path.until(Phase::Down);
}

#[test]
fn after_persistent_congestion_it_begins_small_and_returns() {
    let mut path = Path::new();
    path.until(Phase::Cruise);
    path.machine.on_persistent_congestion();
    assert_eq!(path.machine.window(), MIN_WINDOW_PACKETS * MTU);
    path.rounds(10);
    assert!(
        path.machine.window() as f64 > 0.9 * BDP,
        "{:?}",
        path.machine
    );
}

#[test]
fn a_larger_packet_raises_the_smallest_window() {
    let mut path = Path::new();
    path.machine.on_persistent_congestion();
    path.machine.set_mtu(9000);
    assert_eq!(path.machine.window(), MIN_WINDOW_PACKETS * 9000);
}

#[test]
fn a_round_trip_of_no_time_is_none() {
    let mut path = Path::new();
    path.until(Phase::Cruise);
    assert!(!path.machine.offer_rtt(path.now, Duration::ZERO));
    assert_eq!(path.machine.min_rtt(), Some(BASE));
    assert!(path.machine.round_min_rtt > Duration::ZERO);
}

#[test]
fn flows_of_one_process_probe_at_different_times() {
    let now = Instant::now();
    let mut drawn: Vec<Duration> = (0..16)
        .map(|seed| Machine::new(now, MTU, 32 * MTU, seed).draw_cycle())
        .collect();
    assert!(
        drawn
            .iter()
            .all(|cycle| (1.0..1.5).contains(&cycle.as_secs_f64()))
    );
    drawn.sort_unstable();
    drawn.dedup();
    assert_eq!(drawn.len(), 16);
}
