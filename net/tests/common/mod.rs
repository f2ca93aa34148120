//! A deterministic test bed: quinn over in-memory sockets and a virtual link, under paused tokio
//! time.
//!
//! A run repeats to the microsecond, because time is tokio's, random draws are seeded, and
//! handshake messages have fixed lengths. 20 MB over the long link take some tenths of a second of
//! real time.

#![allow(
    dead_code,
    reason = "each test binary and the example use their own part of the bed"
)]
#![allow(missing_docs, clippy::unwrap_used, unreachable_pub, reason = "tests")]

pub mod link;
pub mod socket;
mod tls;

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use quinn::congestion::ControllerFactory;
use quinn::{Connection, ConnectionError, Endpoint, EndpointConfig, TransportConfig, VarInt};
use tokio::sync::watch;
use tokio::time::Instant;

use self::link::{Counters, LinkSpec};
use self::socket::Wire;

/// Makes the controller of one flow.
pub type Factory = Arc<dyn ControllerFactory + Send + Sync>;

/// Runs `future` under virtual time.
pub fn virtually<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}

/// One server and any number of clients on one link.
pub struct Bed {
    wire: Wire,
    server: SocketAddr,
    received: Arc<Mutex<HashMap<SocketAddr, watch::Sender<u64>>>>,
    clients: Mutex<u16>,
}

/// A client's connection, and the bytes that the server received.
pub struct Flow {
    pub connection: Connection,
    pub received: watch::Receiver<u64>,
    pub started: Instant,
    _endpoint: Endpoint,
}

/// The result of a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Time from the first packet of the handshake to the last byte received.
    pub took: Duration,
    pub payload: u64,
    /// Bytes of packets that the sender declared lost and sent again.
    pub resent: u64,
    pub link: Counters,
}

impl Outcome {
    /// Payload divided by time, Mbit/s.
    pub fn goodput(&self) -> f64 {
        self.payload as f64 * 8e-6 / self.took.as_secs_f64()
    }

    /// Retransmitted bytes divided by payload.
    pub fn resent_share(&self) -> f64 {
        self.resent as f64 / self.payload as f64
    }
}

fn address(host: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, (host >> 8) as u8, host as u8), 4001))
}

fn transport(factory: Option<Factory>) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    // Far more than the link holds, so that congestion control decides and not the windows. One
    // stream may not use the whole window of the connection, or small messages would wait for room
    // in the send buffer.
    let window = 16 * 1024 * 1024u32;
    config
        .stream_receive_window(VarInt::from_u32(window / 2))
        .receive_window(VarInt::from_u32(window))
        .send_window(window.into());
    if let Some(factory) = factory {
        config.congestion_controller_factory(factory);
    }
    Arc::new(config)
}

fn endpoint_config(seed: u8) -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.rng_seed(Some([seed; 32]));
    config
}

impl Bed {
    /// A server behind the link of `spec`. Virtual time begins now.
    pub fn new(spec: &LinkSpec) -> Self {
        let wire = Wire::new(spec);
        let server = address(1);
        let mut config = quinn::ServerConfig::with_crypto(tls::server());
        config.transport_config(transport(None));
        let endpoint = Endpoint::new_with_abstract_socket(
            endpoint_config(1),
            Some(config),
            wire.socket(server, false),
            Arc::new(quinn::TokioRuntime),
        )
        .unwrap();
        let received: Arc<Mutex<HashMap<SocketAddr, watch::Sender<u64>>>> = Arc::default();
        let counts = Arc::clone(&received);
        tokio::spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                let count = counts
                    .lock()
                    .unwrap()
                    .get(&incoming.remote_address())
                    .unwrap()
                    .clone();
                tokio::spawn(async move {
                    if let Ok(connection) = incoming.await {
                        serve(connection, count).await;
                    }
                });
            }
        });
        Self {
            wire,
            server,
            received,
            clients: Mutex::new(0),
        }
    }

    /// Connects another client.
    pub async fn flow(&self, factory: Factory) -> Flow {
        let started = Instant::now();
        let host = {
            let mut clients = self.clients.lock().unwrap();
            *clients += 1;
            *clients + 1
        };
        let local = address(host);
        let (count, received) = watch::channel(0);
        self.received.lock().unwrap().insert(local, count);
        let endpoint = Endpoint::new_with_abstract_socket(
            endpoint_config(host as u8),
            None,
            self.wire.socket(local, true),
            Arc::new(quinn::TokioRuntime),
        )
        .unwrap();
        let mut config = quinn::ClientConfig::new(tls::client());
        config.transport_config(transport(Some(factory)));
        let connection = endpoint
            .connect_with(config, self.server, tls::NAME)
            .unwrap()
            .await
            .unwrap();
        Flow {
            connection,
            received,
            started,
            _endpoint: endpoint,
        }
    }

    /// Traffic over the link from the clients to the server.
    pub fn counters(&self) -> Counters {
        self.wire.forward()
    }
}

