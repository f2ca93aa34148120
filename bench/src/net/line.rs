//! The connections of the near end: the channels of one way, and the values that keep them alive.

use crate::net::channel::{Channel, Sending};
use crate::net::muxed::{self, Muxed};
use crate::net::{BenchError, NearTask, PathFigures, Way};
use libp2p::PeerId;
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::identity::Keypair;
use murmurate_net::quic::{BulkConnection, Endpoint, Kind, PathStats, multiaddr_of};
use murmurate_net::tcp::{self, Offer};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// The name that quinn's TLS requires. It has no meaning, because peers are identified by their keys.
const SERVER_NAME: &str = "l";

/// Priority of small messages over bulk bytes, on connections whose streams have priorities.
const URGENT: i32 = 1;

/// Channels to the far end.
pub(super) struct Line {
    pub(super) small: Channel,
    /// Carry the bulk bytes: one channel, or as many as the bytes are spread over.
    pub(super) bulk: Vec<Channel>,
    pub(super) connect: Duration,
    source: Source,
    /// Tasks that must run while the channels are used.
    _driving: JoinSet<()>,
}

enum Source {
    Quinn(
        quinn::Connection,
        #[allow(dead_code, reason = "it keeps its socket")] quinn::Endpoint,
    ),
    Bulk(Vec<BulkConnection>),
    Endpoint(Endpoint),
    Nothing,
}

impl Line {
    pub(super) async fn dial(task: &NearTask) -> Result<Self, BenchError> {
        let peer = task
            .peer
            .parse()
            .map_err(BenchError::failed("reading the far end's identity"))?;
        let dialer = Dialer {
            task,
            peer,
            identity: Keypair::generate_ed25519(),
        };
        let mut line = match task.way {
            Way::Quinn => dialer.quinn().await?,
            Way::Bulk => dialer.bulk().await?,
            Way::Tls => dialer.tls().await?,
            Way::Control => {
                let (endpoint, transport) = dialer.endpoint()?;
                let source = Source::Endpoint(endpoint);
                dialer.muxed(muxed::ours(transport), source).await?
            }
            Way::TcpNoise => {
                let transport = muxed::tcp_noise(&dialer.identity)?;
                dialer.muxed(transport, Source::Nothing).await?
            }
            Way::Tcp => dialer.tcp().await?,
        };
        match &mut line.small.sending {
            // This fails only for a closed stream, which the first message will report.
            Sending::Quinn(stream) => _ = stream.set_priority(URGENT),
            Sending::Tls(stream) => stream.set_urgency(URGENT),
            Sending::Muxed(_) | Sending::Tcp(_) => {}
        }
        Ok(line)
    }

    pub(super) fn path(&self) -> Option<PathFigures> {
        let stats = match &self.source {
            Source::Quinn(connection, _) => PathStats::of(connection),
            Source::Bulk(all) => together(all)?,
            Source::Endpoint(endpoint) => endpoint.links().first()?.path,
            Source::Nothing => return None,
        };
        Some(stats.into())
    }
}

/// The estimates of the first connection, with the counters of all added up.
fn together(connections: &[BulkConnection]) -> Option<PathStats> {
    let all = connections.iter().map(BulkConnection::stats);
    all.reduce(|sum, more| PathStats {
        sent_packets: sum.sent_packets + more.sent_packets,
        sent_bytes: sum.sent_bytes + more.sent_bytes,
        received_bytes: sum.received_bytes + more.received_bytes,
        lost_packets: sum.lost_packets + more.lost_packets,
        lost_bytes: sum.lost_bytes + more.lost_bytes,
        sent_batches: sum.sent_batches + more.sent_batches,
        ..sum
    })
}

struct Dialer<'a> {
    task: &'a NearTask,
    peer: PeerId,
    identity: Keypair,
}

