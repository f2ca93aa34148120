//! Bounds on the resources that remotes can use. `admission` decides which peers may connect.

/// The bounds of an endpoint. The documentation of the module `quic` adds up their memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Inbound handshakes at a time. Above half of it, a dialling peer must first prove that it
    /// receives at its address (a QUIC Retry, one more round trip), so that forged sources cannot
    /// use all of them. One more ends the oldest of the network that has most
    /// ([`Places`](crate::places::Places)).
    pub handshakes_max: usize,
    /// Connection attempts per second from one source address (IPv6: one /64) that are answered.
    pub attempts_per_second: u32,
    /// Connection attempts from one source address that are answered in a burst.
    pub attempts_burst: u32,
    /// Established connections, of both kinds and directions.
    pub connections_max: usize,
    /// Control connections of one peer: two for a simultaneous dial, one for a restarted peer, one
    /// spare.
    pub control_per_peer: usize,
    /// Bulk connections of one peer. Striping over several connections needs more.
    pub bulk_per_peer: usize,
    /// Control connections that may wait for the swarm.
    pub inbound_queue: usize,
    /// Bulk connections that may wait for [`Endpoint::accept_bulk`](super::Endpoint::accept_bulk).
    pub bulk_queue: usize,
    /// Hole punches at a time.
    pub punches_max: usize,
}

/// Bounds of a control connection until [`Endpoint::prove`](super::Endpoint::prove): anyone can open one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unproven {
    /// Received and unread bytes.
    pub window: u64,
    /// Streams that the remote may have open.
    pub streams: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshakes_max: 256,
            attempts_per_second: 64,
            attempts_burst: 512,
            connections_max: 2048,
            control_per_peer: 4,
            bulk_per_peer: 2,
            inbound_queue: 256,
            bulk_queue: 64,
            punches_max: 64,
        }
    }
}
