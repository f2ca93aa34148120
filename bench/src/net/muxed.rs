//! The ways that are libp2p transports. They run without a swarm, so that only the cost of a stream is measured.

use crate::net::BenchError;
use crate::net::channel::Channel;
use futures::future::poll_fn;
use libp2p::core::muxing::{StreamMuxerBox, StreamMuxerExt, SubstreamBox};
use libp2p::core::transport::{Boxed, DialOpts, ListenerId, PortUse, TransportEvent};
use libp2p::core::upgrade::Version;
use libp2p::core::{Endpoint as Role, Transport as _};
use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId, noise, tcp, yamux};
use murmurate_net::quic::multiaddr_of;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A libp2p transport of any kind.
pub(super) type Muxed = Boxed<(PeerId, StreamMuxerBox)>;

pub(super) fn ours(transport: murmurate_net::quic::Transport) -> Muxed {
    transport
        .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)))
        .boxed()
}

pub(super) fn tcp_noise(identity: &Keypair) -> Result<Muxed, BenchError> {
    let noise =
        noise::Config::new(identity).map_err(BenchError::failed("making a Noise identity"))?;
    Ok(
        tcp::tokio::Transport::new(tcp::Config::default().nodelay(true))
            .upgrade(Version::V1Lazy)
            .authenticate(noise)
            .multiplex(yamux::Config::default())
            .boxed(),
    )
}

/// The multiaddress for QUIC (`udp`) or TCP.
pub(super) fn address(udp: bool, addr: SocketAddr) -> Multiaddr {
    if udp {
        return multiaddr_of(addr);
    }
    Multiaddr::from(addr.ip()).with(Protocol::Tcp(addr.port()))
}

pub(super) async fn listen(
    transport: &mut Muxed,
    udp: bool,
    at: SocketAddr,
) -> Result<u16, BenchError> {
    let listening = BenchError::failed("listening with libp2p");
    transport
        .listen_on(ListenerId::next(), address(udp, at))
        .map_err(|error| listening(error.to_string()))?;
    loop {
        match next(transport).await {
            TransportEvent::NewAddress { listen_addr, .. } => {
                let port = listen_addr.iter().find_map(|part| match part {
                    Protocol::Udp(port) | Protocol::Tcp(port) => Some(port),
                    _ => None,
                });
                return port.ok_or_else(|| listening("an address without a port".to_owned()));
            }
            TransportEvent::ListenerError { error, .. } => {
                return Err(listening(error.to_string()));
            }
            TransportEvent::ListenerClosed { reason, .. } => {
                return Err(listening(format!("{reason:?}")));
            }
            _ => {}
        }
    }
}

pub(super) async fn next(
    transport: &mut Muxed,
) -> TransportEvent<<Muxed as libp2p::Transport>::ListenerUpgrade, std::io::Error> {
    poll_fn(|cx| Pin::new(&mut *transport).poll(cx)).await
}

/// Dials `peer` at `to`, from the listening port if there is one.
pub(super) async fn dial(
    transport: &mut Muxed,
    to: Multiaddr,
    peer: PeerId,
) -> Result<StreamMuxerBox, BenchError> {
    let dialing = BenchError::failed("dialing with libp2p");
    let opts = DialOpts {
        role: Role::Dialer,
        port_use: PortUse::Reuse,
    };
    let dial = transport
        .dial(to, opts)
        .map_err(|error| dialing(error.to_string()))?;
    let (found, muxer) = dial.await.map_err(|error| dialing(error.to_string()))?;
    if found != peer {
        return Err(dialing(format!(
            "{found} is there, {peer} was to be; another program listens at that port"
        )));
    }
    Ok(muxer)
}

pub(super) async fn open(muxer: &mut StreamMuxerBox) -> Result<Channel, BenchError> {
    let opened: std::io::Result<SubstreamBox> = poll_fn(|cx| {
        if let Poll::Ready(Err(error)) = drive(muxer, cx) {
            return Poll::Ready(Err(error));
        }
        muxer.poll_outbound_unpin(cx)
    })
    .await;
    Ok(Channel::from(
        opened.map_err(BenchError::failed("opening a libp2p stream"))?,
    ))
}

/// The next stream that the other end opened; `None` after the connection has ended.
pub(super) async fn accept(muxer: &mut StreamMuxerBox) -> Option<Channel> {
    let accepted = poll_fn(|cx| {
        if let Poll::Ready(Err(error)) = drive(muxer, cx) {
            return Poll::Ready(Err(error));
        }
        muxer.poll_inbound_unpin(cx)
    });
    accepted.await.ok().map(Channel::from)
}

/// Drives the connection until it has no more events. Their content does not matter here.
fn drive(muxer: &mut StreamMuxerBox, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
    loop {
        match muxer.poll_unpin(cx) {
            Poll::Ready(Ok(_)) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        }
    }
}

/// The wildcard address of the same family.
pub(super) fn any_like(addr: SocketAddr) -> SocketAddr {
    let ip: IpAddr = match addr.ip() {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(ip, 0)
}