impl Dialer<'_> {
    fn endpoint(&self) -> Result<(Endpoint, murmurate_net::quic::Transport), BenchError> {
        let admit_all = Arc::new(|_: &PeerId, _: Kind| true);
        Ok(Endpoint::new(
            self.task.tuning.config()?,
            &self.identity,
            admit_all,
        )?)
    }

    async fn quinn(&self) -> Result<Line, BenchError> {
        let dialing = BenchError::failed("dialing with quinn");
        let (endpoint, _) = self.endpoint()?;
        let mut client = endpoint.quinn_client(Kind::Bulk, Some(self.peer))?;
        client.transport_config(Arc::default());
        let from = self
            .task
            .from
            .unwrap_or_else(|| muxed::any_like(self.task.to));
        let bare = quinn::Endpoint::client(from).map_err(|source| BenchError::Listen {
            address: from,
            source,
        })?;
        let start = Instant::now();
        let connecting = bare.connect_with(client, self.task.to, SERVER_NAME);
        let connection = connecting.map_err(|e| dialing(e.to_string()))?.await;
        let connection = connection.map_err(|e| dialing(e.to_string()))?;
        let connect = start.elapsed();
        let open = || async {
            let streams = connection.open_bi().await;
            streams
                .map(Channel::from)
                .map_err(|e| dialing(e.to_string()))
        };
        let (small, bulk) = (open().await?, open().await?);
        let source = Source::Quinn(connection.clone(), bare);
        Ok(Line {
            connect,
            small,
            bulk: vec![bulk],
            source,
            _driving: JoinSet::new(),
        })
    }

    async fn bulk(&self) -> Result<Line, BenchError> {
        let (endpoint, transport) = self.endpoint()?;
        if let Some(from) = self.task.from {
            endpoint.listen(from)?;
        }
        let start = Instant::now();
        let to = multiaddr_of(self.task.to);
        let (connections, streams) = self.task.tuning.spread()?;
        let dials = (0..connections).map(|_| endpoint.dial_bulk(&to, self.peer));
        let connections = futures::future::try_join_all(dials).await?;
        let connect = start.elapsed();
        let open = |connection: BulkConnection| async move {
            let opened = connection.open_bi().await;
            opened
                .map(Channel::from)
                .map_err(BenchError::failed("opening a bulk stream"))
        };
        let first = connections.first().cloned();
        let first = first.ok_or_else(|| BenchError::failed("dialing")("no connection"))?;
        let small = open(first).await?;
        let mut bulk = Vec::new();
        for connection in &connections {
            for _ in 0..streams {
                bulk.push(open(connection.clone()).await?);
            }
        }
        let mut driving = JoinSet::new();
        driving.spawn(async move {
            // Dropping either of them would end the endpoint.
            let _keep = (endpoint, transport);
            std::future::pending().await
        });
        let source = Source::Bulk(connections);
        Ok(Line {
            connect,
            small,
            bulk,
            source,
            _driving: driving,
        })
    }

    async fn tls(&self) -> Result<Line, BenchError> {
        let failed = BenchError::failed("connecting with TLS over TCP");
        let (endpoint, transport) = self.endpoint()?;
        if let Some(from) = self.task.from {
            endpoint.listen(from)?;
        }
        let admit_all = Arc::new(|_: &PeerId, _: Kind| true);
        let config = self.task.tuning.config()?;
        let ours = tcp::Endpoint::new(&config, &self.identity, admit_all)
            .map_err(|error| failed(error.to_string()))?;
        if let Some(from) = self.task.from {
            // An endpoint dials from the address at which it listens.
            let at = SocketAddr::new(from.ip(), 0);
            ours.listen(at).map_err(|error| failed(error.to_string()))?;
        }
        let start = Instant::now();
        let beside = endpoint
            .dial_bulk(&multiaddr_of(self.task.to), self.peer)
            .await?;
        let told = beside.accept_uni().await;
        let told = told.map_err(|error| failed(error.to_string()))?;
        let offer = Offer::receive(told).await;
        let offer = offer.ok_or_else(|| failed("the far end offers no port".to_owned()))?;
        let connection = ours.dial(self.peer, self.task.to, offer).await;
        let connection = connection.map_err(|error| failed(error.to_string()))?;
        let connect = start.elapsed();
        let open = || {
            let opened = connection.session().open_bi().map(Channel::from);
            opened.map_err(|error| failed(error.to_string()))
        };
        let (small, bulk) = (open()?, vec![open()?]);
        let mut driving = JoinSet::new();
        driving.spawn(async move {
            // Dropping any of them would end the connection.
            let _keep = (endpoint, transport, beside, ours, connection);
            std::future::pending().await
        });
        Ok(Line {
            small,
            bulk,
            connect,
            source: Source::Nothing,
            _driving: driving,
        })
    }

    async fn muxed(&self, mut transport: Muxed, source: Source) -> Result<Line, BenchError> {
        let udp = self.task.way.is_udp();
        if let Some(from) = self.task.from {
            muxed::listen(&mut transport, udp, from).await?;
        }
        let start = Instant::now();
        let to = muxed::address(udp, self.task.to);
        let mut muxer = muxed::dial(&mut transport, to, self.peer).await?;
        let connect = start.elapsed();
        let (small, bulk) = (
            muxed::open(&mut muxer).await?,
            muxed::open(&mut muxer).await?,
        );
        let mut driving = JoinSet::new();
        driving.spawn(drive_muxer(muxer));
        driving.spawn(async move {
            loop {
                muxed::next(&mut transport).await;
            }
        });
        Ok(Line {
            connect,
            small,
            bulk: vec![bulk],
            source,
            _driving: driving,
        })
    }

    async fn tcp(&self) -> Result<Line, BenchError> {
        let start = Instant::now();
        let (small, bulk) = tokio::try_join!(self.tcp_connect(), self.tcp_connect())
            .map_err(BenchError::failed("connecting with TCP"))?;
        let connect = start.elapsed();
        Ok(Line {
            small: small.into(),
            bulk: vec![bulk.into()],
            connect,
            source: Source::Nothing,
            _driving: JoinSet::new(),
        })
    }

    async fn tcp_connect(&self) -> io::Result<TcpStream> {
        let to = self.task.to;
        let socket = match to {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        if let Some(from) = self.task.from {
            // Two connections cannot use the same local port.
            socket.bind(SocketAddr::new(from.ip(), 0))?;
        }
        let stream = socket.connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Drives a connection until it ends. The far end opens no streams.
async fn drive_muxer(mut muxer: StreamMuxerBox) {
    while muxed::accept(&mut muxer).await.is_some() {}
}
