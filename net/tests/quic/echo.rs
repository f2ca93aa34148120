//! A test protocol with one stream: the dialler sends bytes, and the other end returns them.

use futures::future::BoxFuture;
use futures::{AsyncReadExt, AsyncWriteExt, FutureExt};
use libp2p::core::transport::PortUse;
use libp2p::core::upgrade::{InboundUpgrade, OutboundUpgrade, UpgradeInfo};
use libp2p::core::{Endpoint, Multiaddr};
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, OneShotHandler, Stream, THandler,
    THandlerInEvent, THandlerOutEvent, ToSwarm,
};
use libp2p::{PeerId, StreamProtocol};
use std::collections::VecDeque;
use std::io;
use std::task::{Context, Poll};

/// More than one packet, and not a multiple of a packet's size.
const BYTES: usize = 300_001;

fn sent() -> Vec<u8> {
    (0..BYTES).map(|i| (i * 7 % 251) as u8).collect()
}

/// One end of the protocol.
#[derive(Debug, Clone, Default)]
pub(crate) struct Echo;

/// The role of this end in a stream that finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Echoed {
    Answered,
    GotBack,
}

impl UpgradeInfo for Echo {
    type Info = StreamProtocol;
    type InfoIter = std::iter::Once<StreamProtocol>;

    fn protocol_info(&self) -> Self::InfoIter {
        std::iter::once(StreamProtocol::new("/echo/1"))
    }
}

impl InboundUpgrade<Stream> for Echo {
    type Output = Echoed;
    type Error = io::Error;
    type Future = BoxFuture<'static, Result<Echoed, io::Error>>;

    fn upgrade_inbound(self, mut stream: Stream, _: StreamProtocol) -> Self::Future {
        async move {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await?;
            stream.write_all(&bytes).await?;
            stream.close().await?;
            Ok(Echoed::Answered)
        }
        .boxed()
    }
}

impl OutboundUpgrade<Stream> for Echo {
    type Output = Echoed;
    type Error = io::Error;
    type Future = BoxFuture<'static, Result<Echoed, io::Error>>;

    fn upgrade_outbound(self, mut stream: Stream, _: StreamProtocol) -> Self::Future {
        async move {
            let sent = sent();
            stream.write_all(&sent).await?;
            stream.close().await?;
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await?;
            assert!(bytes == sent, "other bytes came back");
            Ok(Echoed::GotBack)
        }
        .boxed()
    }
}

/// Runs the protocol once on every outbound connection.
#[derive(Default)]
pub(crate) struct Behaviour {
    events: VecDeque<ToSwarm<Echoed, Echo>>,
}

impl NetworkBehaviour for Behaviour {
    type ConnectionHandler = OneShotHandler<Echo, Echo, Echoed>;
    type ToSwarm = Echoed;

    fn handle_established_inbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(OneShotHandler::default())
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let mut handler = OneShotHandler::default();
        handler.send_request(Echo);
        Ok(handler)
    }

    fn on_swarm_event(&mut self, _: FromSwarm<'_>) {}

    fn on_connection_handler_event(
        &mut self,
        _: PeerId,
        _: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        let echoed = event.expect("the stream works");
        self.events.push_back(ToSwarm::GenerateEvent(echoed));
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Echoed, THandlerInEvent<Self>>> {
        self.events.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}
