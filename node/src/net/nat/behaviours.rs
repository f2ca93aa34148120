//! libp2p's protocols for peers behind routers, combined into one behaviour.

use crate::net::NetConfig;
use crate::net::gate::Members;
use crate::net::nat::circuits;
use crate::net::nat::observed::Observed;
use crate::net::nat::quiet::Quiet;
use libp2p::identity::PeerId;
use libp2p::swarm::behaviour::ExternalAddrConfirmed;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::swarm::{FromSwarm, NetworkBehaviour};
use libp2p::{Multiaddr, autonat, dcutr, relay};

/// The protocols for peers behind routers.
#[derive(NetworkBehaviour)]
pub(in crate::net) struct Behaviours {
    /// Dials, and is dialled, through relays.
    client: relay::client::Behaviour,
    /// Relays for others, unless the configuration forbids it.
    server: Toggle<relay::Behaviour>,
    /// Replaces a relayed connection by a direct one (hole punching).
    punch: Quiet<dcutr::Behaviour>,
    /// Asks others to dial this daemon. Off if the configuration announces addresses.
    probe: Toggle<autonat::v2::client::Behaviour>,
    /// Dials others on request, from a port that differs from the one they know.
    prober: autonat::v2::server::Behaviour,
    /// Passes on the addresses at which others saw this daemon.
    pub(super) observed: Observed,
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
        let bounds = circuits::bounds(config);
        let server = bounds.map(|bounds| circuits::server(me, members, bounds));
        Self {
            client,
            server: server.into(),
            punch: Quiet(dcutr::Behaviour::new(me)),
            probe: (!told).then(autonat::v2::client::Behaviour::default).into(),
            prober: autonat::v2::server::Behaviour::default(),
            observed: Observed::default(),
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
