//! [`Bbr3`]: a model of the path instead of a reaction to loss.
//!
//! It follows BBRv3 (draft-ietf-ccwg-bbr-04). It measures the delivery rate and the minimum
//! round-trip time, keeps as much in flight as that path holds, probes in cycles (Down, Cruise,
//! Refill, Up), and derives long-term and short-term bounds from loss. It uses quinn's hooks, and
//! differs from the draft where these or our links require it:
//!
//! * **The window sets the rate.** quinn paces at `1.25 * window / smoothed_rtt`, and no controller
//!   can change that (`ControllerMetrics::pacing_rate` only feeds traces), so the pacer merely
//!   spreads bursts. A pacing rate of `gain * bandwidth` is therefore expressed as a window of
//!   `gain * bandwidth * smoothed_rtt`: data leaves at `window / rtt`, also if other flows keep a
//!   queue. During a probe the controller uses the round-trip time from the probe's start.
//!   Otherwise the queue of the probe would raise the window further.
//! * **Bytes in flight are capped** at `2 * bandwidth * min_rtt`, from the first round on, so one
//!   flow never overflows a queue of one bandwidth-delay product.
//! * **Startup ends at a queue**, as in HyStart++ (RFC 9406), when every round-trip time of a round
//!   is an eighth above the smallest. This is earlier than the draft's three rounds without growth.
//!   Startup also ends at loss.
//! * **The queue decides what loss means.** Loss without a standing queue is background loss of the
//!   path. Its rate is measured in quiet rounds and tolerated, up to 10 %. Loss above 2 % with a
//!   queue is congestion, and so is loss far above the background without one (short queues,
//!   policers). Congestion lowers the bounds at once, by as much as was lost. quinn's batches name
//!   the newest lost packet, and the sampler knows the flight of that packet.
//! * **The long-term bound falls by the factor** 0.7 (though not below `bandwidth * min_rtt`) and
//!   first rises by packets. Multiplicative decrease and additive increase let two flows converge,
//!   while the draft's "as much as was in flight" keeps their shares. For the same reason probes
//!   last two to four rounds at 1.35, Down sends at 0.85, and cycles last 1 to 1.5 s instead of
//!   2 to 3 s.
//! * **Round-trip times below 5 ms count as 5 ms**, because on a LAN the hosts' schedulers determine
//!   when acknowledgements come.
//!
//! The hooks of quinn-proto 0.11.19, in the order of the calls: `on_sent` for each buffer of
//! datagrams (length and last packet number), `on_ack` for each acknowledged packet (identified by
//! the instant it was sent), one `on_end_acks` for each acknowledgement frame, then
//! `on_congestion_event` for the packets that this frame showed to be lost (zero bytes for an ECN
//! mark). `on_mtu_update` comes with path MTU discovery.

mod filters;
mod machine;
mod sampler;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;

use self::machine::Machine;
pub use self::machine::Phase;
use self::sampler::DeliverySampler;

/// Packets in flight before the first acknowledgement, as in other QUIC stacks. quinn paces them.
const INITIAL_PACKETS: u64 = 32;
/// The datagram size that every path carries (RFC 9000, section 14).
const BASE_DATAGRAM: u64 = 1200;

/// Makes [`Bbr3`] controllers.
#[derive(Debug, Default)]
pub struct Bbr3Config {
    built: AtomicU64,
}

impl ControllerFactory for Bbr3Config {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        // The count as a seed makes flows of one process probe at different times.
        let seed = self.built.fetch_add(1, Ordering::Relaxed);
        Box::new(Bbr3::new(now, current_mtu, seed))
    }
}

/// The path model of a [`Bbr3`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathModel {
    /// Estimated bandwidth in bytes per second.
    pub bandwidth: f64,
    /// The smallest round-trip time of the last seconds; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Background loss rate of the path, 0 to 1.
    pub background_loss: f64,
    /// Bytes delivered on this path.
    pub delivered: u64,
    /// The current phase.
    pub phase: Phase,
}

/// The controller, made by [`Bbr3Config`]. The module describes its design.
#[derive(Debug, Clone)]
pub struct Bbr3 {
    sampler: DeliverySampler,
    machine: Machine,
    initial_window: u64,
    smoothed_rtt: Duration,
}

impl Bbr3 {
    fn new(now: Instant, current_mtu: u16, seed: u64) -> Self {
        let initial_window = INITIAL_PACKETS * BASE_DATAGRAM.max(current_mtu.into());
        Self {
            sampler: DeliverySampler::new(now),
            machine: Machine::new(now, current_mtu.into(), initial_window, seed),
            initial_window,
            smoothed_rtt: Duration::ZERO,
        }
    }

    /// The current path model.
    #[must_use]
    pub fn model(&self) -> PathModel {
        PathModel {
            bandwidth: self.machine.bandwidth(),
            min_rtt: self.machine.min_rtt(),
            background_loss: self.machine.background_loss(),
            delivered: self.sampler.delivered(),
            phase: self.machine.phase(),
        }
    }
}

impl Controller for Bbr3 {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.sampler.on_sent(now, bytes, self.smoothed_rtt);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        _app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.smoothed_rtt = rtt.get();
        self.sampler.on_ack(now, sent, bytes);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        let min_rtt = self.machine.min_rtt().unwrap_or_default();
        let Some(sample) = self.sampler.end_batch(now, in_flight, app_limited, min_rtt) else {
            return;
        };
        let delivered = self.sampler.delivered();
        self.machine
            .on_sample(now, &sample, delivered, in_flight, self.smoothed_rtt);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        if lost_bytes == 0 {
            self.machine.on_mark(now, self.sampler.delivered());
            return;
        }
        let flight = self.sampler.on_lost(sent, lost_bytes);
        if is_persistent_congestion {
            self.machine.on_persistent_congestion();
        } else {
            let delivered = self.sampler.delivered();
            self.machine.on_loss(now, flight, lost_bytes, delivered);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.machine.set_mtu(new_mtu.into());
    }

    fn window(&self) -> u64 {
        self.machine.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.pacing_rate = Some((self.machine.pacing_rate() * 8.0) as u64);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
