//! Decides between QUIC and TLS over TCP for one peer, from what pushes and the system measure.
//!
//! Bulk begins on QUIC. When enough bytes were pushed over a short path, as many are pushed over
//! TLS, and the faster way is kept. On Ethernet's packets TLS needs less than half of the CPU time
//! of QUIC, so it is also taken if it is as fast. Both are measured again from time to time, and the
//! way in use is left only for one that is clearly faster. TCP takes loss for congestion, so TLS is
//! left as soon as the system sends more than a few segments again.

use crate::bulk::Way;
use crate::net::bucket::doubled;
use murmurate_net::tcp::BulkChoice;
use std::time::Duration;
use tokio::time::Instant;

const PROBE_BYTES: u64 = 64 << 20;

/// A path with a longer round trip stays on QUIC.
const RTT_MAX: Duration = Duration::from_millis(5);

/// Share of segments that TCP may send again.
const RESENT_MAX: f64 = 0.005;

/// Segments that say something about loss.
const SEGMENTS_MIN: u32 = 1000;

/// QUIC with packets of this size needs as little CPU time as TLS.
const LARGE_PACKET: u16 = 6000;

/// Rate of the other way, as a multiple of that in use, for which the way in use is left.
const CLEARLY: f64 = 1.15;

/// Rate of TLS, as a multiple of QUIC's with small packets, at which TLS is taken.
const AS_FAST: f64 = 0.95;

/// The same where QUIC has large packets.
const FASTER: f64 = 1.05;

/// Time after which both ways are measured again.
const AGAIN: Duration = Duration::from_secs(600);

/// Pause after TLS failed or lost bytes; it doubles with each further time.
const PAUSE_MIN: Duration = Duration::from_secs(30);

const PAUSE_MAX: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy, Debug)]
pub(super) struct QuicPath {
    pub(super) min_rtt: Duration,
    pub(super) packet: u16,
}

/// Bytes and the time that they took.
#[derive(Clone, Copy, Debug, Default)]
struct Meter {
    bytes: u64,
    busy: Duration,
}

impl Meter {
    fn add(&mut self, bytes: u64, took: Duration) {
        self.bytes += bytes;
        self.busy += took;
    }

