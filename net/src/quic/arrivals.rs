//! Limits how often each source address may try to connect, by token buckets in a table of fixed
//! size.
//!
//! Source addresses can be forged, so nothing is stored for each of them. `registry` limits peers
//! that have proved their identity.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;

/// Buckets in the table. Sources that share a bucket share its rate. A random key decides which do,
/// so that an attacker cannot choose.
const SLOTS: usize = 4096;

#[derive(Clone, Copy)]
struct Bucket {
    tokens: f64,
    filled: Instant,
}

/// A token bucket for each source address, with `rate` tokens per second and at most `burst`.
pub(crate) struct Arrivals {
    rate: f64,
    burst: f64,
    hasher: RandomState,
    buckets: Mutex<Vec<Bucket>>,
}

impl Arrivals {
    pub(crate) fn new(per_second: u32, burst: u32, now: Instant) -> Self {
        let burst = f64::from(burst.max(1));
        let full = Bucket {
            tokens: burst,
            filled: now,
        };
        Self {
            rate: f64::from(per_second),
            burst,
            hasher: RandomState::new(),
            buckets: Mutex::new(vec![full; SLOTS]),
        }
    }

    /// Takes a token of the source. Returns false if it has none.
    pub(crate) fn take(&self, source: IpAddr, now: Instant) -> bool {
        let slot = self.hasher.hash_one(site(source)) % SLOTS as u64;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bucket) = usize::try_from(slot).ok().and_then(|i| buckets.get_mut(i)) else {
            return false;
        };
        let gone = now.saturating_duration_since(bucket.filled).as_secs_f64();
        bucket.tokens = (bucket.tokens + gone * self.rate).min(self.burst);
        bucket.filled = now;
        if bucket.tokens < 1.0 {
            return false;
        }
        bucket.tokens -= 1.0;
        true
    }
}

/// The unit that counts as one source: an IPv4 address, or an IPv6 /64, which a site usually has.
fn site(source: IpAddr) -> u64 {
    match source.to_canonical() {
        IpAddr::V4(ip) => u64::from(u32::from(ip)),
        // The upper 64 bits.
        IpAddr::V6(ip) => (u128::from(ip) >> 64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_source_gets_its_burst_and_then_its_rate() {
        let start = Instant::now();
        let arrivals = Arrivals::new(10, 3, start);
        let source: IpAddr = "192.0.2.1".parse().unwrap();
        assert_eq!((0..9).filter(|_| arrivals.take(source, start)).count(), 3);
        let later = start + Duration::from_millis(250);
        assert_eq!((0..9).filter(|_| arrivals.take(source, later)).count(), 2);
        let much_later = start + Duration::from_secs(3600);
        let got = (0..9).filter(|_| arrivals.take(source, much_later)).count();
        assert_eq!(got, 3, "a pause gives no more than the burst");
    }

    #[test]
    fn one_ipv6_site_is_one_source() {
        let start = Instant::now();
        let arrivals = Arrivals::new(1, 2, start);
        let got = (0..100u16)
            .filter(|i| {
                let ip = IpAddr::from([0x2001, 0xdb8, 0, 7, 0, 0, 0, *i]);
                arrivals.take(ip, start)
            })
            .count();
        assert_eq!(got, 2);
        assert_ne!(
            site("2001:db8:0:7::1".parse().unwrap()),
            site("2001:db8:0:8::1".parse().unwrap())
        );
        assert_eq!(
            site("::ffff:192.0.2.1".parse().unwrap()),
            site("192.0.2.1".parse().unwrap())
        );
    }

    #[test]
    fn the_table_does_not_grow_with_sources() {
        let start = Instant::now();
        let arrivals = Arrivals::new(1, 1, start);
        for ip in 0..100_000u32 {
            arrivals.take(IpAddr::from(ip.to_be_bytes()), start);
        }
        assert_eq!(arrivals.buckets.lock().unwrap().len(), SLOTS);
    }
}
