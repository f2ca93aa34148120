//! The cost of a transport beyond bytes over capacity: handshakes, slow start, retransmissions.
//!
//! - A new connection takes 2 round trips with TCP and TLS 1.3, 1 with QUIC (RFC 9000, section 7).
//! - Slow start: W = 10 packets (RFC 6928), doubled every round trip while W/RTT is below the rate.
//!   TCP repeats it after an idle second (RFC 5681, section 4.1, with the smallest timeout of RFC
//!   6298); QUIC keeps its window, so only the first transfer of a connection pays.
//! - Loss of packets with probability p bounds the rate by 1.22 MSS / (RTT sqrt(p)) (Mathis et al.
//!   1997), and 1/(1 - p) times as many bytes travel.
//!
//! Loss of messages: each control message and each attempt at a slice is lost with the same probability. Real
//! links retransmit packets. A peer notices a bad link by messages dropped from a full queue and by broken
//! streams, which this models.

use crate::random::Random;
use core::time::Duration;
use murmurate_protocol::Time;

const PACKET_BYTES: f64 = 1460.0;

const FIRST_WINDOW: f64 = 10.0;

/// Idle time after which a TCP connection repeats slow start.
const IDLE: Duration = Duration::from_secs(1);

/// The transport whose costs are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// No costs but one round trip to connect.
    #[default]
    Ideal,
    /// TCP with TLS 1.3.
    Tcp,
    /// QUIC.
    Quic,
}

impl Transport {
    /// Round trips from dialling to the first byte.
    pub(crate) const fn round_trips_to_connect(self) -> u32 {
        match self {
            Self::Ideal | Self::Quic => 1,
            Self::Tcp => 2,
        }
    }

    /// Set if a transfer at `now` starts with a small window.
    pub(crate) fn starts_slowly(self, last_used: Option<Time>, now: Time) -> bool {
        match self {
            Self::Ideal => false,
            Self::Tcp => last_used.is_none_or(|last| now.since(last) > IDLE),
            Self::Quic => last_used.is_none(),
        }
    }

    /// The time that slow start adds to a transfer of `bytes`, at a rate in bytes per second.
    ///
    /// After k doublings 2^k W bytes are in flight per round trip. K is the first k for which this
    /// reaches the rate or all bytes are sent. The result is K RTT - W (2^K - 1) / rate, at least
    /// 0.
    pub(crate) fn slow_start(self, bytes: f64, rate: f64, round_trip: Duration) -> Duration {
        let round_trip = round_trip.as_secs_f64();
        if self == Self::Ideal || round_trip == 0.0 || rate <= 0.0 {
            return Duration::ZERO;
        }
        let (mut window, mut sent, mut trips) = (FIRST_WINDOW * PACKET_BYTES, 0.0, 0.0);
        while window < rate * round_trip && sent + window < bytes {
            sent += window;
            window *= 2.0;
            trips += 1.0;
        }
        Duration::from_secs_f64((trips * round_trip - sent / rate).max(0.0))
    }

    /// The rate of one connection under loss, in bytes per second.
    pub(crate) fn rate_under_loss(self, loss: f64, round_trip: Duration) -> f64 {
        let round_trip = round_trip.as_secs_f64();
        if self == Self::Ideal || loss <= 0.0 || round_trip == 0.0 {
            return f64::INFINITY;
        }
        1.22 * PACKET_BYTES / (round_trip * loss.sqrt())
    }
}

/// Independent loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// In `[0, 1)`.
    pub(crate) probability: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Arrives, and so does its acknowledgement.
    Arrives,
    /// Never arrives; the sender notices after its time-out.
    Lost,
    /// Arrives, but this number of acknowledgements is lost before one arrives.
    Unheard(u32),
}

impl Loss {
    /// Draws the loss of one message.
    pub(crate) fn strikes(&self, random: &mut Random) -> bool {
        random.chance(self.probability)
    }

    pub(crate) fn fate(&self, random: &mut Random) -> Fate {
        if self.strikes(random) {
            return Fate::Lost;
        }
        let mut lost = 0;
        while self.strikes(random) {
            lost += 1;
        }
        match lost {
            0 => Fate::Arrives,
            lost => Fate::Unheard(lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    const TRIP: Duration = Duration::from_millis(100);

    #[test]
    fn a_window_opens_by_doubling() {
        // 14.6 kB, 29.2, 58.4, 116.8 kB: the fourth fills 1 MB/s over 0.1 s.
        let extra = Transport::Tcp.slow_start(1e6, 1e6, TRIP).as_secs_f64();
        assert!((extra - (0.3 - 0.1022)).abs() < 1e-9, "{extra}");
        // A transfer within the first window costs nothing.
        assert!(Transport::Tcp.slow_start(14_000.0, 1e6, TRIP).is_zero());
        assert!(Transport::Ideal.slow_start(1e9, 1e9, TRIP).is_zero());
        assert!(
            Transport::Quic
                .slow_start(1e9, 1e9, Duration::ZERO)
                .is_zero()
        );
    }

    #[test]
    fn quic_starts_slowly_once_and_tcp_after_each_pause() {
        let at = |s: u64| Time::from_nanos(s * 1_000_000_000);
        assert!(Transport::Quic.starts_slowly(None, at(9)));
        assert!(!Transport::Quic.starts_slowly(Some(at(1)), at(9)));
        assert!(Transport::Tcp.starts_slowly(Some(at(1)), at(9)));
        assert!(!Transport::Tcp.starts_slowly(Some(at(9)), at(9)));
        assert!(!Transport::Ideal.starts_slowly(None, at(9)));
    }

    #[test]
    fn loss_bounds_the_rate_by_mathis() {
        // 1.22 * 1460 / (0.1 * 0.1) = 178,120.
        let rate = Transport::Tcp.rate_under_loss(0.01, TRIP);
        assert!((rate - 178_120.0).abs() < 1e-6, "{rate}");
        assert_eq!(Transport::Tcp.rate_under_loss(0.0, TRIP), f64::INFINITY);
    }

    #[test]
    fn fates_come_with_their_probabilities() {
        let loss = Loss { probability: 0.2 };
        let mut random = Random::new(3, Purpose::Network);
        let fates: Vec<_> = (0..20_000).map(|_| loss.fate(&mut random)).collect();
        let share = |wanted: fn(&Fate) -> bool| {
            fates.iter().filter(|fate| wanted(fate)).count() as f64 / fates.len() as f64
        };
        // Five standard errors of a share of 0.2 over 20,000 draws are 0.015.
        assert!((share(|f| *f == Fate::Lost) - 0.2).abs() < 0.015);
        assert!((share(|f| matches!(f, Fate::Unheard(_))) - 0.16).abs() < 0.015);
    }

    #[test]
    fn a_perfect_network_loses_nothing() {
        let mut random = Random::new(3, Purpose::Network);
        assert_eq!(Loss { probability: 0.0 }.fate(&mut random), Fate::Arrives);
    }
}