    /// Bytes a second, once enough of them were measured.
    fn rate(&self) -> Option<f64> {
        let measured = self.bytes >= PROBE_BYTES && !self.busy.is_zero();
        measured.then(|| self.bytes as f64 / self.busy.as_secs_f64())
    }
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Quic {
        meter: Meter,
    },
    /// On TLS to measure it, after QUIC was measured.
    Trial {
        quic: f64,
        meter: Meter,
    },
    /// On TLS, until both are measured again.
    Tls {
        until: Instant,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Chooser {
    choice: BulkChoice,
    phase: Phase,
    /// Set where TLS was in use before both were measured again.
    had_tls: bool,
    retry_at: Option<Instant>,
    failures: u32,
    reason: Option<String>,
    path: Option<QuicPath>,
}

impl Chooser {
    pub(super) fn new(choice: BulkChoice) -> Self {
        Self {
            choice,
            phase: Phase::Quic {
                meter: Meter::default(),
            },
            had_tls: false,
            retry_at: None,
            failures: 0,
            reason: None,
            path: None,
        }
    }

    /// The way of the next stream, if a connection over TCP is open.
    pub(super) fn way(&self) -> Way {
        match (self.choice, self.phase) {
            (BulkChoice::Quic, _) | (BulkChoice::Auto, Phase::Quic { .. }) => Way::Quic,
            (BulkChoice::Tls, _) | (BulkChoice::Auto, _) => Way::Tls,
        }
    }

    /// Why this way is in use; `None` while there was nothing to choose.
    pub(super) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// When TLS may be tried, if it failed before.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// True while a connection over TCP should be open.
    pub(super) fn wants_tls(&self, now: Instant) -> bool {
        let may = self.retry_at.is_none_or(|at| at <= now);
        match self.choice {
            BulkChoice::Quic => false,
            BulkChoice::Tls => may,
            BulkChoice::Auto => may && self.is_due(),
        }
    }

    /// True once QUIC was measured on a path that suits TLS.
    fn is_due(&self) -> bool {
        let Phase::Quic { meter } = self.phase else {
            return true;
        };
        let short = self.path.is_some_and(|path| path.min_rtt < RTT_MAX);
        short && meter.rate().is_some()
    }

    /// A connection over TCP is open, so TLS can be measured.
    pub(super) fn is_open(&mut self, now: Instant) {
        if self.choice == BulkChoice::Tls && self.reason.is_none() {
            self.reason = Some("network.bulk asks for it".to_owned());
        }
        if let Phase::Quic { meter } = self.phase
            && let Some(quic) = meter.rate()
            && self.wants_tls(now)
        {
            let meter = Meter::default();
            self.phase = Phase::Trial { quic, meter };
        }
    }

    /// A push was acknowledged after it kept the way busy for `took`.
    pub(super) fn pushed(&mut self, now: Instant, way: Way, bytes: u64, took: Duration) {
        match &mut self.phase {
            Phase::Quic { meter } if way == Way::Quic => {
                // The newest bytes say most, so older ones are dropped by halves.
                if meter.bytes >= 2 * PROBE_BYTES {
                    (meter.bytes, meter.busy) = (meter.bytes / 2, meter.busy / 2);
                }
                meter.add(bytes, took);
            }
            Phase::Trial { meter, .. } if way == Way::Tls => meter.add(bytes, took),
            Phase::Tls { until } if *until <= now => {
                self.had_tls = true;
                self.phase = Phase::Quic {
                    meter: Meter::default(),
                };
            }
            _ => {}
        }
        if let Phase::Trial { quic, meter } = self.phase
            && let Some(tls) = meter.rate()
        {
            self.decide(now, quic, tls);
        }
    }

    fn decide(&mut self, now: Instant, quic: f64, tls: f64) {
        let large = self.path.is_some_and(|path| path.packet >= LARGE_PACKET);
        let need = match (self.had_tls, large) {
            (true, _) => 1.0 / CLEARLY,
            (false, true) => FASTER,
            (false, false) => AS_FAST,
        };
        let [tls_mb, quic_mb] = [tls, quic].map(|rate| rate / 1e6);
        let rates = format!("measured: tls {tls_mb:.0} MB/s, quic {quic_mb:.0} MB/s");
        self.reason = Some(rates);
        self.had_tls = false;
        if tls >= need * quic {
            self.failures = 0;
            self.phase = Phase::Tls { until: now + AGAIN };
        } else {
            self.back(now + AGAIN);
        }
    }

    fn back(&mut self, retry_at: Instant) {
        self.had_tls = false;
        self.retry_at = Some(retry_at);
        self.phase = Phase::Quic {
            meter: Meter::default(),
        };
    }

    /// TLS cannot be used: the dial failed or the connection broke.
    pub(super) fn failed(&mut self, now: Instant, why: String) {
        self.failures += 1;
        self.reason = Some(why);
        self.back(now + doubled(PAUSE_MIN, PAUSE_MAX, self.failures));
    }

    pub(super) fn sees(&mut self, path: QuicPath) {
        self.path = Some(path);
    }

    /// Segments that TCP sent since the last call, and those among them that it sent again. Returns
    /// false if TLS was left for it.
    pub(super) fn resent(&mut self, now: Instant, sent: u32, again: u32) -> bool {
        let share = f64::from(again) / f64::from(sent.max(1));
        if self.choice != BulkChoice::Auto || sent < SEGMENTS_MIN || share <= RESENT_MAX {
            return true;
        }
        let percent = share * 100.0;
        self.failed(
            now,
            format!("tcp sent {percent:.1} % of its segments again"),
        );
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn short(packet: u16) -> QuicPath {
        QuicPath {
            min_rtt: Duration::from_micros(200),
            packet,
        }
    }

    /// Pushes enough to measure a way, at MB/s.
    fn push(chooser: &mut Chooser, now: Instant, way: Way, rate: f64) {
        for _ in 0..8 {
            let bytes = 8 * MIB;
            let took = Duration::from_secs_f64(bytes as f64 / (rate * 1e6));
            chooser.pushed(now, way, bytes, took);
        }
    }

    fn tried(packet: u16, quic: f64, tls: f64) -> (Chooser, Instant) {
        let (mut chooser, now) = (Chooser::new(BulkChoice::Auto), Instant::now());
        chooser.sees(short(packet));
        assert!(!chooser.wants_tls(now), "nothing was measured");
        push(&mut chooser, now, Way::Quic, quic);
        assert!(chooser.wants_tls(now) && chooser.way() == Way::Quic);
        chooser.is_open(now);
        assert_eq!(chooser.way(), Way::Tls);
        push(&mut chooser, now, Way::Tls, tls);
        (chooser, now)
    }

    #[test]
    fn the_faster_way_is_kept_and_its_rates_are_the_reason() {
        let (chooser, _) = tried(1452, 500.0, 1000.0);
        assert_eq!(chooser.way(), Way::Tls);
        assert_eq!(
            chooser.reason(),
            Some("measured: tls 1000 MB/s, quic 500 MB/s")
        );
        let (chooser, now) = tried(1452, 1000.0, 500.0);
        assert_eq!(chooser.way(), Way::Quic);
        assert!(!chooser.wants_tls(now) && chooser.retry_at() == Some(now + AGAIN));
    }

    #[test]
    fn of_equals_tls_is_taken_where_it_saves_time_of_the_processor() {
        assert_eq!(tried(1452, 110.0, 108.0).0.way(), Way::Tls);
        assert_eq!(tried(8932, 110.0, 108.0).0.way(), Way::Quic);
    }

    #[test]
    fn both_are_measured_again_and_a_little_is_no_reason_to_change() {
        for (quic, kept) in [(1100.0, Way::Tls), (1300.0, Way::Quic)] {
            let (mut chooser, now) = tried(1452, 500.0, 1000.0);
            let later = now + AGAIN;
            chooser.pushed(later, Way::Tls, MIB, Duration::from_millis(1));
            assert_eq!(chooser.way(), Way::Quic, "to measure it");
            push(&mut chooser, later, Way::Quic, quic);
            chooser.is_open(later);
            push(&mut chooser, later, Way::Tls, 1000.0);
            assert_eq!(chooser.way(), kept);
        }
    }

    #[test]
    fn a_long_path_stays_on_quic() {
        let (mut chooser, now) = (Chooser::new(BulkChoice::Auto), Instant::now());
        chooser.sees(QuicPath {
            min_rtt: RTT_MAX,
            packet: 1452,
        });
        push(&mut chooser, now, Way::Quic, 10.0);
        assert!(!chooser.wants_tls(now));
        chooser.is_open(now);
        assert_eq!(chooser.way(), Way::Quic);
    }

    #[test]
    fn loss_and_failures_lead_back_and_are_tried_less_and_less() {
        let (mut chooser, now) = tried(1452, 500.0, 1000.0);
        assert!(
            chooser.resent(now, SEGMENTS_MIN - 1, 500),
            "too few to tell"
        );
        assert!(chooser.resent(now, 10_000, 50), "half a percent");
        assert!(!chooser.resent(now, 10_000, 51) && chooser.way() == Way::Quic);
        assert!(chooser.reason().unwrap().starts_with("tcp sent 0.5 %"));
        let mut pauses = Vec::new();
        for _ in 0..9 {
            chooser.failed(now, "closed".to_owned());
            pauses.push(chooser.retry_at().unwrap() - now);
        }
        assert_eq!(pauses[..2], [PAUSE_MIN * 2, PAUSE_MIN * 4]);
        assert_eq!(pauses[8], PAUSE_MAX);
        push(&mut chooser, now, Way::Quic, 500.0);
        assert!(!chooser.wants_tls(now + PAUSE_MAX / 2) && chooser.wants_tls(now + PAUSE_MAX));
    }

    #[test]
    fn who_asks_for_one_way_gets_it() {
        let now = Instant::now();
        let mut tls = Chooser::new(BulkChoice::Tls);
        assert!(tls.wants_tls(now) && tls.way() == Way::Tls);
        assert!(tls.resent(now, 10_000, 5000));
        tls.failed(now, "closed".to_owned());
        assert!(!tls.wants_tls(now) && tls.wants_tls(now + PAUSE_MIN));
        let mut quic = Chooser::new(BulkChoice::Quic);
        quic.sees(short(1452));
        push(&mut quic, now, Way::Quic, 1.0);
        assert!(!quic.wants_tls(now) && quic.way() == Way::Quic);
    }
}
