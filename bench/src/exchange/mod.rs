//! `murmurate bench exchange`: averaging rounds between processes, without training.

mod codec;
mod process;
mod report;
mod still;

pub use codec::{CodecFlag, CodecFlagError};

pub(crate) use process::Process;
pub use report::{ExchangeReport, PeerTimes, table};
pub use still::{Lap, Laps, Still};

use crate::{BenchError, wrong};
use clap::Args;
use murmurate_net::emulate::{LinkSpec, Rate};
use murmurate_net::tcp::BulkChoice;
use murmurate_node::config::Config;
use murmurate_node::daemon::{self, RunOptions};
use murmurate_node::local::{Emulated, LocalNetwork, LocalOptions, Place};
use murmurate_node::progress::LogMode;
use murmurate_protocol::{Contribution, ExchangeKind};
use murmurate_strategies::grid::Strategy;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// The preset that is measured if none is given.
const PRESET: &str = "local-sgd";

/// The longest duration of a round without a link, before the benchmark gives up.
const ROUND_WAIT: Duration = Duration::from_secs(120);

/// Number of times that the f32 parameters must be able to pass a link in one round.
const ROUND_PASSES: u64 = 8;

/// The settings of a measurement, from the flags of `murmurate bench exchange`.
#[derive(Clone, Debug, Args)]
pub struct ExchangeOptions {
    /// Number of peers, each in its own process
    #[arg(long, default_value_t = 4)]
    pub nodes: usize,
    /// Number of parameters of the averaged model
    #[arg(long, default_value_t = 10_000_000)]
    pub params: u64,
    /// Preset whose rounds are measured; `murmurate strategies` lists all [default: local-sgd]
    #[arg(long)]
    pub preset: Option<String>,
    /// Codec with its parameters, such as top-k:density=0.01; `murmurate strategies` lists all
    /// [default: f32, or the preset's]
    #[arg(long, value_name = "NAME[:KEY=VALUE,...]")]
    pub codec: Option<CodecFlag>,
    /// How bulk streams travel: auto, quic, tls
    #[arg(long, default_value_t)]
    pub bulk: BulkChoice,
    /// Largest UDP payload in bytes, such as 1452 for the packets of Ethernet
    #[arg(long, value_name = "BYTES", conflicts_with = "link")]
    pub payload_max: Option<u16>,
    /// Number of measured rounds; one more warms up
    #[arg(long, default_value_t = 3)]
    pub rounds: u64,
    /// Put every peer behind an emulated link, as for `murmurate local`
    #[arg(long, value_name = "RATE/RTT/LOSS")]
    pub link: Option<LinkSpec>,
}

impl ExchangeOptions {
    /// The codec, or the preset whose codec it is.
    fn what(&self) -> String {
        match (&self.codec, &self.preset) {
            (Some(codec), None) => codec.to_string(),
            (Some(codec), Some(preset)) => format!("{preset}, {codec}"),
            (None, preset) => preset.as_deref().unwrap_or(PRESET).to_owned(),
        }
    }

    /// The exchange that is measured.
    ///
    /// # Errors
    /// If a flag has a value that cannot be measured.
    pub fn check(&self) -> Result<ExchangeKind, BenchError> {
        if !(2..=murmurate_protocol::limits::GROUP_MEMBERS_MAX).contains(&self.nodes) {
            return wrong("--nodes", "give 2 to 64 peers");
        }
        if !(1..=1 << 32).contains(&self.params) {
            return wrong("--params", "give 1 to 4294967296 parameters");
        }
        if !(1..=1000).contains(&self.rounds) {
            return wrong("--rounds", "give 1 to 1000 rounds");
        }
        check_preset(self.preset.as_deref().unwrap_or(PRESET))
    }

    /// The configuration of one peer. `place` has its addresses on the emulated network, if there is one.
    fn config(&self, dir: &Path, join: Option<&str>, place: Option<&Place>) -> String {
        let own = self.payload_max.filter(|_| place.is_none());
        let own = own.map_or_else(String::new, |bytes| format!("payload_max = {bytes}\n"));
        let join = join.map_or_else(String::new, |address| format!("{address:?}"));
        let network = match place {
            Some(Place {
                listen,
                announce,
                payload_max,
                bulk_port,
                ..
            }) => {
                let tcp =
                    bulk_port.map_or_else(String::new, |port| format!("bulk_port = {port}\n"));
                format!(
                    "{tcp}listen = {listen:?}\nannounce = {announce:?}\npayload_max = {payload_max}"
                )
            }
            None => "listen = [\"/ip4/127.0.0.1/udp/0/quic-v1\"]".to_owned(),
        };
        format!(
            "[run]\nname = \"bench\"\nopen = true\nrounds = {rounds}\nstart_with = {nodes}\n\
             [strategy]\npreset = {preset:?}\n\
             [strategy.synchronization]\ninner_steps = 1\n\
             {codec}\
             [shards]\nkind = \"own\"\n\
             [network]\nbulk = \"{bulk}\"\n{own}{network}\njoin = [{join}]\nmdns = false\n\
             [daemon]\ndir = {dir:?}\nhttp = \"127.0.0.1:0\"\nevaluate_every = 0\n",
            // One round to warm up, and one whose start ends the last measured round.
            rounds = self.rounds + 2,
            nodes = self.nodes,
            preset = self.preset.as_deref().unwrap_or(PRESET),
            codec = self
                .codec
                .as_ref()
                .map_or_else(String::new, CodecFlag::table),
            bulk = self.bulk,
            dir = dir.display().to_string(),
        )
    }
}

