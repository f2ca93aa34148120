//! `--stranger`: a peer without a certificate that knows the addresses of all daemons and tries
//! whatever a stranger can, for as long as the swarm runs.

use crate::bulk::{BulkLimits, NoStore};
use crate::net::{self, Membership, Net, NetConfig, NetEvent, from_libp2p, now_s};
use crate::ports::socket_of;
use crate::store::random_bytes;
use libp2p::Multiaddr;
use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use murmurate_net::free::Wire;
use murmurate_protocol::PeerId;
use murmurate_trust::{Register, RunKey};
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How long one identity tries.
const LIFE: Duration = Duration::from_secs(1);

/// TCP connections that it holds open without a word, to each port.
const SILENT: usize = 32;

/// How long it holds them.
const SILENT_FOR: Duration = Duration::from_secs(5);

/// Pause between two datagrams of garbage.
const GARBAGE_EVERY: Duration = Duration::from_millis(5);

/// Pause between two requests to an HTTP server.
const REQUEST_EVERY: Duration = Duration::from_millis(500);

/// What the stranger tried, and with what result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StrangerEntry {
    /// Identities with which it knocked.
    pub identities: u64,
    /// Links that it got. A closed run gives none.
    pub links: u64,
    /// Times that it was turned away at the gate.
    pub turned_away: u64,
    /// Connections that it held without a word.
    pub silent: u64,
    /// Datagrams of garbage.
    pub datagrams: u64,
    /// Requests to the HTTP servers under a name of its own.
    pub requests: u64,
    /// Requests of them that were answered with a status of the daemon.
    pub answered: u64,
}

/// A stranger at work. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Stranger {
    tally: Arc<Mutex<StrangerEntry>>,
    _tasks: JoinSet<()>,
}

#[derive(Clone)]
struct Known {
    name: String,
    addresses: Vec<Multiaddr>,
    tally: Arc<Mutex<StrangerEntry>>,
}

impl Known {
    fn count(&self, change: impl FnOnce(&mut StrangerEntry)) {
        change(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Stranger {
    /// Begins to attack the daemons of the run `name` at these addresses.
    pub(super) fn begin(name: &str, addresses: &[String], http: &[String]) -> Self {
        let tally = Arc::new(Mutex::new(StrangerEntry::default()));
        let parsed = addresses.iter().filter_map(|text| text.parse().ok());
        let known = Known {
            name: name.to_owned(),
            addresses: parsed.collect(),
            tally: Arc::clone(&tally),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(knock(known.clone()));
        for address in &known.addresses {
            match socket_of(address) {
                Some((Wire::Udp, to)) => drop(tasks.spawn(send_garbage(known.clone(), to))),
                Some((Wire::Tcp, to)) => drop(tasks.spawn(hold_silently(known.clone(), to))),
                None => {}
            }
        }
        for server in http.iter().filter_map(|text| text.parse().ok()) {
            tasks.spawn(request(known.clone(), server));
        }
        Self {
            tally,
            _tasks: tasks,
        }
    }

    /// The counts of its attempts so far.
    pub(super) fn entry(&self) -> StrangerEntry {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Knocks with ever new identities: once as a member of the open run of that name, once as the
/// owner of another run of that name.
async fn knock(known: Known) {
    for number in 0_u64.. {
        let keys = Keypair::generate_ed25519();
        let Some(me) = from_libp2p(&keys.public().to_peer_id()) else {
            return;
        };
        let membership = match number % 2 {
            0 => Membership::open(crate::config::RunConfig::id_of(&known.name), me),
            _ => forged(&known.name, me),
        };
        let mut config = NetConfig::new(keys, Arc::new(membership));
        config.listen = vec![
            Multiaddr::from(std::net::Ipv4Addr::LOCALHOST)
                .with(Protocol::Udp(0))
                .with(Protocol::QuicV1),
        ];
        config.join.clone_from(&known.addresses);
        known.count(|entry| entry.identities += 1);
        if let Ok((net, events)) = net::start(config, Arc::new(NoStore), BulkLimits::default()) {
            watch(&known, net, events).await;
        } else {
            sleep(LIFE).await;
        }
    }
}

fn forged(name: &str, me: PeerId) -> Membership {
    let key = RunKey::from_seed(name.to_owned(), random_bytes());
    let run = key.run();
    Membership::new(me, key.certify_self(&run, me, now_s()), Register::new(run))
}

async fn watch(known: &Known, net: Net, mut events: mpsc::Receiver<NetEvent>) {
    let until = tokio::time::Instant::now() + LIFE;
    while let Ok(Some(event)) = tokio::time::timeout_at(until, events.recv()).await {
        match event {
            NetEvent::LinkUp(_) => known.count(|entry| entry.links += 1),
            NetEvent::TurnedAway { .. } => known.count(|entry| entry.turned_away += 1),
            _ => {}
        }
    }
    net.shutdown(Instant::now()).await;
}

/// Opens connections and says nothing on them.
async fn hold_silently(known: Known, to: SocketAddr) {
    loop {
        let mut held = Vec::new();
        for _ in 0..SILENT {
            if let Ok(stream) = TcpStream::connect(to).await {
                known.count(|entry| entry.silent += 1);
                held.push(stream);
            }
        }
        sleep(SILENT_FOR).await;
    }
}

/// Sends what looks like the first packets of QUIC connections, and is not.
async fn send_garbage(known: Known, to: SocketAddr) {
    let Ok(socket) = UdpSocket::bind("127.0.0.1:0").await else {
        return;
    };
    let mut packet = random_bytes().repeat(37);
    loop {
        // A long header of QUIC version 1 with the type Initial.
        packet[..5].copy_from_slice(&[0xc0, 0, 0, 0, 1]);
        if socket.send_to(&packet, to).await.is_ok() {
            known.count(|entry| entry.datagrams += 1);
        }
        packet.rotate_left(7);
        sleep(GARBAGE_EVERY).await;
    }
}

/// Asks the HTTP server under a name of its own, as a page in a browser could.
async fn request(known: Known, server: SocketAddr) {
    loop {
        sleep(REQUEST_EVERY).await;
        known.count(|entry| entry.requests += 1);
        let asked = timeout(REQUEST_EVERY, async {
            let mut stream = TcpStream::connect(server).await?;
            let text =
                b"GET /status HTTP/1.1\r\nHost: stranger.example\r\nConnection: close\r\n\r\n";
            stream.write_all(text).await?;
            let mut answer = Vec::new();
            stream.take(64).read_to_end(&mut answer).await?;
            std::io::Result::Ok(answer)
        });
        if let Ok(Ok(answer)) = asked.await
            && answer.starts_with(b"HTTP/1.1 200")
        {
            known.count(|entry| entry.answered += 1);
        }
    }
}
