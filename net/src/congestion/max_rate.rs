//! [`MaxRate`]: hard limits on the sending rate, per peer and for the whole daemon, which can be changed at run time.
//!
//! The [`Throttle`] enforces a limit: a sender of bulk data draws its bytes from one token bucket for the peer and one
//! for the daemon, shared by all senders, on QUIC, on TLS over TCP and on streams of a link alike. It counts payload;
//! headers, acknowledgements and retransmissions (a few percent) come on top.
//!
//! On a long path, [`Limited`] also caps the window of every controller, so that data waits in quinn's streams, where
//! priorities order it, and not in flight. The cap is what the limit sends in a round trip. A path with a round trip
//! below [`SHORT_PATH`] has no cap: there the cap would be a packet or two, each of which waits for a delayed
//! acknowledgement, and a megabyte a second would become some kilobytes.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;
use tokio::sync::watch;

/// The bytes that an idle bucket saves, as time at its rate.
const BURST: Duration = Duration::from_millis(50);
/// The packets of the smallest cap, with which connections begin (RFC 9002, section 7.2). With fewer, the last one waits
/// for a delayed acknowledgement; in a window below one packet nothing is sent at all, and the connection ends.
const SMALLEST_WINDOW_PACKETS: u64 = 10;
/// Bytes of packets for each byte of payload, because a limit counts payload.
const HEADERS: f64 = 1.04;
/// Below this round trip the throttle alone enforces a limit.
const SHORT_PATH: Duration = Duration::from_millis(5);

/// Limits in bytes per second; `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Limit for each peer.
    pub peer: Option<u64>,
    /// Limit for all peers together.
    pub daemon: Option<u64>,
}

#[derive(Debug)]
struct Shared {
    /// The lower of both limits in bytes per second, for the controllers; `u64::MAX` means no
    /// limit.
    window_rate: AtomicU64,
    limits: watch::Sender<Limits>,
    daemon: Mutex<Bucket>,
}

/// A handle to the limits. Clones share them.
#[derive(Debug, Clone)]
pub struct MaxRate(Arc<Shared>);

impl Default for MaxRate {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl MaxRate {
    /// Creates a handle with these limits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let rate = Self(Arc::new(Shared {
            window_rate: AtomicU64::new(u64::MAX),
            limits: watch::Sender::new(limits),
            daemon: Mutex::new(Bucket::default()),
        }));
        rate.set(limits);
        rate
    }

    /// Changes the limits at once for all users of this handle and its clones. Zero counts as one
    /// byte per second; to send nothing, stop the daemon.
    pub fn set(&self, limits: Limits) {
        let lower = [limits.peer, limits.daemon]
            .into_iter()
            .flatten()
            .min()
            .map_or(u64::MAX, |rate| rate.max(1));
        self.0.window_rate.store(lower, Ordering::Relaxed);
        self.0.limits.send_replace(limits);
    }

    /// The current limits.
    #[must_use]
    pub fn get(&self) -> Limits {
        *self.0.limits.borrow()
    }

    /// Creates a throttle, which all senders to one peer share.
    #[must_use]
    pub fn throttle(&self) -> Throttle {
        Throttle {
            rate: self.clone(),
            peer: Arc::new(Mutex::new(Bucket::default())),
        }
    }

    fn window_rate(&self) -> u64 {
        self.0.window_rate.load(Ordering::Relaxed)
    }
}

/// A token bucket that lends: a draw always succeeds and returns the time at which the bytes may be
/// sent. So it is exact for draws of any size.
#[derive(Debug, Default)]
struct Bucket {
    rate: u64,
    /// When all bytes drawn so far are paid for.
    paid_at: Option<tokio::time::Instant>,
}

impl Bucket {
    /// Draws `bytes` at `rate` bytes per second. Returns when they may be sent.
    fn draw(&mut self, now: tokio::time::Instant, bytes: u64, rate: u64) -> tokio::time::Instant {
        if self.rate != rate {
            // Debts at another rate would be computed with the wrong price, so they are dropped.
            self.rate = rate;
            self.paid_at = None;
        }
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        let from = self.paid_at.unwrap_or(now).max(earliest);
        let cost = Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
        self.paid_at = Some(from + cost);
        from.max(now)
    }
}