/// The exchange of a preset that peers without a model can follow.
pub(crate) fn check_preset(name: &str) -> Result<ExchangeKind, BenchError> {
    let strategy = Strategy::preset(name).or_else(|e| wrong("--preset", e.to_string()))?;
    let exchange = strategy.exchange();
    let gradients = strategy.contribution() == Contribution::Gradient;
    match exchange {
        ExchangeKind::None => wrong("--preset", format!("`{name}` exchanges nothing")),
        _ if gradients => wrong(
            "--preset",
            format!("`{name}` exchanges gradients: there are none"),
        ),
        _ => Ok(exchange),
    }
}

/// The longest duration of a round. A link adds the time for [`ROUND_PASSES`] passes of the parameters.
fn round_wait(options: &ExchangeOptions) -> Duration {
    let seconds = |link: LinkSpec| {
        let bits = options.params.saturating_mul(32 * ROUND_PASSES);
        let slower = [link.up, link.down]
            .into_iter()
            .filter_map(Rate::bits)
            .min();
        slower.map_or(0, |rate| bits / rate.max(1))
    };
    ROUND_WAIT + Duration::from_secs(options.link.map_or(0, seconds))
}

/// Starts the peers of [checked](ExchangeOptions::check) options, waits for their results, and combines them.
///
/// # Errors
/// If a peer does not start, fails or hangs.
pub async fn run_exchange(options: &ExchangeOptions) -> Result<ExchangeReport, BenchError> {
    let dir = tempdir(0)?;
    let result = run_in(options, &dir).await;
    // Only our own temporary directory is removed. A failure does not change the result.
    let _ = std::fs::remove_dir_all(&dir);
    Ok(ExchangeReport::new(
        options.nodes,
        options.params,
        &options.what(),
        options.rounds,
        options.link,
        result?,
    ))
}

pub(crate) fn tempdir(peer: usize) -> Result<PathBuf, BenchError> {
    let dir = std::env::temp_dir().join(format!("murmurate-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).map_err(|e| BenchError::Start {
        peer,
        reason: format!("{}: {e}", dir.display()),
    })?;
    Ok(dir)
}

async fn run_in(options: &ExchangeOptions, dir: &Path) -> Result<Vec<PeerTimes>, BenchError> {
    let network = LocalNetwork::start(&LocalOptions {
        nodes: options.nodes,
        emulated: Emulated {
            link: options.link,
            nat: None,
        },
        ..LocalOptions::default()
    })?;
    let place = |rank: usize| network.as_ref()?.places().get(rank);
    let start = |rank: usize, join: Option<&str>| {
        let own = dir.join(format!("peer-{rank}"));
        let text = options.config(&own, join, place(rank));
        Process::start(&text, &own, rank, options.params, &[])
    };
    let mut peers = vec![start(0, None)?];
    let address = peers[0].address().await?;
    for rank in 1..options.nodes {
        peers.push(start(rank, Some(&address))?);
    }
    let seconds = round_wait(options).as_secs() * (options.rounds + 2);
    let mut times = Vec::with_capacity(peers.len());
    for peer in &mut peers {
        let figures = timeout(Duration::from_secs(seconds), peer.figures()).await;
        times.push(figures.map_err(|_| BenchError::Late { seconds })??);
    }
    Ok(times)
}

/// How the process of one peer runs.
#[derive(Clone, Copy, Debug, Args)]
pub struct PeerOptions {
    /// Number of parameters of the model
    #[arg(long)]
    pub params: usize,
    /// Index of the peer
    #[arg(long)]
    pub rank: u32,
    /// Write events and checkpoints, as a daemon that trains
    #[arg(long)]
    pub keep: bool,
    /// Milliseconds of an inner step
    #[arg(long, default_value_t = 0)]
    pub train_ms: u64,
}

/// Runs the daemon of one peer without a model until its rounds are complete.
///
/// # Errors
/// As [`daemon::run`].
pub fn run_peer(config: Config, peer: PeerOptions) -> Result<PeerTimes, BenchError> {
    let laps = Laps::default();
    let peers = config.run.start_with;
    let options = RunOptions {
        log: LogMode::Json,
        ephemeral: !peer.keep,
        ..RunOptions::default()
    };
    let noted = Arc::clone(&laps);
    let report = daemon::run_with_trainer(config, options, |_| {
        let still = Still::new(peer.params, peer.rank, peers as u32, noted);
        Ok(Box::new(still.pacing(Duration::from_millis(peer.train_ms))))
    })?;
    let laps = laps.lock().unwrap_or_else(PoisonError::into_inner);
    // The first round warms up, and the time after the last one does not belong to a round.
    let rounds = || laps.windows(2).skip(1);
    let seconds = |f: fn(&Lap, &Lap) -> Duration| {
        rounds()
            .map(move |pair| f(&pair[0], &pair[1]).as_secs_f64())
            .collect()
    };
    Ok(PeerTimes {
        round_s: seconds(|a, b| b.at - a.at),
        cpu_s: seconds(|a, b| b.cpu - a.cpu),
        fresh_pages: rounds()
            .map(|pair| pair[1].fresh_pages - pair[0].fresh_pages)
            .collect(),
        relative_error: laps.last().map_or(0.0, |lap| {
            (lap.error / lap.norm.max(f64::MIN_POSITIVE)).sqrt()
        }),
        digest: report.digest,
        wire_bytes_sent: report.bytes_sent.wire,
        wire_bytes_received: report.bytes_received.wire,
        peak_rss_bytes: report.peak_rss_bytes,
        voids: report.no_result.voids,
        bulk: report.bulk.into_values().collect(),
    })
}
