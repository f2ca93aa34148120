//! Round-trip time and rate of each link, measured by pings and pushes.

use murmurate_protocol::PeerId;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Weight of the newest push in the smoothed rate. After two or three pushes it is replaced by
/// half.
const NEWEST: f64 = 0.25;

#[derive(Clone, Copy, Debug, Default)]
struct Meter {
    rtt: Option<Duration>,
    rate: Option<f64>,
    queueing: Option<f64>,
}

/// The measurements of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Round-trip time of the last ping.
    pub(crate) rtt: Option<Duration>,
    /// Bytes per second of pushes, smoothed.
    pub(crate) rate: Option<u64>,
    /// Time that pushes waited for their turn, smoothed.
    pub(crate) queueing: Option<Duration>,
}

fn smoothed(old: Option<f64>, newest: f64) -> f64 {
    old.map_or(newest, |old| NEWEST.mul_add(newest - old, old))
}

impl Meter {
    fn read(self) -> Option<(Duration, u64)> {
        Some((self.rtt?, self.rate.unwrap_or(0.0) as u64))
    }
}

/// The measurements of all links.
#[derive(Debug, Default)]
pub(crate) struct LinkMeters {
    links: Mutex<BTreeMap<PeerId, Meter>>,
}

impl LinkMeters {
    /// Adds the round-trip time of a ping. Returns it with the current rate in bytes per second.
    pub(crate) fn pinged(&self, peer: PeerId, rtt: Duration) -> Option<(Duration, u64)> {
        self.change(peer, |meter| meter.rtt = Some(rtt))
    }

    /// Adds an acknowledged push with its duration.
    pub(crate) fn pushed(
        &self,
        peer: PeerId,
        bytes: u64,
        took: Duration,
    ) -> Option<(Duration, u64)> {
        let newest = bytes as f64 / took.as_secs_f64().max(1e-6);
        self.change(peer, |meter| {
            meter.rate = Some(smoothed(meter.rate, newest));
        })
    }

    /// Adds the time that a push waited for its turn.
    pub(crate) fn queued(&self, peer: PeerId, waited: Duration) {
        self.change(peer, |meter| {
            meter.queueing = Some(smoothed(meter.queueing, waited.as_secs_f64()));
        });
    }

    /// The measurements of one link.
    pub(crate) fn read(&self, peer: PeerId) -> Reading {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let meter = links.get(&peer).copied().unwrap_or_default();
        let seconds = |s| Duration::try_from_secs_f64(s).unwrap_or_default();
        Reading {
            rtt: meter.rtt,
            rate: meter.rate.map(|rate| rate as u64),
            queueing: meter.queueing.map(seconds),
        }
    }

    /// Removes a link that is gone.
    pub(crate) fn forget(&self, peer: PeerId) {
        self.links
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&peer);
    }

    fn change(&self, peer: PeerId, f: impl FnOnce(&mut Meter)) -> Option<(Duration, u64)> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let meter = links.entry(peer).or_default();
        f(meter);
        meter.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_smoothed_and_waits_for_a_ping() {
        let meters = LinkMeters::default();
        let peer = PeerId::from_bytes([1; 32]);
        let second = Duration::from_secs(1);
        assert_eq!(meters.pushed(peer, 1000, second), None);
        let rtt = Duration::from_millis(3);
        assert_eq!(meters.pinged(peer, rtt), Some((rtt, 1000)));
        assert_eq!(meters.pushed(peer, 2000, second), Some((rtt, 1250)));
        meters.queued(peer, second);
        meters.queued(peer, Duration::ZERO);
        let read = meters.read(peer);
        assert_eq!((read.rtt, read.rate), (Some(rtt), Some(1250)));
        assert_eq!(read.queueing, Some(Duration::from_millis(750)));
        meters.forget(peer);
        assert_eq!(meters.read(peer), Reading::default());
        assert_eq!(meters.pinged(peer, rtt), Some((rtt, 0)));
    }
}
