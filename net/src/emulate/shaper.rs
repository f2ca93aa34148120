//! One direction of a link: decides whether and when a datagram arrives. It uses neither a clock
//! nor sockets, and it stores no bytes.

use super::loss::{LossModel, share};
use super::rate::Rate;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::time::Duration;

/// Parameters of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ShaperSpec {
    /// The rate at which datagrams are sent.
    pub rate: Rate,
    /// The constant part of the travel time.
    pub delay: Duration,
    /// The largest random addition to the travel time, uniformly distributed.
    pub jitter: Duration,
    /// Jitter may change the order of datagrams.
    pub reorder: bool,
    /// The fraction that is lost, 0 to 1.
    pub loss: f64,
    /// Mean number of consecutively lost datagrams; `None` for independent losses.
    pub burst: Option<f64>,
    /// The longest time that a datagram may wait in the queue.
    pub queue: Duration,
    /// The largest packet in bytes, with its headers; `None` carries all sizes.
    pub mtu: Option<usize>,
}

/// The result for a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The datagram arrives at this time.
    Deliver(Duration),
    /// The queue was full; the datagram used none of the link's time.
    DropQueue,
    /// The datagram was sent and then lost.
    DropLoss,
    /// The datagram is larger than the link carries.
    DropSize,
}

/// One direction of a link. Times count from a moment that the caller chooses.
///
/// For a datagram of `b` bytes that comes at `now`, where `free` is the moment at which the
/// previous one has been sent:
///
/// ```text
/// wait    = max(free - now, 0)                 dropped if wait > queue
/// free'   = max(free, now) + 8 b / rate        then lost with the share `loss`
/// arrives = free' + delay + U(0, jitter)       not before the one before it, unless `reorder`
/// ```
///
/// This is a token bucket with room for one datagram, behind a tail-drop queue measured in time.
#[derive(Clone, Debug)]
pub struct Shaper {
    spec: ShaperSpec,
    loss: LossModel,
    rng: ChaCha8Rng,
    free: Duration,
    last: Duration,
}

impl Shaper {
    /// An idle link. The same seed loses the same datagrams.
    pub fn new(spec: ShaperSpec, seed: u64) -> Self {
        Self {
            spec,
            loss: LossModel::new(spec.loss, spec.burst),
            rng: ChaCha8Rng::seed_from_u64(seed),
            free: Duration::ZERO,
            last: Duration::ZERO,
        }
    }

    /// Replaces the link's parameters. Accepted datagrams keep their times.
    pub fn reshape(&mut self, spec: ShaperSpec) {
        self.loss = LossModel::new(spec.loss, spec.burst);
        self.spec = spec;
    }

    /// Offers a datagram of `bytes` at `now`, which must not be before the previous call.
    pub fn offer(&mut self, now: Duration, bytes: usize) -> Fate {
        if self.spec.mtu.is_some_and(|mtu| bytes > mtu) {
            return Fate::DropSize;
        }
        if self.backlog(now) > self.spec.queue {
            return Fate::DropQueue;
        }
        let arrives = self.carry(now, bytes);
        if self.loss.next(&mut self.rng) {
            return Fate::DropLoss;
        }
        Fate::Deliver(self.in_order(arrives))
    }

    /// Like [`Shaper::offer`], for bytes of a stream in `segments` packets, of which none is
    /// dropped. Returns the time of arrival, and whether a segment was lost. The caller must
    /// account for its retransmission, and must wait while [`Shaper::backlog`] exceeds the queue.
    pub fn offer_stream(
        &mut self,
        now: Duration,
        bytes: usize,
        segments: usize,
    ) -> (Duration, bool) {
        let arrives = self.carry(now, bytes);
        // No short circuit, so that the number of random draws does not depend on the result.
        let lost = (0..segments).fold(false, |lost, _| self.loss.next(&mut self.rng) | lost);
        (self.in_order(arrives), lost)
    }

    /// The time that the waiting bytes need to be sent.
    pub fn backlog(&self, now: Duration) -> Duration {
        self.free.saturating_sub(now)
    }

    /// The longest backlog at which datagrams are accepted.
    pub fn queue(&self) -> Duration {
        self.spec.queue
    }

    fn carry(&mut self, now: Duration, bytes: usize) -> Duration {
        self.free = self.free.max(now) + self.spec.rate.time_of(bytes);
        let jitter = if self.spec.jitter.is_zero() {
            Duration::ZERO
        } else {
            self.spec.jitter.mul_f64(share(&mut self.rng))
        };
        self.free + self.spec.delay + jitter
    }

