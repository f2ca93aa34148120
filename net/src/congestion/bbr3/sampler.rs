//! Delivery-rate samples: how fast the path carried the bytes in flight.
//!
//! For each batch of acknowledgements it measures how many bytes arrived since the newest
//! acknowledged packet was sent, and over which interval (draft-ietf-ccwg-bbr, section 4.1,
//! "Delivery Rate Samples"). The controller derives windows and bounds from the samples.
//!
//! quinn identifies an acknowledged packet by the instant it was sent, not by its number, so the
//! state at sending is stored by instant. Packets sent within a small fraction of a round trip
//! share one record, which bounds the memory to some hundred records at any rate.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Maximum number of records. The oldest is dropped first.
const MAX_RECORDS: usize = 1024;
/// Packets within this fraction of a round trip (its inverse) share a record.
const RECORDS_PER_ROUND_TRIP: u32 = 64;
/// Packets closer together than this always share a record.
const FINEST_RECORD: Duration = Duration::from_micros(100);

/// State at the moment a packet was sent.
#[derive(Debug, Clone, Copy)]
struct SendRecord {
    at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    in_flight: u64,
    lost: u64,
    app_limited: bool,
}

/// The newest packet in the current batch of acknowledgements.
#[derive(Debug, Clone, Copy)]
struct Newest {
    record: SendRecord,
    sent: Instant,
}

/// Measurements from one batch of acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RateSample {
    /// Bytes per second; `None` if the interval is too short for a rate.
    pub(super) rate: Option<f64>,
    /// Bytes delivered since the newest packet was sent.
    pub(super) delivered: u64,
    /// Total of delivered bytes when the newest packet was sent. It serves to count rounds.
    pub(super) prior_delivered: u64,
    /// Bytes acknowledged by this batch.
    pub(super) newly_acked: u64,
    /// Time since the newest packet was sent.
    pub(super) rtt: Duration,
    /// The sender had nothing to send during the interval. Then the rate is a lower bound.
    pub(super) app_limited: bool,
}

/// The flight in which a packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LostFlight {
    /// Bytes in flight when the packet was sent, including the packet.
    pub(super) in_flight: u64,
    /// Bytes declared lost since then.
    pub(super) lost: u64,
}

/// Turns quinn's hooks for packets into [`RateSample`]s.
#[derive(Debug, Clone)]
pub(super) struct DeliverySampler {
    records: VecDeque<SendRecord>,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: u64,
    in_flight: u64,
    /// Samples count as application-limited until this total of bytes was delivered.
    limited_until: u64,
    newest: Option<Newest>,
    newly_acked: u64,
}

