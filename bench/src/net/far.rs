//! The far end: listens for every way, and reads and discards the bytes.
//!
//! It serves every process that reaches it, as long as it runs. Its resources are bounded: a number of connections for
//! each way, and a number of channels for each connection. It stores no received bytes.

use crate::cpu_time;
use crate::net::channel::Channel;
use crate::net::muxed::{self, Muxed};
use crate::net::order::{Answer, Order};
use crate::net::pings::PING_BYTES;
use crate::net::{BenchError, CHUNK, FarTask, Hello};
use bytes::Bytes;
use libp2p::PeerId;
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::core::transport::TransportEvent;
use libp2p::identity::Keypair;
use murmurate_net::quic::{Admission, Endpoint, Kind};
use murmurate_net::tcp;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How long a channel without an order may be silent.
const SILENCE: Duration = Duration::from_secs(60);

const CONNECTIONS_MAX: usize = 16;

const CHANNELS_MAX: usize = 8;

/// How long the near end may take to close after the answer.
const HANG_UP: Duration = Duration::from_secs(10);

/// Pause before a failed listener is used again.
const RETRY: Duration = Duration::from_millis(100);

/// A listening far end. Dropping it stops it.
pub struct Far {
    hello: Hello,
    serving: JoinSet<()>,
}

impl Far {
    /// Listens for every way.
    ///
    /// # Errors
    /// If a port is taken, or a setting is invalid.
    pub async fn start(task: &FarTask) -> Result<Self, BenchError> {
        let identity = Keypair::generate_ed25519();
        let admit_all = Arc::new(|_: &PeerId, _: Kind| true);
        let admitted: Arc<dyn Admission> = admit_all.clone();
        let (endpoint, transport) = Endpoint::new(task.tuning.config()?, &identity, admitted)?;
        let ours = endpoint.listen(task.at(0))?.port();
        let tls = tcp::Endpoint::new(&task.tuning.config()?, &identity, admit_all)
            .and_then(|tls| tls.listen(task.at(FarTask::TLS)).map(|_| tls))
            .map_err(|error| BenchError::failed("listening for TLS")(error.to_string()))?;
        let mut server = endpoint.quinn_server()?;
        server.transport_config(Arc::default());
        let bare = quinn::Endpoint::server(server, task.at(1)).map_err(cannot(task.at(1)))?;
        let quinn = bare.local_addr().map_err(cannot(task.at(1)))?.port();
        let mut noise = muxed::tcp_noise(&identity)?;
        let tcp_noise = muxed::listen(&mut noise, false, task.at(1)).await?;
        let plain = TcpListener::bind(task.at(0)).await;
        let plain = plain.map_err(cannot(task.at(0)))?;
        let tcp = plain.local_addr().map_err(cannot(task.at(0)))?.port();
        let mut serving = JoinSet::new();
        let control = muxed::ours(transport);
        serving.spawn(serve_bulk(endpoint.clone(), tls.clone()));
        serving.spawn(serve_tls(tls));
        serving.spawn(serve_quinn(bare));
        for transport in [control, noise] {
            serving.spawn(serve_muxed(transport));
        }
        serving.spawn(serve_tcp(plain));
        let hello = Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            peer: endpoint.local_peer_id().to_string(),
            ours,
            quinn,
            tcp_noise,
            tcp,
        };
        Ok(Self { hello, serving })
    }

    /// The addresses and the version of this far end.
    #[must_use]
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Sends the hello to each process that connects, until it is dropped.
    pub async fn say_hello(&self, listener: TcpListener, mut heard: impl FnMut(SocketAddr)) {
        let mut line = serde_json::to_vec(&self.hello).unwrap_or_default();
        line.push(b'\n');
        loop {
            let Ok((mut stream, from)) = listener.accept().await else {
                sleep(RETRY).await;
                continue;
            };
            heard(from);
            // One short line fits into the socket's buffer, so a client that does not read cannot block this.
            let _ = timeout(RETRY, stream.write_all(&line)).await;
        }
    }

    /// Serves all ways until it is dropped.
    pub async fn serve(mut self) {
        while self.serving.join_next().await.is_some() {}
        std::future::pending().await
    }
}

fn cannot(address: SocketAddr) -> impl Fn(io::Error) -> BenchError {
    move |source| BenchError::Listen { address, source }
}

/// Runs at most [`CONNECTIONS_MAX`] connections of a way. Further ones are dropped.
#[derive(Clone)]
struct Slots(Arc<Semaphore>);

impl Slots {
    fn new() -> Self {
        Self(Arc::new(Semaphore::new(CONNECTIONS_MAX)))
    }

