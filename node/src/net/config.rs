//! Configuration of the network, and the errors of its start.

use crate::descriptors::TooFew;
use crate::net::{Membership, Proxy};
use crate::ports::Ports;
use libp2p::Multiaddr;
use libp2p::identity::Keypair;
use murmurate_net::congestion::{Congestion, MaxRate};
use murmurate_net::tcp::BulkChoice;
use murmurate_protocol::wire::WireVersions;
use murmurate_protocol::{Locality, RunId};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Configuration of the network.
#[derive(Clone, Debug)]
pub struct NetConfig {
    /// This peer's Ed25519 key.
    pub identity: Keypair,
    /// The run's id, which is part of peer records.
    pub run: RunId,
    /// This daemon's membership: only members are linked.
    pub membership: Arc<Membership>,
    /// Addresses to listen on; empty for a peer that only dials.
    pub listen: Vec<Multiaddr>,
    /// The ports that this daemon had before, for addresses that leave the port to the system.
    pub ports: Ports,
    /// Addresses to announce instead of the listening addresses.
    pub announce: Option<Vec<Multiaddr>>,
    /// Peers to join through, with or without `/p2p`.
    pub join: Vec<Multiaddr>,
    /// Looks for peers on the local network by mDNS.
    pub mdns: bool,
    /// Relays for others, which requires a public address.
    pub relay: bool,
    /// Carries a few links of members that are linked with this daemon and cannot reach each
    /// other.
    pub carry_links: bool,
    /// How long a silent link is kept. Short enough to notice a killed peer, long enough for a
    /// keep-alive from a busy machine.
    pub idle: Duration,
    /// Time between keep-alive packets on an idle link.
    pub keep_alive: Duration,
    /// The congestion control of QUIC.
    pub congestion: Congestion,
    /// How bulk streams travel, and the TCP port of bulk over TLS: `None` takes the number of the UDP port if that is
    /// free.
    pub bulk: (BulkChoice, Option<u16>),
    /// Through which TCP connections to other machines go.
    pub proxy: Option<Proxy>,
    /// The largest UDP payload that is tried; `None` leaves it to the route.
    pub payload_max: Option<u16>,
    /// What this peer's record says of its place in the network at the start.
    pub locality: Locality,
    /// The versions of the wire that it speaks.
    pub wire: WireVersions,
    /// Limits on the sending rate. A clone of the handle can change them at any time.
    pub max_rate: MaxRate,
}

impl NetConfig {
    /// A configuration that neither listens nor dials, without mDNS, and that notices a dead peer
    /// within 5 s.
    pub fn new(identity: Keypair, membership: Arc<Membership>) -> Self {
        Self {
            identity,
            run: membership.run().id,
            membership,
            listen: Vec::new(),
            ports: Ports::default(),
            announce: None,
            join: Vec::new(),
            mdns: false,
            relay: false,
            carry_links: true,
            idle: Duration::from_secs(5),
            keep_alive: Duration::from_secs(1),
            congestion: Congestion::default(),
            bulk: (BulkChoice::default(), None),
            proxy: None,
            payload_max: None,
            locality: Locality::default(),
            wire: WireVersions::OURS,
            max_rate: MaxRate::default(),
        }
    }
}

/// A listening address that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenFailure {
    /// The address.
    pub address: Multiaddr,
    /// The system's reason.
    pub reason: String,
}

impl fmt::Display for ListenFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.address, self.reason)
    }
}

/// Why the network cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The identity is not an Ed25519 key.
    #[error("the identity is not an Ed25519 key (remove it, and a new one is made)")]
    Identity,
    /// None of the listening addresses can be used.
    #[error(
        "cannot listen on {} (another process may use the port: stop it, or choose other `listen` \
         addresses)",
        .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    )]
    Listen(Vec<ListenFailure>),
    #[error(
        "port {port} of {address} is in use by another process (stop it if it is another daemon, or \
         give another port in `network.listen`; 0 takes any free one)"
    )]
    PortTaken { address: Multiaddr, port: u16 },
    /// An encrypted transport cannot be set up.
    #[error("cannot set up the {transport} transport: {reason}")]
    Transport {
        transport: &'static str,
        reason: String,
    },
    /// The system lets this process open too few sockets.
    #[error(transparent)]
    Descriptors(#[from] TooFew),
    #[error("cannot set up mDNS (turn `mdns` off, or allow multicast on this machine)")]
    Mdns(#[source] std::io::Error),
}
