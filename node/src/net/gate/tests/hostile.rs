//! What strangers cost that say nothing, and those that fill every stream and window they get. The daemon runs in another process, whose
//! memory the system counts.

use super::{QUIC, TCP, birds, owners};
use crate::bulk::tests::TestStore;
use crate::net::gate::Members;
use crate::net::quic;
use crate::net::tests::{Side, WAIT, open_config, started};
use futures::future::poll_fn;
use futures::io::AsyncWrite;
use libp2p::core::Endpoint;
use libp2p::core::muxing::{StreamMuxerBox, StreamMuxerExt, SubstreamBox};
use libp2p::core::transport::{Boxed, DialOpts, PortUse, Transport};
use libp2p::core::upgrade::Version;
use libp2p::identity::{Keypair, PeerId};
use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, noise, tcp, yamux};
use std::io::{BufRead, BufReader, Write};
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::task::{Context, Poll};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Links of strangers, half over QUIC and half over TCP: as many as there are places at the gate.
const LINKS: usize = 64;

/// What they may cost the daemon.
const COST_MAX: u64 = 16 << 20;

/// Streams that each of them opens, and the bytes that it tries to write at once.
const STREAMS: usize = 200;
const BYTES: usize = 256 << 10;

/// Tells a process that it is the daemon.
const DAEMON: &str = "MURMURATE_TEST_DAEMON";

/// Bytes of memory that this process has had at most.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("no fault of this machine");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib: u64 = line
        .and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .expect("no fault of this machine");
    kib << 10
}

/// The daemon of the test below: prints its addresses, and its memory whenever it is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_in_a_process_of_its_own() {
    if std::env::var_os(DAEMON).is_none() {
        return;
    }
    let mut config = owners(&birds(), QUIC);
    config
        .listen
        .push(TCP.parse().expect("no fault of this machine"));
    let mut side: Side = started(config, TestStore::default()).await;
    for address in side.both_addresses().await {
        println!("\nat {address}");
    }
    let asked = tokio::task::spawn_blocking(|| {
        for _ in std::io::stdin().lock().lines() {
            println!("\npeak {}", peak());
        }
    });
    let never = side.until(|_| None::<()>);
    tokio::select! {
        _ = asked => {}
        () = never => {}
    }
}

/// The daemon's process, and its output.
struct Daemon {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Daemon {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().expect("no fault of this machine"))
            .args([
                "--exact",
                "net::gate::tests::hostile::a_daemon_in_a_process_of_its_own",
            ])
            .arg("--nocapture")
            .env(DAEMON, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("no fault of this machine");
        let lines = BufReader::new(child.stdout.take().expect("no fault of this machine")).lines();
        Self { child, lines }
    }

    /// The rest of the next line that begins with a word.
    fn says(&mut self, word: &str) -> String {
        let mut lines = self.lines.by_ref().map(Result::unwrap);
        let found = lines.find_map(|line| Some(line.strip_prefix(word)?.trim().to_owned()));
        found.expect("the daemon runs")
    }

    fn peak(&mut self) -> u64 {
        writeln!(self.child.stdin.as_ref().expect("no fault of this machine"))
            .expect("no fault of this machine");
        self.says("peak ")
            .parse()
            .expect("no fault of this machine")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn transport(over_quic: bool) -> Boxed<(PeerId, StreamMuxerBox)> {
    let identity = Keypair::generate_ed25519();
    if over_quic {
        let config = open_config(identity);
        let (_, transport) =
            quic::endpoint(&config, Members::default()).expect("no fault of this machine");
        let boxed = transport.map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)));
        return boxed.boxed();
    }
    tcp::tokio::Transport::new(tcp::Config::default())
        .upgrade(Version::V1Lazy)
        .authenticate(noise::Config::new(&identity).expect("no fault of this machine"))
        .multiplex(yamux::Config::default())
        .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)))
        .boxed()
}

/// What a stranger does on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stranger {
    /// It opens no stream.
    Silent,
    /// It fills every stream that it gets.
    Flooding,
}

/// One step of a stranger; ready when the connection has ended.
fn step(
    stranger: Stranger,
    muxer: &mut StreamMuxerBox,
    streams: &mut Vec<SubstreamBox>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    while let Poll::Ready(event) = muxer.poll_unpin(cx) {
        if event.is_err() {
            return Poll::Ready(());
        }
    }
    // Over QUIC, only streams tell of the end.
    while let Poll::Ready(stream) = muxer.poll_inbound_unpin(cx) {
        if stream.is_err() {
            return Poll::Ready(());
        }
    }
    while stranger == Stranger::Flooding && streams.len() < STREAMS {
        match muxer.poll_outbound_unpin(cx) {
            Poll::Ready(Ok(stream)) => streams.push(stream),
            Poll::Ready(Err(_)) => return Poll::Ready(()),
            Poll::Pending => break,
        }
    }
    let bytes = vec![7; BYTES];
    for stream in streams {
        while let Poll::Ready(Ok(written)) = Pin::new(&mut *stream).poll_write(cx, &bytes) {
            if written == 0 {
                break;
            }
        }
        let _ = Pin::new(stream).poll_flush(cx);
    }
    Poll::Pending
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_links_cost_little_whether_silent_or_filled() {
    for stranger in [Stranger::Silent, Stranger::Flooding] {
        let (count, cost) = cost_of(stranger).await;
        println!("{count} links, {stranger:?}: {} KiB", cost >> 10);
        assert!(count > LINKS / 2, "{count} links, {stranger:?}");
        assert!(
            cost <= COST_MAX,
            "{count} links, {stranger:?}: {cost} bytes"
        );
    }
}

/// Connections of strangers to a daemon of its own, and the memory that they cost it.
async fn cost_of(stranger: Stranger) -> (usize, u64) {
    let mut daemon = Daemon::start();
    let addresses: [Multiaddr; 2] = [(); 2].map(|()| {
        daemon
            .says("at ")
            .parse()
            .expect("no fault of this machine")
    });
    let before = daemon.peak();
    let mut links = JoinSet::new();
    for number in 0..LINKS {
        let is_udp = |at: &&Multiaddr| at.iter().any(|part| matches!(part, Protocol::Udp(_)));
        let over_quic = number % 2 == 0;
        let mut all = addresses.iter();
        let to = all
            .find(|at| is_udp(at) == over_quic)
            .expect("no fault of this machine")
            .clone();
        links.spawn(async move {
            let mut transport = transport(over_quic);
            let options = DialOpts {
                role: Endpoint::Dialer,
                port_use: PortUse::New,
            };
            let dial = transport.dial(to, options).map_err(|e| e.to_string());
            let Ok((_, mut muxer)) = dial.expect("no fault of this machine").await else {
                return false;
            };
            let mut streams = Vec::new();
            poll_fn(|cx| step(stranger, &mut muxer, &mut streams, cx)).await;
            true
        });
    }
    // The daemon ends each of them.
    let ended = timeout(WAIT, links.join_all())
        .await
        .expect("no fault of this machine");
    let count = ended.iter().filter(|linked| **linked).count();
    (count, daemon.peak() - before)
}
