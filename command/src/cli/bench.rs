//! The command line of `murmurate bench`.

use clap::{Args, Subcommand};
use murmurate_bench::codecs::CodecsOptions;
use murmurate_bench::exchange::{ExchangeOptions, PeerOptions};
use murmurate_bench::join::JoinOptions;
use murmurate_bench::net::Way;
use murmurate_bench::parse_bytes;
use murmurate_net::congestion::Congestion;
use murmurate_net::emulate::LinkSpec;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) what: Bench,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Measure whole averaging rounds between processes, without training
    #[command(after_help = super::examples::BENCH_EXCHANGE)]
    Exchange(BenchExchangeArgs),
    /// Measure how a newcomer takes over the state of peers that are in rounds
    #[command(after_help = super::examples::BENCH_JOIN)]
    Join(BenchJoinArgs),
    /// Measure how fast codecs encode and decode on one core
    #[command(after_help = super::examples::BENCH_CODECS)]
    Codecs(BenchCodecsArgs),
    /// Measure transfers between two processes or machines: our bulk connections, quinn, libp2p, TLS and TCP
    #[command(after_help = super::examples::BENCH_NET)]
    Net(BenchNetArgs),
    /// One end of `bench net`
    #[command(hide = true)]
    NetEnd(BenchNetEndArgs),
    /// One process of `bench exchange`
    #[command(hide = true)]
    Peer(BenchPeerArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BenchExchangeArgs {
    #[command(flatten)]
    pub(crate) options: ExchangeOptions,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchCodecsArgs {
    #[command(flatten)]
    pub(crate) options: CodecsOptions,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchNetArgs {
    /// Bytes of a transfer, such as 400MB or 64MiB
    #[arg(long, default_value = "400MB", value_parser = parse_bytes)]
    pub(crate) bytes: u64,
    /// End a transfer after this many seconds; bytes that arrived before count
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) limit: u64,
    /// Transfers for each way, in turn with the others
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: u32,
    /// Ways to measure: quinn, bulk, tls, control, tcp-noise, tcp [default: all]
    #[arg(long, value_delimiter = ',', value_name = "WAY,...")]
    pub(crate) ways: Vec<Way>,
    /// Congestion control of our own connections: bbr3, cubic
    #[arg(long, default_value_t)]
    pub(crate) congestion: Congestion,
    /// Spread the bytes of `bulk` over this many connections
    #[arg(long, value_name = "COUNT")]
    pub(crate) connections: Option<u32>,
    /// Spread the bytes of `bulk` over this many streams of each connection
    #[arg(long, value_name = "COUNT")]
    pub(crate) streams: Option<u32>,
    /// Put an emulated link between the ends, as for `murmurate local`
    #[arg(long, value_name = "RATE/RTT/LOSS", conflicts_with = "join")]
    pub(crate) link: Option<LinkSpec>,
    /// Send to `bench net --listen` on another machine
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) join: Option<SocketAddr>,
    /// Serve as the far end for --join on other machines, until interrupted: every host that
    /// reaches this port and the three after it can send
    #[arg(long, value_name = "IP:PORT", conflicts_with_all = ["join", "link", "ways", "json"])]
    pub(crate) listen: Option<SocketAddr>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchJoinArgs {
    #[command(flatten)]
    pub(crate) options: JoinOptions,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchNetEndArgs {
    #[arg(long, value_name = "JSON")]
    pub(crate) task: String,
}

#[derive(Debug, Args)]
pub(crate) struct BenchPeerArgs {
    #[command(flatten)]
    pub(crate) options: PeerOptions,
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    #[arg(long, value_name = "PID")]
    pub(crate) parent: u32,
}