    fn in_order(&mut self, arrives: Duration) -> Duration {
        if self.spec.reorder {
            return arrives;
        }
        self.last = self.last.max(arrives);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    /// 8 Mbit/s: one byte per microsecond.
    fn spec() -> ShaperSpec {
        ShaperSpec {
            rate: Rate::from_bits(8_000_000),
            delay: 20 * MS,
            queue: 5 * MS,
            ..ShaperSpec::default()
        }
    }

    #[test]
    fn datagrams_follow_each_other_at_the_rate() {
        let mut shaper = Shaper::new(spec(), 1);
        assert_eq!(shaper.offer(Duration::ZERO, 1000), Fate::Deliver(21 * MS));
        assert_eq!(shaper.offer(Duration::ZERO, 1000), Fate::Deliver(22 * MS));
        assert_eq!(shaper.backlog(MS), MS);
        // The link was idle, and idle time is not saved up.
        assert_eq!(shaper.offer(50 * MS, 500), Fate::Deliver(70 * MS + MS / 2));
    }

    #[test]
    fn the_queue_drops_what_would_wait_longer_and_takes_no_time_for_it() {
        let mut shaper = Shaper::new(spec(), 1);
        let taken = (0..20).filter(|_| shaper.offer(Duration::ZERO, 1000) != Fate::DropQueue);
        // 1 ms each: the sixth waits exactly 5 ms, the seventh would wait 6 ms.
        assert_eq!(taken.count(), 6);
        assert_eq!(shaper.offer(Duration::ZERO, 1), Fate::DropQueue);
        assert_eq!(shaper.offer(MS, 1000), Fate::Deliver(27 * MS));
    }

    #[test]
    fn a_datagram_that_is_too_large_never_arrives() {
        let mtu = Some(1500);
        let mut shaper = Shaper::new(ShaperSpec { mtu, ..spec() }, 1);
        assert_eq!(shaper.offer(Duration::ZERO, 1501), Fate::DropSize);
        let arrives = 20 * MS + Duration::from_micros(1500);
        assert_eq!(shaper.offer(Duration::ZERO, 1500), Fate::Deliver(arrives));
    }

    #[test]
    fn what_is_lost_takes_the_links_time() {
        let mut shaper = Shaper::new(
            ShaperSpec {
                loss: 1.0,
                ..spec()
            },
            1,
        );
        assert_eq!(shaper.offer(Duration::ZERO, 1000), Fate::DropLoss);
        assert_eq!(shaper.backlog(Duration::ZERO), MS);
        shaper.reshape(spec());
        assert_eq!(shaper.offer(Duration::ZERO, 1000), Fate::Deliver(22 * MS));
    }

    #[test]
    fn streams_are_never_dropped_but_hear_of_losses() {
        let mut shaper = Shaper::new(
            ShaperSpec {
                loss: 1.0,
                ..spec()
            },
            1,
        );
        assert_eq!(
            shaper.offer_stream(Duration::ZERO, 9000, 6),
            (29 * MS, true)
        );
        assert_eq!(
            shaper.offer_stream(Duration::ZERO, 1000, 1),
            (30 * MS, true)
        );
        let mut clean = Shaper::new(spec(), 1);
        assert_eq!(
            clean.offer_stream(Duration::ZERO, 1000, 1),
            (21 * MS, false)
        );
    }

    #[test]
    fn an_unlimited_link_has_only_its_delay() {
        let free = ShaperSpec {
            rate: Rate::UNLIMITED,
            ..spec()
        };
        let mut shaper = Shaper::new(free, 1);
        for _ in 0..1000 {
            assert_eq!(shaper.offer(MS, 65_000), Fate::Deliver(21 * MS));
        }
    }

    #[test]
    fn jitter_reorders_only_when_asked() {
        let jitter = |reorder| ShaperSpec {
            jitter: 10 * MS,
            reorder,
            ..spec()
        };
        let times = |spec| {
            let mut shaper = Shaper::new(spec, 3);
            let times = (0..200u32).map(|i| match shaper.offer(i * MS, 1000) {
                Fate::Deliver(at) => at,
                other => panic!("{other:?}"),
            });
            times.collect::<Vec<_>>()
        };
        let ordered = times(jitter(false));
        assert!(ordered.is_sorted());
        let free = times(jitter(true));
        assert!(!free.is_sorted());
        for (i, at) in (0..200u32).zip(free) {
            let earliest = (i + 1) * MS + 20 * MS;
            assert!((earliest..=earliest + 10 * MS).contains(&at));
        }
    }

    proptest! {
        #[test]
        fn nothing_arrives_faster_than_the_link_and_the_seed_decides(
            gaps in prop::collection::vec((0u64..3_000, 1usize..1_500), 1..200),
            loss in 0.0..0.5f64, seed in any::<u64>(),
        ) {
            let spec = ShaperSpec { loss, jitter: MS, ..spec() };
            let (mut shaper, mut twin) = (Shaper::new(spec, seed), Shaper::new(spec, seed));
            let (mut now, mut sent, mut last) = (Duration::ZERO, 0usize, Duration::ZERO);
            for (gap, bytes) in gaps {
                now += Duration::from_micros(gap);
                let fate = shaper.offer(now, bytes);
                prop_assert_eq!(fate, twin.offer(now, bytes));
                if let Fate::Deliver(at) = fate {
                    sent += bytes;
                    // The datagrams that have arrived needed at least the time of their bytes at
                    // this rate.
                    prop_assert!(at >= spec.rate.time_of(sent) + spec.delay);
                    prop_assert!(at >= now + spec.rate.time_of(bytes) + spec.delay);
                    prop_assert!(at <= now + spec.queue + spec.rate.time_of(bytes) + spec.delay + 2 * MS);
                    prop_assert!(at >= last);
                    last = at;
                }
            }
        }
    }
}