impl DeliverySampler {
    /// A sampler for a path on which nothing was sent yet.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            records: VecDeque::new(),
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            lost: 0,
            in_flight: 0,
            limited_until: 0,
            newest: None,
            newly_acked: 0,
        }
    }

    /// Bytes delivered since the connection began.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Records that `bytes` were sent at `now`.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64, smoothed_rtt: Duration) {
        if self.in_flight == 0 {
            // The path was idle, so the interval of the next sample begins here and not at the last
            // delivery.
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        self.in_flight += bytes;
        let grain = (smoothed_rtt / RECORDS_PER_ROUND_TRIP).max(FINEST_RECORD);
        if let Some(last) = self.records.back_mut()
            && now.saturating_duration_since(last.at) < grain
            && self.in_flight > bytes
        {
            last.in_flight = self.in_flight;
            return;
        }
        if self.records.len() == MAX_RECORDS {
            self.records.pop_front();
        }
        self.records.push_back(SendRecord {
            at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: self.in_flight,
            lost: self.lost,
            app_limited: self.limited_until > self.delivered,
        });
    }

    /// Records that a packet of `bytes`, sent at `sent`, was acknowledged at `now`.
    pub(super) fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64) {
        self.delivered += bytes;
        self.delivered_at = now;
        self.newly_acked += bytes;
        self.in_flight = self.in_flight.saturating_sub(bytes);
        if self.newest.is_some_and(|newest| newest.sent >= sent) {
            return;
        }
        if let Some(record) = self.find(sent) {
            self.newest = Some(Newest { record, sent });
            self.first_sent_at = sent;
        }
    }

    /// Ends a batch of acknowledgements. `in_flight` is quinn's count, which includes packets that
    /// this sampler does not see (packets with acknowledgements only).
    pub(super) fn end_batch(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        min_rtt: Duration,
    ) -> Option<RateSample> {
        self.in_flight = in_flight;
        let newly_acked = std::mem::take(&mut self.newly_acked);
        let newest = self.newest.take()?;
        if app_limited {
            self.limited_until = self.delivered + in_flight.max(1);
        }
        let record = newest.record;
        let rtt = now.saturating_duration_since(newest.sent);
        let send_elapsed = newest.sent.saturating_duration_since(record.first_sent_at);
        let ack_elapsed = now.saturating_duration_since(record.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        let delivered = self.delivered - record.delivered;
        // A shorter interval than the round-trip time comes from compressed acknowledgements and
        // does not measure bandwidth.
        let meaningful = interval >= min_rtt && !interval.is_zero();
        self.forget_before(newest.sent, rtt);
        Some(RateSample {
            rate: meaningful.then(|| delivered as f64 / interval.as_secs_f64()),
            delivered,
            prior_delivered: record.delivered,
            newly_acked,
            rtt,
            app_limited: record.app_limited,
        })
    }

    /// Records that `bytes` were lost. The newest of them was sent at `sent`.
    pub(super) fn on_lost(&mut self, sent: Instant, bytes: u64) -> LostFlight {
        self.lost += bytes;
        self.in_flight = self.in_flight.saturating_sub(bytes);
        match self.find(sent) {
            Some(record) => LostFlight {
                in_flight: record.in_flight,
                lost: self.lost - record.lost,
            },
            None => LostFlight {
                in_flight: self.in_flight + bytes,
                lost: bytes,
            },
        }
    }

    fn find(&self, sent: Instant) -> Option<SendRecord> {
        let after = self.records.partition_point(|record| record.at <= sent);
        self.records.get(after.saturating_sub(1)).copied()
    }

    /// Drops old records: after four round trips a packet has been acknowledged or declared lost.
    fn forget_before(&mut self, acked_sent: Instant, rtt: Duration) {
        while self.records.len() > 1 && self.records[1].at + rtt * 4 < acked_sent {
            self.records.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// Sends `packets` of 1000 bytes, one per millisecond. Each is acknowledged after 100 ms.
    fn steady(sampler: &mut DeliverySampler, start: Instant, packets: u64) -> Option<RateSample> {
        let mut last = None;
        for tick in 0..packets + 100 {
            let now = start + Duration::from_millis(tick);
            if tick >= 100 {
                sampler.on_ack(now, now - RTT, 1000);
                let in_flight = sampler.in_flight;
                last = sampler.end_batch(now, in_flight, false, RTT).or(last);
            }
            if tick < packets {
                sampler.on_sent(now, 1000, RTT);
            }
        }
        last
    }

    #[test]
    fn a_steady_flow_is_sampled_at_its_rate() {
        let start = Instant::now();
        let mut sampler = DeliverySampler::new(start);
        let sample = steady(&mut sampler, start, 1000).expect("acknowledgements give samples");
        let rate = sample.rate.expect("the interval is a round trip");
        assert!((rate - 1e6).abs() < 0.03e6, "{rate}");
        assert_eq!(sample.rtt, RTT);
        assert!(!sample.app_limited);
        assert_eq!(sampler.delivered(), 1_000_000);
        assert_eq!(sampler.in_flight, 0);
    }

    #[test]
    fn compressed_acknowledgements_are_not_bandwidth() {
        let start = Instant::now();
        let mut sampler = DeliverySampler::new(start);
        for tick in 0..100 {
            sampler.on_sent(start + Duration::from_millis(tick), 1000, RTT);
        }
        // Everything is acknowledged at the same instant, so the sending interval limits the rate.
        let now = start + Duration::from_millis(200);
        for tick in 0..100 {
            sampler.on_ack(now, start + Duration::from_millis(tick), 1000);
        }
        let sample = sampler.end_batch(now, 0, false, RTT).expect("a sample");
        assert!(sample.rate.expect("long enough") <= 100_000.0 / 0.1 + 1.0);
        let mut short = DeliverySampler::new(start);
        short.on_sent(start, 1000, RTT);
        let soon = start + Duration::from_millis(1);
        short.on_ack(soon, start, 1000);
        assert_eq!(
            short.end_batch(soon, 0, false, RTT).and_then(|s| s.rate),
            None
        );
    }

    #[test]
    fn an_idle_sender_marks_what_follows_as_limited() {
        let start = Instant::now();
        let mut sampler = DeliverySampler::new(start);
        sampler.on_sent(start, 1000, RTT);
        sampler.on_ack(start + RTT, start, 1000);
        let first = sampler
            .end_batch(start + RTT, 0, true, RTT)
            .expect("a sample");
        assert!(!first.app_limited, "it was not known when the packet left");
        sampler.on_sent(start + RTT, 1000, RTT);
        sampler.on_ack(start + RTT * 2, start + RTT, 1000);
        let second = sampler
            .end_batch(start + RTT * 2, 0, false, RTT)
            .expect("a sample");
        assert!(second.app_limited);
    }

    #[test]
    fn a_lost_packet_knows_its_flight() {
        let start = Instant::now();
        let mut sampler = DeliverySampler::new(start);
        for tick in 0..10 {
            sampler.on_sent(start + Duration::from_millis(tick * 5), 1000, RTT);
        }
        let flight = sampler.on_lost(start + Duration::from_millis(15), 1000);
        assert_eq!(
            flight,
            LostFlight {
                in_flight: 4000,
                lost: 1000
            }
        );
        let flight = sampler.on_lost(start + Duration::from_millis(45), 2000);
        assert_eq!(
            flight,
            LostFlight {
                in_flight: 10_000,
                lost: 3000
            }
        );
        assert_eq!(sampler.in_flight, 7000);
    }

    #[test]
    fn memory_is_bounded_whatever_the_rate() {
        let start = Instant::now();
        let mut sampler = DeliverySampler::new(start);
        for tick in 0..200_000 {
            sampler.on_sent(start + Duration::from_micros(tick), 1200, RTT);
        }
        assert!(sampler.records.len() <= 130, "{}", sampler.records.len());
        for tick in 0..20_000 {
            sampler.on_sent(start + Duration::from_secs(tick), 1200, RTT);
        }
        assert_eq!(sampler.records.len(), MAX_RECORDS);
    }
}
