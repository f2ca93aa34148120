//! libp2p's protocols for peers behind routers, combined into one behaviour, with the bounds of the relay that a daemon
//! runs for others.

use crate::net::NetConfig;
use crate::net::gate::{Gated, Members};
use libp2p::swarm::behaviour::ExternalAddrConfirmed;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::swarm::{FromSwarm, NetworkBehaviour};
use libp2p::{Multiaddr, PeerId, autonat, dcutr, relay};
use murmurate_protocol::limits::VIEW_PEERS_MAX;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// The protocols for peers behind routers.
#[derive(NetworkBehaviour)]
pub(in crate::net) struct Behaviours {
    /// Dials, and is dialled, through relays.
    client: relay::client::Behaviour,
    /// Relays for others, unless the configuration forbids it.
    server: Toggle<relay::Behaviour>,
    /// Replaces a relayed connection by a direct one (hole punching).
    punch: Gated<dcutr::Behaviour>,
    /// Asks others to dial this daemon. Off if the configuration announces addresses.
    probe: Toggle<autonat::v2::client::Behaviour>,
    /// Dials others on request, from a port that differs from the one they know.
    prober: autonat::v2::server::Behaviour,
}

impl Behaviours {
    /// Builds the protocols for the daemon `me`. `client` belongs to the relay transport; the
    /// daemon relays only for `members`.
    pub(in crate::net) fn new(
        config: &NetConfig,
        me: PeerId,
        client: relay::client::Behaviour,
        members: &Members,
    ) -> Self {
        let told = config.announce.as_ref().is_some_and(|all| !all.is_empty());
        let server = bounds(config).map(|bounds| server(me, members, bounds));
        Self {
            client,
            server: server.into(),
            punch: Gated::quiet(dcutr::Behaviour::new(me)),
            probe: (!told).then(autonat::v2::client::Behaviour::default).into(),
            prober: autonat::v2::server::Behaviour::default(),
        }
    }

    /// Tells those who reserve here that others can dial this daemon at `address`. libp2p confirms no
    /// address of a daemon that no one tested.
    pub(in crate::net) fn serves_at(&mut self, address: &Multiaddr) {
        if let Some(server) = self.server.as_mut() {
            let event = ExternalAddrConfirmed { addr: address };
            server.on_swarm_event(FromSwarm::ExternalAddrConfirmed(event));
        }
    }
}

/// What a relay carries at most at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Peers that may be reachable through this daemon.
    reservations: usize,
    circuits: usize,
    /// Open circuits of one peer, as source and as destination.
    circuits_per_peer: usize,
}

/// A daemon that is there to relay. A link has two circuits if both ends dialled, so this suffices for a
/// group of sixteen daemons of which no two can connect directly.
pub(super) const FOR_ALL: Bounds = Bounds {
    reservations: VIEW_PEERS_MAX,
    circuits: 256,
    circuits_per_peer: 32,
};

/// A daemon that takes part, and carries a few links of members that it is linked with: its own bytes
/// come first.
const FOR_LINKED: Bounds = Bounds {
    reservations: 64,
    circuits: 32,
    circuits_per_peer: 4,
};

/// Reservations of one peer: one per connection, and one more while a connection is replaced.
const RESERVATIONS_PER_PEER_MAX: usize = 2;

/// Lifetime of a reservation. Its holder renews it before it ends.
const RESERVATION_LIFETIME: Duration = Duration::from_secs(3600);

/// Bytes of one circuit in both directions. A circuit carries the slices of all rounds: at 400 MB
/// per round (a hundred million parameters as f32) this lasts for 640 rounds.
const CIRCUIT_BYTES_MAX: u64 = 256 << 30;

/// Lifetime of one circuit. Its ends then open another one.
const CIRCUIT_LIFETIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// Requests of each kind that one peer may make in a burst; one more is allowed every second.
const REQUESTS_BURST: NonZeroU32 = NonZeroU32::new(60).expect("60 is not zero");

/// Time after which one more request is allowed.
const REQUESTS_EVERY: Duration = Duration::from_secs(1);

/// The bounds of the relay that a daemon runs, if it runs one. One that announces no address has none to
/// tell those who reserve.
pub(super) fn bounds(config: &NetConfig) -> Option<Bounds> {
    let nowhere = config.announce.as_ref().is_some_and(Vec::is_empty);
    if config.relay {
        return Some(FOR_ALL);
    }
    (config.carry_links && !nowhere).then_some(FOR_LINKED)
}

/// How a daemon describes itself to members (identify): as one that is there to relay, or as any other.
pub(in crate::net) fn agent(config: &NetConfig) -> String {
    let agent = if config.relay { RELAY } else { MEMBER };
    agent.to_owned()
}

/// The name of a daemon that is there to relay.
pub(super) const RELAY: &str = "murmurate-relay";

/// The name of any other daemon.
const MEMBER: &str = "murmurate";

pub(super) fn server(me: PeerId, members: &Members, bounds: Bounds) -> relay::Behaviour {
    let only = || -> Box<dyn relay::RateLimiter> {
        let members = members.clone();
        Box::new(move |peer: PeerId, _: &Multiaddr, _: Instant| members.has(&peer))
    };
    let config = relay::Config {
        max_reservations: bounds.reservations,
        max_reservations_per_peer: RESERVATIONS_PER_PEER_MAX,
        reservation_duration: RESERVATION_LIFETIME,
        reservation_rate_limiters: vec![only()],
        max_circuits: bounds.circuits,
        max_circuits_per_peer: bounds.circuits_per_peer,
        max_circuit_duration: CIRCUIT_LIFETIME_MAX,
        max_circuit_bytes: CIRCUIT_BYTES_MAX,
        circuit_src_rate_limiters: vec![only()],
    };
    let config = config
        .reservation_rate_per_peer(REQUESTS_BURST, REQUESTS_EVERY)
        .circuit_src_per_peer(REQUESTS_BURST, REQUESTS_EVERY);
    let mut server = relay::Behaviour::new(me, config);
    // Those who reserve are linked already; libp2p would wait for a proof that others can dial it.
    server.set_status(Some(relay::Status::Enable));
    server
}
