//! In-network aggregation: switches sum what their ports send (SwitchML, Sapio et al. 2019, arXiv
//! 1903.06701; ATP, Lao et al., NSDI 2021; SHARP, Graham et al. 2016 and 2020).
//!
//! Every host sends its message up once and receives the sum once, both at the same time:
//! T(m) = 2 d a + m / min(B h, s p / r), with d levels of switches of a seconds, link rate B,
//! payload share h, and s slots of p bytes that are in use for one round trip r. A ring sends
//! 2 (n - 1) / n messages instead.

/// A tree of switches that sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Switch {
    /// Rate of a host's link, bytes per second.
    pub line: f64,
    /// Payload bytes of one packet.
    pub payload: f64,
    /// Bytes of a packet on the wire beside its payload.
    pub overhead: f64,
    /// Slots: packets that a switch holds at once for a job.
    pub slots: u32,
    /// Microseconds from sending a packet until its sum arrives.
    pub round_trip_us: f64,
    /// Levels of switches between host and root.
    pub levels: u32,
    /// Microseconds of one level, one way.
    pub level_us: f64,
}

impl Switch {
    /// Bytes of sums per second and host.
    ///
    /// Special case: few slots and a long round trip leave the link idle.
    pub fn rate(&self) -> f64 {
        let wire = self.line * self.payload / (self.payload + self.overhead);
        let window = f64::from(self.slots) * self.payload / (self.round_trip_us * 1e-6);
        wire.min(window)
    }

    /// Seconds of an all-reduce. They do not depend on the number of hosts.
    pub fn seconds(&self, bytes: f64) -> f64 {
        2.0 * f64::from(self.levels) * self.level_us * 1e-6 + bytes / self.rate()
    }
}

/// Sums of 32-bit integers in place of floats, as programmable switches compute them (SwitchML,
/// section on floating point): x becomes round(f x), the switch adds, hosts divide by f.
///
/// The error of a sum is at most n / (2 f). No sum overflows while f <= (2^31 - n) / (n b), where b
/// bounds the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedPoint {
    factor: f64,
    hosts: u32,
}

impl FixedPoint {
    /// The largest factor that `hosts` values of at most `bound` allow.
    ///
    /// Special case: a bound of zero or less needs no scaling, and the factor is one.
    pub fn largest(hosts: u32, bound: f64) -> Self {
        let n = f64::from(hosts);
        let factor = if bound > 0.0 {
            (f64::from(1u32 << 31) - n) / (n * bound)
        } else {
            1.0
        };
        Self { factor, hosts }
    }

    /// The largest error of a sum.
    pub fn error(&self) -> f64 {
        f64::from(self.hosts) / (2.0 * self.factor)
    }

    /// The sum as the switch computes it. `None` if an integer overflowed on the way.
    pub fn sum(&self, values: &[f64]) -> Option<f64> {
        let mut total = 0i32;
        for value in values {
            let scaled = (self.factor * value).round();
            let inside = scaled.abs() <= f64::from(i32::MAX);
            total = inside.then(|| total.checked_add(scaled as i32))??;
        }
        Some(f64::from(total) / self.factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::Transport;

    fn tofino(slots: u32) -> Switch {
        Switch {
            line: 1.25e9,
            payload: 1024.0,
            overhead: 90.0,
            slots,
            round_trip_us: 50.0,
            levels: 1,
            level_us: 1.0,
        }
    }

    #[test]
    fn a_switch_saves_what_a_ring_sends_twice() {
        let (switch, bytes) = (tofino(1 << 12), 1e9);
        for ranks in [2usize, 8, 64] {
            let ring = Transport {
                payload: switch.payload,
                overhead: switch.overhead,
                ..Transport::tcp(switch.line, 0.0)
            };
            let gain = ring.ring_seconds(ranks, bytes) / switch.seconds(bytes);
            let share = 2.0 * (ranks as f64 - 1.0) / ranks as f64;
            // The hops of the ring add at most 126 * 13.5 us to a second and a half.
            assert!((gain / share - 1.0).abs() < 2e-3, "{ranks}: {gain}");
        }
    }

    #[test]
    fn too_few_slots_leave_the_link_idle() {
        // A round trip of the link's rate holds 61 packets of 1024 bytes.
        assert!(tofino(30).rate() < 0.55 * tofino(64).rate());
        assert_eq!(tofino(64).rate(), tofino(128).rate());
    }

    #[test]
    fn integers_stay_within_the_bound_and_do_not_overflow() {
        let mut state = 7u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as f64 / f64::from(1u32 << 30) - 1.0
        };
        for hosts in [1u32, 2, 8, 32] {
            let fixed = FixedPoint::largest(hosts, 3.0);
            for _ in 0..200 {
                let values: Vec<f64> = (0..hosts).map(|_| 3.0 * next()).collect();
                let exact: f64 = values.iter().sum();
                let found = fixed.sum(&values).expect("the factor allows no overflow");
                assert!(
                    (found - exact).abs() <= fixed.error() * (1.0 + 1e-9),
                    "{hosts}"
                );
            }
            // The largest values of one sign are the worst case.
            let worst = vec![3.0; hosts as usize];
            assert!(fixed.sum(&worst).is_some(), "{hosts}");
        }
        // Twice the bound overflows with as many hosts.
        assert!(FixedPoint::largest(8, 3.0).sum(&[6.1; 8]).is_none());
    }
}