/// The two buckets from which a sender of bulk data draws: its peer's and the daemon's.
#[derive(Debug, Clone)]
pub struct Throttle {
    rate: MaxRate,
    peer: Arc<Mutex<Bucket>>,
}

impl Throttle {
    /// Waits until `bytes` may be sent within both limits. A changed limit applies at once, also to
    /// bytes that wait already. Dropping the future returns no bytes to the buckets.
    pub async fn acquire(&self, bytes: u64) {
        let mut limits = self.rate.0.limits.subscribe();
        loop {
            let current = *limits.borrow_and_update();
            let Some(at) = self.draw(current, bytes) else {
                return;
            };
            tokio::select! {
                () = tokio::time::sleep_until(at) => return,
                changed = limits.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn draw(&self, limits: Limits, bytes: u64) -> Option<tokio::time::Instant> {
        let now = tokio::time::Instant::now();
        let peer = limits
            .peer
            .map(|rate| lock(&self.peer).draw(now, bytes, rate));
        let daemon = limits
            .daemon
            .map(|rate| lock(&self.rate.0.daemon).draw(now, bytes, rate));
        peer.max(daemon)
    }
}

fn lock(bucket: &Mutex<Bucket>) -> std::sync::MutexGuard<'_, Bucket> {
    // A bucket is a single value, so a panic elsewhere cannot leave it inconsistent.
    bucket.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes controllers whose window obeys a [`MaxRate`].
pub struct Limited<F: ?Sized> {
    limit: MaxRate,
    inner: Arc<F>,
}

impl<F> Limited<F> {
    /// Wraps the controllers of `inner` with `limit`.
    #[must_use]
    pub fn new(inner: Arc<F>, limit: MaxRate) -> Self {
        Self { limit, inner }
    }
}

impl<F: ControllerFactory> ControllerFactory for Limited<F> {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(LimitedController {
            inner: Arc::clone(&self.inner).build(now, current_mtu),
            limit: self.limit.clone(),
            mtu: current_mtu,
            smoothed_rtt: None,
            least_rtt: None,
        })
    }
}

/// A controller whose window obeys a [`MaxRate`].
pub struct LimitedController {
    inner: Box<dyn Controller>,
    limit: MaxRate,
    mtu: u16,
    smoothed_rtt: Option<Duration>,
    least_rtt: Option<Duration>,
}

impl LimitedController {
    /// Returns the wrapped controller.
    #[must_use]
    pub fn into_inner(self) -> Box<dyn Controller> {
        self.inner
    }

    /// The smallest round-trip time above zero. quinn reads the clock before it reads its socket,
    /// so packets that another thread sent in between seem to return at once.
    #[must_use]
    pub fn least_rtt(&self) -> Option<Duration> {
        self.least_rtt
    }

    fn came_back_after(&mut self, took: Duration) {
        if !took.is_zero() && self.least_rtt.is_none_or(|least| took < least) {
            self.least_rtt = Some(took);
        }
    }

    fn cap(&self, window: u64) -> u64 {
        let rate = self.limit.window_rate();
        match self.smoothed_rtt {
            Some(rtt) if rate != u64::MAX && rtt >= SHORT_PATH => {
                let cap = (rate as f64 * HEADERS * rtt.as_secs_f64()) as u64;
                window.min(cap.max(SMALLEST_WINDOW_PACKETS * u64::from(self.mtu)))
            }
            _ => window,
        }
    }
}

impl Controller for LimitedController {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.smoothed_rtt = Some(rtt.get());
        self.came_back_after(now.saturating_duration_since(sent));
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        // While the limit holds data back, samples do not measure the path.
        let limited = app_limited || self.cap(self.inner.window()) < self.inner.window();
        self.inner
            .on_end_acks(now, in_flight, limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.inner
            .on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.cap(self.inner.window())
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = self.inner.metrics();
        metrics.congestion_window = self.window();
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            limit: self.limit.clone(),
            mtu: self.mtu,
            smoothed_rtt: self.smoothed_rtt,
            least_rtt: self.least_rtt,
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests;
