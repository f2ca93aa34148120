//! The relay that a daemon runs for others, and its bounds.

use crate::net::gate::Members;
use libp2p::{Multiaddr, PeerId, relay};
use murmurate_protocol::limits::VIEW_PEERS_MAX;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// Peers that may be reachable through this daemon at the same time.
const RESERVATIONS_MAX: usize = VIEW_PEERS_MAX;

/// Reservations of one peer: one per connection, and one more while a connection is replaced.
const RESERVATIONS_PER_PEER_MAX: usize = 2;

/// Lifetime of a reservation. Its holder renews it before it ends.
const RESERVATION_LIFETIME: Duration = Duration::from_secs(3600);

/// Number of open circuits. A link has two if both ends dialled, so this suffices for a group of
/// sixteen daemons of which no two can connect directly.
const CIRCUITS_MAX: usize = 256;

/// Open circuits of one peer, as source and as destination.
const CIRCUITS_PER_PEER_MAX: usize = 32;

/// Bytes of one circuit in both directions. A circuit carries the slices of all rounds: at 400 MB
/// per round (a hundred million parameters as f32) this lasts for 640 rounds.
const CIRCUIT_BYTES_MAX: u64 = 256 << 30;

/// Lifetime of one circuit. Its ends then open another one.
const CIRCUIT_LIFETIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// Requests of each kind that one peer may make in a burst; one more is allowed every second.
const REQUESTS_BURST: NonZeroU32 = NonZeroU32::new(60).expect("60 is not zero");

/// Time after which one more request is allowed.
const REQUESTS_EVERY: Duration = Duration::from_secs(1);

/// A relay for `members` with these bounds.
pub(super) fn server(me: PeerId, members: &Members) -> relay::Behaviour {
    let only = || -> Box<dyn relay::RateLimiter> {
        let members = members.clone();
        Box::new(move |peer: PeerId, _: &Multiaddr, _: Instant| members.has(&peer))
    };
    let config = relay::Config {
        max_reservations: RESERVATIONS_MAX,
        max_reservations_per_peer: RESERVATIONS_PER_PEER_MAX,
        reservation_duration: RESERVATION_LIFETIME,
        reservation_rate_limiters: vec![only()],
        max_circuits: CIRCUITS_MAX,
        max_circuits_per_peer: CIRCUITS_PER_PEER_MAX,
        max_circuit_duration: CIRCUIT_LIFETIME_MAX,
        max_circuit_bytes: CIRCUIT_BYTES_MAX,
        circuit_src_rate_limiters: vec![only()],
    };
    let config = config
        .reservation_rate_per_peer(REQUESTS_BURST, REQUESTS_EVERY)
        .circuit_src_per_peer(REQUESTS_BURST, REQUESTS_EVERY);
    let mut server = relay::Behaviour::new(me, config);
    // The operator knows that this daemon is reachable; libp2p would wait for a proof.
    server.set_status(Some(relay::Status::Enable));
    server
}