    fn spawn(&self, connection: impl Future<Output = ()> + Send + 'static) {
        if let Ok(permit) = Arc::clone(&self.0).try_acquire_owned() {
            tokio::spawn(async move {
                connection.await;
                drop(permit);
            });
        }
    }
}

#[derive(Default)]
struct Channels(JoinSet<()>);

impl Channels {
    fn serve(&mut self, channel: Channel) {
        while self.0.try_join_next().is_some() {}
        if self.0.len() < CHANNELS_MAX {
            self.0.spawn(async move {
                if let Err(error) = serve(channel).await {
                    tracing::debug!(%error, "a channel of the benchmark failed");
                }
            });
        }
    }
}

async fn serve_tls(endpoint: tcp::Endpoint) {
    let slots = Slots::new();
    while let Some(connection) = endpoint.accept().await {
        slots.spawn(async move {
            let mut channels = Channels::default();
            while let Ok(streams) = connection.session().accept_bi().await {
                channels.serve(streams.into());
            }
        });
    }
}

async fn serve_bulk(endpoint: Endpoint, tls: tcp::Endpoint) {
    let slots = Slots::new();
    while let Some(bulk) = endpoint.accept_bulk().await {
        let offer = tls.offer(bulk.peer(), bulk.remote_address());
        slots.spawn(async move {
            if let Some(offer) = offer {
                // A near end that measures bulk refuses it.
                offer.send(&bulk).await;
            }
            let mut channels = Channels::default();
            while let Ok(streams) = bulk.accept_bi().await {
                channels.serve(streams.into());
            }
        });
    }
}

async fn serve_quinn(endpoint: quinn::Endpoint) {
    let slots = Slots::new();
    while let Some(incoming) = endpoint.accept().await {
        slots.spawn(async move {
            let mut channels = Channels::default();
            let Ok(connection) = incoming.await else {
                return;
            };
            while let Ok(streams) = connection.accept_bi().await {
                channels.serve(streams.into());
            }
        });
    }
}

async fn serve_muxed(mut transport: Muxed) {
    let slots = Slots::new();
    loop {
        let TransportEvent::Incoming { upgrade, .. } = muxed::next(&mut transport).await else {
            continue;
        };
        slots.spawn(async move {
            if let Ok(Ok((_, muxer))) = timeout(SILENCE, upgrade).await {
                serve_muxer(muxer).await;
            }
        });
    }
}

async fn serve_muxer(mut muxer: StreamMuxerBox) {
    let mut channels = Channels::default();
    while let Some(channel) = muxed::accept(&mut muxer).await {
        channels.serve(channel);
    }
}

async fn serve_tcp(listener: TcpListener) {
    let slots = Slots::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(RETRY).await;
            continue;
        };
        slots.spawn(async move {
            // Otherwise small messages would wait for each other.
            if stream.set_nodelay(true).is_ok()
                && let Err(error) = serve(stream.into()).await
            {
                tracing::debug!(%error, "a TCP connection of the benchmark failed");
            }
        });
    }
}

async fn serve(mut channel: Channel) -> io::Result<()> {
    match timeout(SILENCE, Order::receive(&mut channel.receiving)).await?? {
        Order::Echo => echo(channel).await,
        Order::Bulk { bytes, limit } => swallow(channel, bytes, limit).await,
    }
}

async fn echo(mut channel: Channel) -> io::Result<()> {
    loop {
        let mut message = [0; PING_BYTES];
        timeout(SILENCE, channel.receiving.exact(&mut message)).await??;
        let message = Bytes::copy_from_slice(&message);
        channel.sending.write(message).await?;
        channel.sending.flush().await?;
    }
}

async fn swallow(mut channel: Channel, bytes: u64, limit: Duration) -> io::Result<()> {
    let cpu = cpu_time();
    let mut buffer = vec![0; CHUNK];
    let mut got = 0;
    let receiving = async {
        while got < bytes {
            match channel.receiving.swallow(&mut buffer).await? {
                0 => break,
                more => got += more as u64,
            }
        }
        io::Result::Ok(())
    };
    // Bytes that arrived before the time limit count.
    if let Ok(Err(error)) = timeout(limit, receiving).await {
        return Err(error);
    }
    let cpu_s = cpu_time().saturating_sub(cpu).as_secs_f64();
    let answer = Answer { bytes: got, cpu_s };
    answer.send(&mut channel.sending).await?;
    // Closing first could overtake the answer.
    let rest = async {
        while channel.receiving.swallow(&mut buffer).await? > 0 {}
        io::Result::Ok(())
    };
    timeout(HANG_UP, rest).await?
}