/// Counts bytes on unidirectional streams and echoes bytes on bidirectional ones.
async fn serve(connection: Connection, count: watch::Sender<u64>) {
    let echo = connection.clone();
    tokio::spawn(async move {
        while let Ok((mut send, mut recv)) = echo.accept_bi().await {
            tokio::spawn(async move {
                while let Ok(Some(chunk)) = recv.read_chunk(1024, true).await {
                    if send.write_chunk(chunk.bytes).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    while let Ok(mut stream) = connection.accept_uni().await {
        while let Ok(Some(chunk)) = stream.read_chunk(1 << 20, true).await {
            count.send_modify(|total| *total += chunk.bytes.len() as u64);
        }
    }
}

impl Flow {
    /// Sends `bytes` on a stream of its own, without waiting for their arrival.
    pub async fn push(&self, bytes: u64) -> Result<(), quinn::WriteError> {
        const CHUNK: usize = 64 * 1024;
        static ZEROS: [u8; CHUNK] = [0; CHUNK];
        let mut stream = self.connection.open_uni().await?;
        let mut left = bytes;
        while left > 0 {
            let len = left.min(CHUNK as u64) as usize;
            stream
                .write_chunk(Bytes::from_static(&ZEROS[..len]))
                .await?;
            left -= len as u64;
        }
        let _ = stream.finish();
        Ok(())
    }

    /// Sends `bytes` and waits until the server has read them. Fails if the connection does.
    pub async fn transfer(&self, bed: &Bed, bytes: u64) -> Result<Outcome, ConnectionError> {
        let mut received = self.received.clone();
        let target = *received.borrow() + bytes;
        let sending = self.push(bytes);
        let arriving = received.wait_for(|total| *total >= target);
        tokio::select! {
            _ = async { tokio::join!(sending, arriving) } => {}
            error = self.connection.closed() => return Err(error),
        }
        Ok(Outcome {
            took: self.started.elapsed(),
            payload: bytes,
            resent: self.connection.stats().path.lost_bytes,
            link: bed.counters(),
        })
    }

    /// Sends a small message of high priority every `every` and measures its round trip, until
    /// `until` returns true.
    pub async fn ping(&self, every: Duration, until: impl Fn() -> bool) -> Vec<Duration> {
        let (mut send, mut recv) = self.connection.open_bi().await.unwrap();
        send.set_priority(10).unwrap();
        let mut round_trips = Vec::new();
        while !until() {
            let at = Instant::now();
            send.write_all(&[7; 64]).await.unwrap();
            recv.read_exact(&mut [0; 64]).await.unwrap();
            round_trips.push(at.elapsed());
            tokio::time::sleep_until(at + every).await;
        }
        round_trips
    }
}

/// A transfer of `bytes` by one new flow over `spec`, handshake included.
pub fn cold(spec: &LinkSpec, factory: Factory, bytes: u64) -> Result<Outcome, ConnectionError> {
    virtually(async {
        let bed = Bed::new(spec);
        let flow = bed.flow(factory).await;
        flow.transfer(&bed, bytes).await
    })
}

/// Two flows that send without end, the second one from `offset` on. Returns the bytes of each that
/// arrived between `from` and `until` after the second one began.
pub fn share(
    spec: &LinkSpec,
    factories: [Factory; 2],
    offset: Duration,
    from: Duration,
    until: Duration,
) -> [f64; 2] {
    const ENDLESS: u64 = 1 << 40;
    virtually(async {
        let bed = Bed::new(spec);
        let [one, two] = factories;
        let first = Arc::new(bed.flow(one).await);
        let sender = Arc::clone(&first);
        tokio::spawn(async move { sender.push(ENDLESS).await });
        tokio::time::sleep(offset).await;
        let second = Arc::new(bed.flow(two).await);
        let sender = Arc::clone(&second);
        tokio::spawn(async move { sender.push(ENDLESS).await });
        tokio::time::sleep(from).await;
        let before = [*first.received.borrow(), *second.received.borrow()];
        tokio::time::sleep(until - from).await;
        let after = [*first.received.borrow(), *second.received.borrow()];
        let seconds = (until - from).as_secs_f64();
        [0, 1].map(|i| (after[i] - before[i]) as f64 * 8e-6 / seconds)
    })
}

/// The value below which the fraction `share` of the samples lies.
pub fn quantile(samples: &mut [Duration], share: f64) -> Duration {
    samples.sort_unstable();
    let index = ((samples.len() as f64 * share).ceil() as usize).clamp(1, samples.len());
    samples[index - 1]
}
