//! What the network is told at the start, and why it may not start.

use libp2p::Multiaddr;
use libp2p::identity::Keypair;
use murmurate_net::congestion::{Congestion, MaxRate};
use murmurate_protocol::RunId;
use std::fmt;
use std::time::Duration;

/// How the network is set up.
#[derive(Clone, Debug)]
pub struct NetConfig {
    /// Who this peer is: an Ed25519 key.
    pub identity: Keypair,
    /// The run; part of Kademlia's protocol name and of records.
    pub run: RunId,
    /// Where to listen; none for a peer that only dials.
    pub listen: Vec<Multiaddr>,
    /// What others are told instead of where it listens.
    pub announce: Option<Vec<Multiaddr>>,
    /// Peers to join through, with or without `/p2p`.
    pub join: Vec<Multiaddr>,
    /// Whether to look for peers on the local network by mDNS.
    pub mdns: bool,
    /// Whether to relay for others: for daemons with a public address.
    pub relay: bool,
    /// How long a silent link is believed in. A killed peer is noticed within it; a busy machine
    /// must still get a keep-alive through.
    pub idle: Duration,
    /// How often an idle link gets a packet.
    pub keep_alive: Duration,
    /// What decides how fast QUIC sends.
    pub congestion: Congestion,
    /// The limits on what it sends. The handle can be kept, and they can be changed at any time.
    pub max_rate: MaxRate,
}

impl NetConfig {
    /// Listens and dials nowhere yet, without mDNS, and notices a dead peer within 5 s.
    pub fn new(identity: Keypair, run: RunId) -> Self {
        Self {
            identity,
            run,
            listen: Vec::new(),
            announce: None,
            join: Vec::new(),
            mdns: false,
            relay: false,
            idle: Duration::from_secs(5),
            keep_alive: Duration::from_secs(1),
            congestion: Congestion::default(),
            max_rate: MaxRate::default(),
        }
    }
}

/// An address that cannot be listened on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenFailure {
    /// The address.
    pub address: Multiaddr,
    /// Why, in words.
    pub reason: String,
}

impl fmt::Display for ListenFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.address, self.reason)
    }
}

/// Why the network does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The identity is not an Ed25519 key.
    #[error("the identity is no Ed25519 key (remove it and let a new one be made)")]
    Identity,
    /// None of the addresses can be listened on.
    #[error(
        "cannot listen on {} (another process may use the port: stop it, or choose other `listen` \
         addresses)",
        .failures.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    )]
    Listen {
        /// Every address with its reason.
        failures: Vec<ListenFailure>,
    },
    /// An encrypted transport could not be set up.
    #[error("cannot set up the {transport} transport: {reason}")]
    Transport {
        /// Which.
        transport: &'static str,
        /// Why.
        reason: String,
    },
    /// mDNS could not be set up.
    #[error("cannot set up mDNS (turn `mdns` off, or allow multicast on this machine)")]
    Mdns(#[source] std::io::Error),
}
