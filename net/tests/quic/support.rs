//! Endpoints and swarms for the tests.

use crate::echo::{self, Echoed};
use futures::StreamExt;
use futures::future::poll_fn;
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::core::transport::{Boxed, DialOpts, ListenerId, PortUse, TransportEvent};
use libp2p::core::{Endpoint as Role, Transport as _};
use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::{self, NetworkBehaviour, Swarm, SwarmEvent};
use libp2p::{Multiaddr, PeerId, identify, ping};
use murmurate_net::quic::{Config, Endpoint, Error, Kind, Muxer, Transport};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Ends a test that hangs.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what)
        .await
        .expect("the test hangs")
}

/// An endpoint that admits every peer.
pub(crate) struct Node {
    pub(crate) endpoint: Endpoint,
    pub(crate) transport: Transport,
    pub(crate) peer: PeerId,
}

pub(crate) fn node(config: Config) -> Node {
    node_of(&Keypair::generate_ed25519(), config)
}

pub(crate) fn node_of(identity: &Keypair, config: Config) -> Node {
    let admit_all = |_: &PeerId, _: Kind| true;
    let made = Endpoint::new(config, identity, Arc::new(admit_all));
    let (endpoint, transport) = made.expect("the settings are valid");
    Node {
        peer: endpoint.local_peer_id(),
        endpoint,
        transport,
    }
}

impl Node {
    /// Listens on loopback without a swarm.
    pub(crate) fn listen(&self) -> Multiaddr {
        let local = self.endpoint.listen(([127, 0, 0, 1], 0).into()).unwrap();
        murmurate_net::quic::multiaddr_of(local)
    }

    /// Dials through the transport.
    pub(crate) fn dial(
        &mut self,
        addr: &Multiaddr,
        role: Role,
    ) -> impl Future<Output = Result<(PeerId, Muxer), Error>> + Send + use<> {
        let opts = DialOpts {
            role,
            port_use: PortUse::Reuse,
        };
        let dial = self.transport.dial(addr.clone(), opts);
        dial.map_err(|error| error.to_string())
            .expect("the dial starts")
    }

    /// The transport's next event.
    pub(crate) async fn event(&mut self) -> TransportEvent<murmurate_net::quic::Upgrade, Error> {
        poll_fn(|cx| Pin::new(&mut self.transport).poll(cx)).await
    }

    /// The next control connection that arrives.
    pub(crate) async fn incoming(&mut self) -> (PeerId, Muxer) {
        loop {
            if let TransportEvent::Incoming { upgrade, .. } = self.event().await {
                return upgrade.await.expect("its handshake is done");
            }
        }
    }
}

/// Listens through a transport and returns the address.
pub(crate) async fn listen_on<T>(transport: &mut T, addr: &str) -> (ListenerId, Multiaddr)
where
    T: libp2p::core::Transport + Unpin,
{
    let id = ListenerId::next();
    transport
        .listen_on(id, addr.parse().unwrap())
        .map_err(|error| error.to_string())
        .unwrap();
    loop {
        let event = poll_fn(|cx| Pin::new(&mut *transport).poll(cx)).await;
        if let TransportEvent::NewAddress {
            listener_id,
            listen_addr,
        } = event
            && listener_id == id
        {
            return (id, listen_addr);
        }
    }
}

/// The protocols of the tests' swarms.
#[derive(NetworkBehaviour)]
pub(crate) struct Behaviour {
    pub(crate) identify: identify::Behaviour,
    pub(crate) ping: ping::Behaviour,
    pub(crate) echo: echo::Behaviour,
}

/// A swarm over a transport.
pub(crate) fn swarm_over(
    identity: &Keypair,
    transport: Boxed<(PeerId, StreamMuxerBox)>,
) -> Swarm<Behaviour> {
    let config = identify::Config::new("/test/1".to_owned(), identity.public());
    let behaviour = Behaviour {
        identify: identify::Behaviour::new(config),
        ping: ping::Behaviour::default(),
        echo: echo::Behaviour::default(),
    };
    let config =
        swarm::Config::with_tokio_executor().with_idle_connection_timeout(Duration::from_secs(60));
    Swarm::new(transport, behaviour, identity.public().to_peer_id(), config)
}

/// A swarm over our transport.
pub(crate) fn our_swarm() -> Swarm<Behaviour> {
    let identity = Keypair::generate_ed25519();
    let node = node_of(&identity, Config::default());
    let boxed = node
        .transport
        .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)))
        .boxed();
    swarm_over(&identity, boxed)
}

/// The address on which a swarm begins to listen.
pub(crate) async fn swarm_address(swarm: &mut Swarm<Behaviour>, addr: &str) -> Multiaddr {
    swarm.listen_on(addr.parse().unwrap()).unwrap();
    loop {
        if let SwarmEvent::NewListenAddr { address, .. } = swarm.select_next_some().await {
            return address;
        }
    }
}

/// The protocols that one end has completed with the other.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    identified: Option<PeerId>,
    pinged: bool,
    echoed: Option<Echoed>,
}

impl Seen {
    fn everything(&self) -> bool {
        self.identified.is_some() && self.pinged && self.echoed.is_some()
    }

    fn note(&mut self, event: SwarmEvent<BehaviourEvent>) {
        match event {
            SwarmEvent::Behaviour(BehaviourEvent::Identify(identify::Event::Received {
                peer_id,
                ..
            })) => self.identified = Some(peer_id),
            SwarmEvent::Behaviour(BehaviourEvent::Ping(ping)) => {
                ping.result.expect("the ping comes back");
                self.pinged = true;
            }
            SwarmEvent::Behaviour(BehaviourEvent::Echo(echoed)) => self.echoed = Some(echoed),
            SwarmEvent::ConnectionClosed { cause, .. } => panic!("closed: {cause:?}"),
            SwarmEvent::OutgoingConnectionError { error, .. } => panic!("{error}"),
            SwarmEvent::IncomingConnectionError { error, .. } => panic!("{error}"),
            _ => {}
        }
    }
}

/// Two swarms connect, and each completes all protocols with the other.
pub(crate) async fn talk(mut dialer: Swarm<Behaviour>, mut listener: Swarm<Behaviour>, addr: &str) {
    let address = swarm_address(&mut listener, addr).await;
    let (from, to) = (*dialer.local_peer_id(), *listener.local_peer_id());
    dialer.dial(address.with(Protocol::P2p(to))).unwrap();
    let (mut here, mut there) = (Seen::default(), Seen::default());
    while !(here.everything() && there.everything()) {
        tokio::select! {
            event = dialer.select_next_some() => here.note(event),
            event = listener.select_next_some() => there.note(event),
        }
    }
    assert_eq!(here.identified, Some(to));
    assert_eq!(there.identified, Some(from));
    assert_eq!(here.echoed, Some(Echoed::GotBack));
    assert_eq!(there.echoed, Some(Echoed::Answered));
}
