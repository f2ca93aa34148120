//! Measures how fast an emulated link can be on this machine. One daemon's socket sends more than
//! the link carries, another one receives, and the program reports the CPU time of the relay's
//! threads.
//!
//! ```text
//! cargo run --release -p murmurate-net --example emulated_rate -- 1gbit/10ms/0% 3
//! ```

use murmurate_net::emulate::{LinkSpec, NatKind, Relay};
use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Size of a full QUIC datagram, and the number of datagrams in one call.
const DATAGRAM: usize = 1452;
const RUN: usize = 40;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let link: LinkSpec = args.next().as_deref().unwrap_or("1gbit/10ms/0%").parse()?;
    let seconds: f64 = args.next().as_deref().unwrap_or("3").parse()?;
    let offered = link.up.bits().ok_or("the link must have a rate")? as f64 * 1.1;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("relay-readers")
        .enable_all()
        .build()?;
    let _inside = runtime.enter();
    let mut relay = Relay::start(1)?;
    let [a, b] = [
        relay.add(NatKind::None, link)?,
        relay.add(NatKind::None, link)?,
    ];
    let from = UdpSocket::bind((a.inner, 4_001))?;
    let to = UdpSocket::bind((b.inner, 4_002))?;
    relay.publish_udp(a, 4_001)?;
    let public = relay.publish_udp(b, 4_002)?;
    socket2::SockRef::from(&to).set_recv_buffer_size(4 << 20)?;
    let received = Arc::new(AtomicU64::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let receiver = {
        let (received, over) = (Arc::clone(&received), Arc::clone(&over));
        std::thread::Builder::new()
            .name("receiver".to_owned())
            .spawn(move || receive(&to, &received, &over))?
    };
    let before = cpu();
    let since = Instant::now();
    send(&from, public.into(), offered, seconds)?;
    let span = since.elapsed().as_secs_f64();
    std::thread::sleep(link.rtt + link.queue + Duration::from_millis(100));
    over.store(true, Ordering::Relaxed);
    let after = cpu();
    let up = relay.counters(a).up;
    let mbit = |bytes: u64| bytes as f64 * 8e-6 / span;
    println!("offered {:.0} Mbit/s to the relay", mbit(up.offered.bytes));
    println!("carried {:.0} Mbit/s", mbit(up.delivered.bytes));
    println!(
        "received {:.0} Mbit/s",
        mbit(received.load(Ordering::Relaxed))
    );
    println!("queue dropped {} datagrams", up.dropped_queue.packets);
    println!(
        "kernel dropped {:?}, unsent {:?}",
        relay.kernel_drops(),
        relay.unsent()
    );
    for (thread, used) in after {
        let used = used - before.get(&thread).copied().unwrap_or(0.0);
        println!("{thread}: {used:.2} CPU s in {span:.1} s");
    }
    let _ = receiver.join();
    Ok(())
}

/// Sends at `rate` bits per second, a small burst every millisecond.
fn send(socket: &UdpSocket, to: SocketAddr, rate: f64, seconds: f64) -> Result<(), Box<dyn Error>> {
    let state = UdpSocketState::new(socket.into())?;
    let contents = vec![7; DATAGRAM * RUN];
    let since = Instant::now();
    let mut sent = 0.0;
    while since.elapsed().as_secs_f64() < seconds {
        while sent < since.elapsed().as_secs_f64() * rate {
            let transmit = Transmit {
                destination: to,
                ecn: None,
                contents: &contents,
                segment_size: Some(DATAGRAM),
                src_ip: None,
            };
            state.send(socket.into(), &transmit)?;
            sent += 8.0 * contents.len() as f64;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn receive(socket: &UdpSocket, received: &AtomicU64, over: &AtomicBool) {
    let Ok(state) = UdpSocketState::new(socket.into()) else {
        return;
    };
    let mut buffer = vec![0; 1 << 16];
    while !over.load(Ordering::Relaxed) {
        let mut meta = [RecvMeta::default()];
        match state.recv(
            socket.into(),
            &mut [IoSliceMut::new(&mut buffer)],
            &mut meta,
        ) {
            Ok(_) => {
                received.fetch_add(meta[0].len as u64, Ordering::Relaxed);
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_micros(200));
            }
            Err(_) => return,
        }
    }
}

/// CPU seconds of this process by thread name; empty where the system has no `/proc`.
fn cpu() -> BTreeMap<String, f64> {
    let mut used = BTreeMap::new();
    for entry in std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten()
    {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let Some((name, rest)) = stat.split_once('(').and_then(|(_, s)| s.rsplit_once(')')) else {
            continue;
        };
        // Ticks of 10 ms in user and kernel mode: columns 14 and 15 of the file, counted from one.
        let ticks = rest.split_whitespace().skip(11).take(2);
        let ticks: f64 = ticks.filter_map(|t| t.parse::<f64>().ok()).sum();
        *used.entry(name.to_owned()).or_default() += ticks / 100.0;
    }
    used
}
