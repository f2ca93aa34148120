//! A virtual link: rate, delay, a tail-drop queue, loss, reordering, and changes over time.
//!
//! It decides whether and when a datagram arrives. `socket` moves the bytes.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use tokio::time::Instant;

/// Size of the IPv4 and UDP headers of each datagram.
const HEADERS: usize = 28;

/// A link. Both directions are the same unless an event changes one.
#[derive(Debug, Clone)]
pub struct LinkSpec {
    /// Bits per second.
    pub rate: f64,
    /// One-way delay.
    pub delay: Duration,
    /// Length of the queue, as time at the rate.
    pub queue: Duration,
    /// Fraction of datagrams lost at random in the forward direction.
    pub loss: f64,
    /// Mean number of consecutively lost datagrams.
    pub burst: f64,
    /// Fraction of datagrams that arrive late, and the delay.
    pub reorder: (f64, Duration),
    /// Seed of all random draws.
    pub seed: u64,
    /// Changes of the link, with their times after the start.
    pub events: Vec<(Duration, Event)>,
}

/// A change of the link.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// Sets the rate in both directions, bits per second.
    Rate(f64),
    /// Sets the size of the largest datagram, headers included.
    Mtu(usize),
    /// Opens or closes the forward direction (from client to server).
    Forward(bool),
    /// Opens or closes the backward direction.
    Backward(bool),
}

impl LinkSpec {
    /// 50 Mbit/s, a round trip of 100 ms, a queue of 100 ms: the long link of these tests.
    pub fn long() -> Self {
        Self {
            rate: 50e6,
            delay: Duration::from_millis(50),
            queue: Duration::from_millis(100),
            loss: 0.0,
            burst: 1.0,
            reorder: (0.0, Duration::ZERO),
            seed: 1,
            events: Vec::new(),
        }
    }

    /// The long link with random loss.
    pub fn lossy(loss: f64) -> Self {
        Self {
            loss,
            ..Self::long()
        }
    }
}

/// Traffic in one direction of a link, in bytes with headers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub offered: u64,
    pub queue_dropped: u64,
    pub lost: u64,
    pub delivered: u64,
    /// The longest time of a datagram in the queue.
    pub longest_queue: Duration,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Direction {
    spec: LinkSpec,
    forward: bool,
    rate: f64,
    mtu: usize,
    open: bool,
    start: Instant,
    next_event: usize,
    free_at: Instant,
    losing: bool,
    rng: ChaCha8Rng,
    pub counters: Counters,
}

impl Direction {
    pub fn new(spec: &LinkSpec, forward: bool) -> Self {
        let start = Instant::now();
        Self {
            rate: spec.rate,
            mtu: 1500,
            open: true,
            start,
            next_event: 0,
            free_at: start,
            losing: false,
            rng: ChaCha8Rng::seed_from_u64(spec.seed * 2 + u64::from(forward)),
            spec: spec.clone(),
            forward,
            counters: Counters::default(),
        }
    }

    /// When a datagram of `bytes` that is sent now arrives; `None` if it is lost.
    pub fn carry(&mut self, bytes: usize) -> Option<Instant> {
        let now = Instant::now();
        self.pass_events(now);
        let bytes = bytes + HEADERS;
        self.counters.offered += bytes as u64;
        if !self.open || bytes > self.mtu || self.loses() {
            self.counters.lost += bytes as u64;
            return None;
        }
        let waiting = self.free_at.saturating_duration_since(now);
        if waiting > self.spec.queue {
            self.counters.queue_dropped += bytes as u64;
            return None;
        }
        self.counters.longest_queue = self.counters.longest_queue.max(waiting);
        self.counters.delivered += bytes as u64;
        self.free_at =
            self.free_at.max(now) + Duration::from_secs_f64(bytes as f64 * 8.0 / self.rate);
        let (share, late) = self.spec.reorder;
        let extra = if self.forward && share > 0.0 && self.draw() < share {
            late
        } else {
            Duration::ZERO
        };
        Some(self.free_at + self.spec.delay + extra)
    }

    fn pass_events(&mut self, now: Instant) {
        while let Some(&(at, event)) = self.spec.events.get(self.next_event) {
            if now < self.start + at {
                return;
            }
            self.next_event += 1;
            match event {
                Event::Rate(rate) => self.rate = rate,
                Event::Mtu(mtu) => self.mtu = mtu,
                Event::Forward(open) if self.forward => self.open = open,
                Event::Backward(open) if !self.forward => self.open = open,
                Event::Forward(_) | Event::Backward(_) => {}
            }
        }
    }

    /// Gilbert's two-state loss: the mean fraction is `loss`, the mean run is `burst`.
    fn loses(&mut self) -> bool {
        let loss = self.spec.loss;
        if !self.forward || loss == 0.0 {
            return false;
        }
        let leave = 1.0 / self.spec.burst;
        let enter = loss * leave / (1.0 - loss);
        // With runs of one this is independent loss, because the state ends before it is read.
        let losing = if self.spec.burst <= 1.0 {
            self.draw() < loss
        } else if self.losing {
            self.draw() >= leave
        } else {
            self.draw() < enter
        };
        self.losing = losing;
        losing
    }

    fn draw(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}
