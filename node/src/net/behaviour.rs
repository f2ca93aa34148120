//! The libp2p swarm: its transports, and the behaviours for links and discovery.

use super::unproven::{Bounded, Unproven};
use crate::net::gate::{Gated, Members};
use crate::net::nat::{self, Behaviours};
use crate::net::proxy::Tcp;
use crate::net::quic::{HANDSHAKE_WAIT, STREAMS_PER_CONNECTION_MAX};
use crate::net::streams::Streams;
use crate::net::wiretap::Wiretap;
use crate::net::{NetConfig, NetError};
use crate::traffic::WireCells;
use libp2p::connection_limits::{self, ConnectionLimits};
use libp2p::core::Transport;
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::core::transport::Boxed;
use libp2p::core::upgrade::Version;
use libp2p::identity::PeerId;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::swarm::{NetworkBehaviour, Swarm};
use libp2p::{identify, mdns, noise, ping, relay, swarm, tcp, yamux};
use murmurate_net::quic;
use murmurate_protocol::limits::VIEW_PEERS_MAX;
use std::sync::Arc;
use std::time::Duration;

/// Connections to one peer: two for a simultaneous dial, two relayed ones that they replace, one
/// for a restarted peer, and one that tests whether this daemon can be dialled.
const CONNECTIONS_PER_PEER_MAX: u32 = 6;

pub(super) const HANDSHAKES_MAX: u32 = 64;

/// How often a link is pinged. The first ping goes out at once.
const PING_EVERY: Duration = Duration::from_secs(5);

/// All protocols that run over a connection. Strangers see only the streams of the gate and ping.
#[derive(NetworkBehaviour)]
pub(super) struct Behaviour {
    limits: connection_limits::Behaviour,
    /// The gate, and control and bulk streams of members.
    pub(super) streams: Streams,
    ping: ping::Behaviour,
    pub(super) mdns: Toggle<mdns::tokio::Behaviour>,
    /// What members speak in addition.
    pub(super) gated: Gated<MembersOnly>,
}

#[derive(NetworkBehaviour)]
pub(super) struct MembersOnly {
    identify: identify::Behaviour,
    /// Relays, hole punching, and tests of whether others can dial this daemon.
    pub(super) nat: Behaviours,
}

/// Builds the swarm. Must be called inside a tokio runtime.
pub(super) fn swarm(
    config: &NetConfig,
    quic: quic::Transport,
    cells: &Arc<WireCells>,
    (members, unproven): (&Members, &Unproven),
) -> Result<Swarm<Behaviour>, NetError> {
    let me = config.identity.public().to_peer_id();
    let (relayed, client) = relay::client::new(me);
    let transport = transport(config, quic, (Arc::clone(cells), unproven), relayed)?;
    let nat = Behaviours::new(config, me, client, members);
    let behaviour = behaviour(config, me, nat, members)?;
    let swarm_config = swarm::Config::with_tokio_executor()
        .with_max_negotiating_inbound_streams(STREAMS_PER_CONNECTION_MAX as usize);
    Ok(Swarm::new(transport, behaviour, me, swarm_config))
}

fn transport(
    config: &NetConfig,
    quic: quic::Transport,
    (cells, unproven): (Arc<WireCells>, &Unproven),
    relayed: relay::client::Transport,
) -> Result<Boxed<(PeerId, StreamMuxerBox)>, NetError> {
    let noise = noise::Config::new(&config.identity).map_err(|error| NetError::Transport {
        transport: "noise",
        reason: error.to_string(),
    })?;
    let (allowances, places) = (&unproven.allowances, unproven.places);
    let mut yamux = yamux::Config::default();
    yamux.set_max_num_streams(STREAMS_PER_CONNECTION_MAX as usize);
    let limits = allowances.clone();
    // The wiretap does not count these bytes, because the connection to the relay counts them.
    let relayed = relayed
        .map(move |connection, point| limits.limit(connection, &point))
        .upgrade(Version::V1Lazy)
        .authenticate(noise.clone())
        .multiplex(yamux.clone())
        .timeout(HANDSHAKE_WAIT)
        .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)));
    let relayed = Bounded::new(relayed.boxed(), places);
    let limits = allowances.clone();
    let tcp = Tcp::new(tcp::Config::default().nodelay(true), config.proxy.clone())
        .map(move |socket, point| limits.limit(socket, &point))
        .upgrade(Version::V1Lazy)
        .authenticate(noise)
        .multiplex(yamux)
        .timeout(HANDSHAKE_WAIT)
        .map(move |(peer, muxer), _| {
            // The sockets count the bytes of QUIC.
            let tapped = Wiretap::new(StreamMuxerBox::new(muxer), Arc::clone(&cells));
            (peer, StreamMuxerBox::new(tapped))
        });
    let tcp = Bounded::new(tcp.boxed(), places);
    let quic = quic.map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)));
    let both = quic.or_transport(tcp).map(|either, _| either.into_inner());
    // The relay transport comes first, because the others would accept a relayed address as theirs.
    let all = relayed.or_transport(both);
    Ok(all.map(|either, _| either.into_inner()).boxed())
}

fn behaviour(
    config: &NetConfig,
    me: PeerId,
    nat: Behaviours,
    members: &Members,
) -> Result<Behaviour, NetError> {
    let connections = u32::try_from(VIEW_PEERS_MAX).unwrap_or(u32::MAX);
    let limits = ConnectionLimits::default()
        .with_max_pending_outgoing(Some(HANDSHAKES_MAX))
        .with_max_established(Some(CONNECTIONS_PER_PEER_MAX.saturating_mul(connections)))
        .with_max_established_per_peer(Some(CONNECTIONS_PER_PEER_MAX));
    let identify = identify::Config::new("/murmurate/1".to_owned(), config.identity.public())
        .with_agent_version(nat::agent(config))
        .with_push_listen_addr_updates(true)
        .with_hide_listen_addrs(config.announce.is_some())
        .with_cache_size(0);
    let mdns = if config.mdns {
        Some(mdns::tokio::Behaviour::new(mdns::Config::default(), me).map_err(NetError::Mdns)?)
    } else {
        None
    };
    let members_only = MembersOnly {
        identify: identify::Behaviour::new(identify),
        nat,
    };
    Ok(Behaviour {
        limits: connection_limits::Behaviour::new(limits),
        streams: Streams::default(),
        ping: ping::Behaviour::new(ping::Config::new().with_interval(PING_EVERY)),
        mdns: mdns.into(),
        gated: Gated::new(members_only, members.clone()),
    })
}
