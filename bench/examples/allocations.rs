//! Allocations per GB sent over a bulk connection, compared with raw quinn, both ends counted.
//!
//! `cargo run --release -p murmurate-bench --example allocations [-- --mb N --rounds N]`. One
//! thread is counted, so both ends and their tasks run on it. Connections are made before the count
//! begins. Rounds alternate, because retransmissions, which allocate again, differ from round to
//! round.

use bytes::Bytes;
use libp2p::PeerId;
use libp2p::identity::Keypair;
use murmurate_bench::net::Tuning;
use murmurate_net::quic::{Config, Endpoint, Kind, PathStats, multiaddr_of};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Bytes of one write, as many as the exchange encodes at a time.
const CHUNK: usize = 256 << 10;

/// Any free port of loopback.
const HERE: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

fn endpoint(config: &Config) -> Outcome<Endpoint> {
    let admit_all = Arc::new(|_: &PeerId, _: Kind| true);
    // The transport is for a swarm, and there is none.
    Ok(Endpoint::new(config.clone(), &Keypair::generate_ed25519(), admit_all)?.0)
}

/// A connection, and the values that keep it alive.
struct Pair {
    near: quinn::Connection,
    far: quinn::Connection,
    _keep: Box<dyn std::any::Any>,
}

async fn bulk(config: &Config) -> Outcome<Pair> {
    let (dialer, listener) = (endpoint(config)?, endpoint(config)?);
    let at = multiaddr_of(listener.listen(HERE.into())?);
    let (near, far) = tokio::join!(
        dialer.dial_bulk(&at, listener.local_peer_id()),
        listener.accept_bulk()
    );
    let (near, far) = (near?, far.ok_or("the listener is gone")?);
    Ok(Pair {
        near: near.quinn().clone(),
        far: far.quinn().clone(),
        _keep: Box::new((near, far, dialer, listener)),
    })
}

async fn raw(config: &Config) -> Outcome<Pair> {
    let (dialer, listener) = (endpoint(config)?, endpoint(config)?);
    let mut server = listener.quinn_server()?;
    server.transport_config(Arc::default());
    let mut client = dialer.quinn_client(Kind::Bulk, Some(listener.local_peer_id()))?;
    client.transport_config(Arc::default());
    let server = quinn::Endpoint::server(server, SocketAddr::from(HERE))?;
    let bare = quinn::Endpoint::client(SocketAddr::from(HERE))?;
    let near = bare.connect_with(client, server.local_addr()?, "l")?;
    let accept = async {
        server
            .accept()
            .await
            .ok_or("the listener is gone")?
            .await
            .map_err(|e| e.to_string())
    };
    let (near, far) = tokio::join!(near, accept);
    Ok(Pair {
        near: near?,
        far: far?,
        _keep: Box::new((bare, server)),
    })
}

async fn transfer(pair: &Pair, bytes: usize, chunk: &Bytes) -> Outcome<()> {
    let sending = async {
        let mut stream = pair.near.open_bi().await?.0;
        let mut left = bytes;
        while left > 0 {
            let length = left.min(CHUNK);
            stream.write_chunk(chunk.slice(..length)).await?;
            left -= length;
        }
        stream.finish()?;
        stream.stopped().await?;
        Outcome::Ok(())
    };
    let receiving = async {
        let (_answer, mut stream) = pair.far.accept_bi().await?;
        while stream.read_chunk(CHUNK, true).await?.is_some() {}
        Outcome::Ok(())
    };
    tokio::try_join!(sending, receiving).map(drop)
}

/// Allocations per GB, and the fraction of the bytes that was lost on the path.
fn count(pair: &Pair, runtime: &tokio::runtime::Runtime, bytes: usize) -> Outcome<(f64, f64)> {
    let chunk = Bytes::from(vec![7; CHUNK]);
    // A transfer to warm up, because buffers that live as long as the connection must not count.
    runtime.block_on(transfer(pair, CHUNK * 16, &chunk))?;
    let mut result = Ok(());
    let info = allocation_counter::measure(|| {
        result = runtime.block_on(transfer(pair, bytes, &chunk));
    });
    result?;
    let lost = PathStats::of(&pair.near).lost_share();
    Ok((info.count_total as f64 * 1e9 / bytes as f64, lost))
}

fn main() -> Outcome<()> {
    let (mut megabytes, mut rounds) = (400, 5);
    let mut given = std::env::args().skip(1);
    while let (Some(name), Some(value)) = (given.next(), given.next()) {
        match name.as_str() {
            "--mb" => megabytes = value.parse()?,
            "--rounds" => rounds = value.parse()?,
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let config = Tuning::default().config()?;
    let (mut of_raw, mut of_bulk) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        for (name, counts) in [("quinn", &mut of_raw), ("bulk", &mut of_bulk)] {
            let pair = runtime.block_on(async {
                match name {
                    "quinn" => raw(&config).await,
                    _ => bulk(&config).await,
                }
            })?;
            let (allocations, lost) = count(&pair, &runtime, megabytes * 1_000_000)?;
            println!(
                "{name:6} {allocations:10.0} allocations a GB, {:.2} % lost",
                lost * 100.0
            );
            counts.push(allocations);
        }
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    println!(
        "bulk / quinn, medians: {:.3}",
        median(&mut of_bulk) / median(&mut of_raw)
    );
    Ok(())
}
