//! The flags of `murmurate local`.

use super::offered::{self, offered};
use clap::Args;
use murmurate_net::emulate::{LinkSpec, NatKind};
use murmurate_node::local::{
    Cut, FaultAt, HealAt, IslandsArg, KillEvery, LateAt, LiarAt, PartitionAt, ShardsArg,
};
use std::ffi::OsString;
use std::path::PathBuf;

/// What `--demo` decides itself.
const DEMO_DECIDES: [&str; 17] = [
    "nodes",
    "islands",
    "preset",
    "config",
    "until_accuracy",
    "until_loss",
    "shards",
    "kill",
    "kill_every",
    "late",
    "liar",
    "partition",
    "heal",
    "cut",
    "stop",
    "link",
    "nat",
];

/// Daemons are numbered from 0; daemon 0 is the one that the others join first.
#[derive(Debug, Args)]
pub(crate) struct LocalArgs {
    /// Number of daemons
    #[arg(long, default_value_t = 4)]
    pub(crate) nodes: usize,
    /// Number of daemons and of trainers in each: 2x4 is two peers that are islands of four ranks
    #[arg(long, value_name = "PEERSxRANKS", conflicts_with = "nodes")]
    pub(crate) islands: Option<IslandsArg>,
    /// Strategy preset [default: diloco for images with mlp, else local-adam]; `murmurate strategies`
    /// lists all
    #[arg(long, value_parser = offered(str::parse::<String>, offered::presets), hide_possible_values = true)]
    pub(crate) preset: Option<String>,
    /// Configuration for all daemons, as for `murmurate run`
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// End after this many rounds [default: enough for 6000 inner steps]
    #[arg(long)]
    pub(crate) rounds: Option<u64>,
    /// End when every daemon has reached this accuracy; exit with an error if one does not
    /// [default: 0.96 for the bundled images, but none with --rounds or preset none]
    #[arg(long, value_name = "SHARE")]
    pub(crate) until_accuracy: Option<f64>,
    /// End when every daemon has reached this loss, in nats; exit with an error if one does not
    #[arg(long, value_name = "LOSS")]
    pub(crate) until_loss: Option<f64>,
    /// Division of the data: dealt, iid, by-label, dirichlet:ALPHA [default: by-label for images, but iid
    /// with --kill or --stop, because a lost daemon takes its classes with it]
    #[arg(long, value_parser = offered(str::parse::<ShardsArg>, offered::shards), hide_possible_values = true)]
    pub(crate) shards: Option<ShardsArg>,
    /// Seed of model, data division and order
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Data: a path, or `bundled`
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Option<String>,
    /// Model to start from, the same for all daemons: a file or folder as `murmurate export` writes
    #[arg(long, value_name = "PATH")]
    pub(crate) init: Option<PathBuf>,
    /// Device that trains: flex (CPU), wgpu, wgpu:N, cuda, cuda:N
    #[arg(long, value_parser = offered(str::parse::<String>, offered::devices), hide_possible_values = true)]
    pub(crate) device: Option<String>,
    /// Parent of the daemons' directories [default: a temporary one, removed on success]
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
    /// Open the page of the swarm in a browser
    #[arg(long)]
    pub(crate) open_browser: bool,
    /// Show in about a minute what a swarm survives: a daemon that joins late, a network that is cut and
    /// whole again, and a daemon that is killed during an exchange, with a sentence for each. --rounds makes
    /// it shorter or longer than 110 rounds
    #[arg(long, conflicts_with_all = DEMO_DECIDES)]
    pub(crate) demo: bool,
    /// Show what `murmurate top` shows, of the first daemon that lives, in place of a line for each
    #[arg(long)]
    pub(crate) top: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Kill daemon N (SIGKILL) in round R: N@round:R[:train|exchange|apply]
    #[arg(long, value_name = "N@round:R")]
    pub(crate) kill: Vec<FaultAt>,
    /// Kill a random daemon (SIGKILL) at this interval and restart it after 2 s, until a daemon has
    /// completed all rounds: 5s, 500ms, 1min; --seed determines the choice
    #[arg(long, value_name = "TIME")]
    pub(crate) kill_every: Option<KillEvery>,
    /// Start daemon N when the others have reached round R
    #[arg(long, value_name = "N@round:R")]
    pub(crate) late: Vec<LateAt>,
    /// Let daemon N break the protocol, from round ROUND if one is given: `N@MODE[:ROUND]` with weight,
    /// poison, sign-flip, owner-lie, equivocate, propose, decided, behind, state, slot, withhold,
    /// silent, flood, random, ballot, void, rare or slow-donor; may be given several times. The results are
    /// those of the honest daemons
    #[arg(long, value_name = "N@MODE")]
    pub(crate) liar: Vec<LiarAt>,
    /// Split the swarm in round R: cut all links between the sides. Each side goes on, and after --heal
    /// they are merged by weight
    #[arg(long, value_name = "0,1|2,3@round:R")]
    pub(crate) partition: Option<PartitionAt>,
    /// Let the sides of --partition reach each other again when they are in round S
    #[arg(long, value_name = "@round:S")]
    pub(crate) heal: Option<HealAt>,
    /// Let daemons A and B not reach each other: A-B for the whole run, or A-B@START+LENGTH such as
    /// 2-3@5s+10s. With A>B only what A sends to B is lost. Their link then goes through another daemon. May
    /// be given several times
    #[arg(long, value_name = "A-B")]
    pub(crate) cut: Vec<Cut>,
    /// Record the inputs of daemon N's peer in DIR/N.rec, for `murmurate sim --replay`
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// Stop daemon N (SIGSTOP) in round R
    #[arg(long, value_name = "N@round:R")]
    pub(crate) stop: Vec<FaultAt>,
    /// Put every daemon behind an emulated link: RATE/RTT/LOSS, such as 50mbit/100ms/1%, then keys
    /// such as /queue=100ms,jitter=5ms,burst=8,up=20mbit. The path between two daemons consists of
    /// their two links
    #[arg(long, value_name = "RATE/RTT/LOSS")]
    pub(crate) link: Option<LinkSpec>,
    /// Put every daemon except the first behind an emulated router: none, full-cone,
    /// port-restricted, symmetric
    #[arg(long, value_name = "KIND", value_parser = offered(str::parse::<NatKind>, offered::nats), hide_possible_values = true)]
    pub(crate) nat: Option<NatKind>,
    /// Let a peer without a certificate attack the daemons while they train
    #[arg(long)]
    pub(crate) stranger: bool,
    /// Afterwards train the same daemons with preset none for this many seconds, to compute
    /// utilization; 0 skips this [default: 2, or 0 with a training loop, which would be started again]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) baseline: Option<f64>,
    /// After `--`: the training loop of every daemon, which attaches to it
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
