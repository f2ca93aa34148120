//! What a transport makes of a link: T(m) = hops * alpha + bytes * max(1 / (B h), c).
//!
//! B is the link's rate, h the share of a full packet that is payload, alpha the time of one hop,
//! and c the seconds of one CPU core for a byte. A core copies and sums while the card sends, so
//! the slower of the two sets the pace. RDMA has c = 0: the card reads and writes memory itself.

/// A transport over Ethernet or InfiniBand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transport {
    /// Its name.
    pub name: &'static str,
    /// Rate of the link, bytes per second.
    pub line: f64,
    /// Payload of a full packet.
    pub payload: f64,
    /// Bytes that a full packet takes on the wire beside its payload.
    pub overhead: f64,
    /// Microseconds of one hop of a collective.
    pub hop_us: f64,
    /// Nanoseconds of one core for a byte.
    pub cpu_ns_per_byte: f64,
}

/// Ethernet's preamble and gap (20), header and checksum (18), IPv4 (20), TCP with timestamps (32).
const TCP_OVERHEAD: f64 = 90.0;
const TCP_PAYLOAD: f64 = 1448.0;

/// InfiniBand's local route header (8), base transport header (12) and two checksums (6).
const IB_OVERHEAD: f64 = 26.0;

/// Ethernet (38), IPv4 (20), UDP (8), base transport header (12) and its checksum (4).
const ROCE_OVERHEAD: f64 = 82.0;

/// The largest payload of an RDMA packet.
const RDMA_PAYLOAD: f64 = 4096.0;

/// A hop through two sockets and the scheduler, as in `data/constants.toml`.
const TCP_HOP_US: f64 = 13.5;

/// A hop through two cards and their completion queues.
const RDMA_HOP_US: f64 = 3.0;

impl Transport {
    /// TCP with a core that spends this time on a byte.
    pub const fn tcp(line: f64, cpu_ns_per_byte: f64) -> Self {
        Self {
            name: "TCP",
            line,
            payload: TCP_PAYLOAD,
            overhead: TCP_OVERHEAD,
            hop_us: TCP_HOP_US,
            cpu_ns_per_byte,
        }
    }

    /// RDMA over InfiniBand.
    pub const fn infiniband(line: f64) -> Self {
        Self {
            name: "InfiniBand",
            line,
            payload: RDMA_PAYLOAD,
            overhead: IB_OVERHEAD,
            hop_us: RDMA_HOP_US,
            cpu_ns_per_byte: 0.0,
        }
    }

    /// RDMA over Converged Ethernet, version 2.
    pub const fn roce(line: f64) -> Self {
        Self {
            name: "RoCE v2",
            line,
            payload: RDMA_PAYLOAD,
            overhead: ROCE_OVERHEAD,
            hop_us: RDMA_HOP_US,
            cpu_ns_per_byte: 0.0,
        }
    }

    /// Bytes of payload per second.
    ///
    /// Special case: with c = 0 the wire alone sets the rate.
    pub fn rate(&self) -> f64 {
        let wire = (1.0 + self.overhead / self.payload) / self.line;
        1.0 / wire.max(self.cpu_ns_per_byte * 1e-9)
    }

    /// Seconds of a ring's all-reduce of this many bytes among `ranks`:
    /// 2 (n - 1) alpha + 2 (n - 1) / n * m / rate (Patarasuk and Yuan 2009).
    pub fn ring_seconds(&self, ranks: usize, bytes: f64) -> f64 {
        let hops = 2.0 * (ranks as f64 - 1.0);
        hops * self.hop_us * 1e-6 + hops / ranks as f64 * bytes / self.rate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_of_core_and_wire_sets_the_rate() {
        // 10 Gb/s carry 1448 of 1538 bytes; a core with 0.5 ns a byte would do 2 GB/s.
        let slow = Transport::tcp(1.25e9, 0.5);
        assert!((slow.rate() / 1.25e9 - 1448.0 / 1538.0).abs() < 1e-12);
        let fast = Transport::tcp(12.5e9, 0.5);
        assert!((fast.rate() / 2e9 - 1.0).abs() < 1e-12);
        // Without a core in the way ten times the wire is ten times the rate.
        let ratio = Transport::infiniband(12.5e9).rate() / Transport::infiniband(1.25e9).rate();
        assert!((ratio - 10.0).abs() < 1e-9);
        assert!(Transport::roce(12.5e9).rate() < Transport::infiniband(12.5e9).rate());
    }

    #[test]
    fn a_ring_of_one_takes_no_time_and_of_two_sends_its_message_once() {
        let tcp = Transport::tcp(1.25e9, 0.0);
        assert_eq!(tcp.ring_seconds(1, 1e9), 0.0);
        let two = tcp.ring_seconds(2, 1e9) - 2.0 * tcp.hop_us * 1e-6;
        assert!((two * tcp.rate() / 1e9 - 1.0).abs() < 1e-12);
    }
}
