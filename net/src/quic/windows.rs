//! Flow-control windows: how much data may be in flight or wait, from the product of bandwidth and
//! delay.
//!
//! A sender stops when a receive window is full, so a connection carries at most window / RTT. The
//! congestion window is a separate limit, which follows the capacity of the path.

use std::time::Duration;

const MIB: u64 = 1 << 20;

/// The windows of an endpoint's connections, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Received and unread bytes of one stream.
    pub stream: u64,
    /// Received and unread bytes of a control connection.
    pub control: u64,
    /// Received and unread bytes of a bulk connection.
    pub bulk: u64,
    /// Written and unacknowledged bytes of a bulk connection. A control connection's send window is
    /// at most its receive window, because libp2p streams copy what they write, and a large window
    /// of copies does not fit the processor's caches.
    pub send: u64,
}

impl Windows {
    /// The smallest window. With a smaller one, small messages would wait for each other.
    pub const MIN: u64 = MIB;
    /// The largest window of a stream, and half of the largest window of a connection.
    pub const MAX: u64 = 512 * MIB;

    /// Windows with which one stream fills a path: stream = 2 x rate x RTT. This is twice the
    /// product of bandwidth and delay, because lost data waits for its retransmission while other
    /// data continues to arrive. A bulk connection gets twice that. Clamped to [`Windows::MIN`] and
    /// [`Windows::MAX`] for a stream.
    #[must_use]
    pub fn for_path(bits_per_second: u64, rtt: Duration) -> Self {
        let bytes = u128::from(bits_per_second) / 8;
        let product = bytes.saturating_mul(rtt.as_micros()) / 1_000_000;
        let stream = u64::try_from(product.saturating_mul(2)).unwrap_or(Self::MAX);
        let stream = stream.clamp(Self::MIN, Self::MAX);
        Self {
            stream,
            bulk: stream * 2,
            send: stream,
            ..Self::default()
        }
    }
}

impl Default for Windows {
    /// 64 MiB for a stream: 5 Gbit/s at 100 ms.
    fn default() -> Self {
        Self {
            stream: 64 * MIB,
            control: 8 * MIB,
            bulk: 128 * MIB,
            send: 64 * MIB,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_twice_the_product_of_bandwidth_and_delay() {
        // 1 Gbit/s x 100 ms = 12.5 MB.
        let windows = Windows::for_path(1_000_000_000, Duration::from_millis(100));
        assert_eq!(windows.stream, 25_000_000);
        assert_eq!(windows.bulk, 50_000_000);
        assert_eq!(windows.send, 25_000_000);
    }

    #[test]
    fn windows_are_clamped_at_both_ends() {
        let slow = Windows::for_path(1_000_000, Duration::from_millis(1));
        assert_eq!(slow.stream, Windows::MIN);
        let absurd = Windows::for_path(u64::MAX, Duration::from_secs(u64::MAX));
        assert_eq!(absurd.stream, Windows::MAX);
    }
}
