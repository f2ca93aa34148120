//! The command line of `murmurate bench`.

use clap::{Args, Subcommand};
use murmurate_bench::exchange::CodecFlag;
use murmurate_bench::net::Way;
use murmurate_bench::parse_bytes;
use murmurate_net::congestion::Congestion;
use murmurate_net::emulate::LinkSpec;
use murmurate_net::tcp::BulkChoice;
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
    /// Measure transfers between two processes or machines: our bulk connections, quinn, libp2p,
    /// TLS and TCP
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
    /// Number of peers, each in its own process
    #[arg(long, default_value_t = 4)]
    pub(crate) nodes: usize,
    /// Number of parameters of the averaged model
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) params: u64,
    /// Preset whose rounds are measured; `murmurate strategies` lists all [default: local-sgd]
    #[arg(long)]
    pub(crate) preset: Option<String>,
    /// Codec with its parameters, such as top-k:density=0.01; `murmurate strategies` lists all
    /// [default: f32, or the preset's]
    #[arg(long, value_name = "NAME[:KEY=VALUE,...]")]
    pub(crate) codec: Option<CodecFlag>,
    /// How bulk streams travel: auto, quic, tls
    #[arg(long, default_value_t)]
    pub(crate) bulk: BulkChoice,
    /// Largest UDP payload in bytes, such as 1452 for the packets of Ethernet
    #[arg(long, value_name = "BYTES", conflicts_with = "link")]
    pub(crate) payload_max: Option<u16>,
    /// Number of measured rounds; one more warms up
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: u64,
    /// Put every peer behind an emulated link, as for `murmurate local`
    #[arg(long, value_name = "RATE/RTT/LOSS")]
    pub(crate) link: Option<LinkSpec>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchCodecsArgs {
    /// Codecs with their parameters, such as top-k:density=0.01 [default: all]
    #[arg(value_name = "CODEC[:KEY=VALUE,...]")]
    pub(crate) codecs: Vec<CodecFlag>,
    /// Number of values of the buffer
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) values: usize,
    /// Runs of each, of which the best counts
    #[arg(long, default_value_t = 7)]
    pub(crate) runs: u32,
    /// Use no vector instructions
    #[arg(long)]
    pub(crate) scalar: bool,
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
    /// Number of peers that are in rounds, each in its own process
    #[arg(long, default_value_t = 3)]
    pub(crate) donors: usize,
    /// Number of parameters of the model
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) params: u64,
    /// Preset whose state is taken over; `murmurate strategies` lists all
    #[arg(long, default_value = "local-sgd")]
    pub(crate) preset: String,
    /// Milliseconds that the peers of a round train
    #[arg(long, default_value_t = 1000)]
    pub(crate) train_ms: u64,
    /// How bulk streams travel: auto, quic, tls
    #[arg(long, default_value_t)]
    pub(crate) bulk: BulkChoice,
    /// Kill the newcomer once this share of the state is there (0 to 1), and start it again
    #[arg(long, value_name = "SHARE")]
    pub(crate) kill_at: Option<f64>,
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
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    #[arg(long)]
    pub(crate) params: usize,
    #[arg(long)]
    pub(crate) rank: u32,
    #[arg(long, value_name = "PID")]
    pub(crate) parent: u32,
    #[arg(long)]
    pub(crate) keep: bool,
    #[arg(long, default_value_t = 0)]
    pub(crate) train_ms: u64,
}
