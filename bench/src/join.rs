//! `murmurate bench join`: a newcomer takes over the state of peers that are in rounds.

mod report;
mod watch;

pub use report::{JoinReport, join_table};

use crate::BenchError;
use crate::exchange::{Process, tempdir};
use murmurate_net::tcp::BulkChoice;
use std::path::{Path, PathBuf};
use std::time::Duration;
use watch::{donor_rounds, wait_for};

/// Rounds that the donors do before the newcomer comes.
const ROUNDS_BEFORE: usize = 3;

/// How long the newcomer, and before it the donors' first rounds, may take.
const WAIT: Duration = Duration::from_secs(300);

/// What to measure, from the flags of `murmurate bench join`.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// Number of peers that are in rounds.
    pub donors: usize,
    /// Number of parameters of the model.
    pub params: u64,
    /// The preset whose state is taken over.
    pub preset: String,
    /// Duration of an inner step, of which a round has one.
    pub train: Duration,
    /// How bulk streams travel.
    pub bulk: BulkChoice,
    /// Kills the newcomer once this share of the state is there, and starts it again.
    pub kill_at: Option<f64>,
}

impl JoinOptions {
    fn check(&self) -> Result<(), BenchError> {
        let wrong = |flag, message: &str| {
            Err(BenchError::Flag {
                flag,
                message: message.to_owned(),
            })
        };
        if !(1..murmurate_protocol::limits::GROUP_MEMBERS_MAX).contains(&self.donors) {
            return wrong("--donors", "give 1 to 63 peers");
        }
        if !(1..=1 << 32).contains(&self.params) {
            return wrong("--params", "give 1 to 4294967296 parameters");
        }
        if self.kill_at.is_some_and(|at| !(0.0..1.0).contains(&at)) {
            return wrong("--kill-at", "give a share of the state from 0 to below 1");
        }
        Ok(())
    }

    fn config(&self, dir: &Path, join: Option<&str>) -> String {
        let join = join.map_or_else(String::new, |address| format!("{address:?}"));
        format!(
            "[run]\nname = \"bench\"\nopen = true\nrounds = 0\nstart_with = {donors}\n\
             [strategy]\npreset = {preset:?}\n\
             [strategy.synchronization]\ninner_steps = 1\n\
             [network]\nbulk = \"{bulk}\"\nlisten = [\"/ip4/127.0.0.1/udp/0/quic-v1\"]\n\
             join = [{join}]\nmdns = false\n\
             [daemon]\ndir = {dir:?}\nhttp = \"127.0.0.1:0\"\nevaluate_every = 0\nsave_every_s = 86400\n",
            donors = self.donors,
            preset = self.preset,
            bulk = self.bulk,
            dir = dir.display().to_string(),
        )
    }
}

/// A peer and its directory.
struct Member {
    process: Process,
    dir: PathBuf,
}

/// Starts the donors and, when they are in rounds, the newcomer, and measures until it trains.
///
/// # Errors
/// If a flag is invalid, or a peer does not start, fails or hangs.
pub async fn run_join(options: &JoinOptions) -> Result<JoinReport, BenchError> {
    options.check()?;
    let dir = tempdir(0)?;
    let result = run_in(options, &dir).await;
    // Only our own temporary directory is removed. A failure does not change the result.
    let _ = std::fs::remove_dir_all(&dir);
    result
}

async fn run_in(options: &JoinOptions, dir: &Path) -> Result<JoinReport, BenchError> {
    let start = |rank: usize, join: Option<&str>| {
        let dir = dir.join(format!("peer-{rank}"));
        let flags = [
            "--keep".to_owned(),
            format!("--train-ms={}", options.train.as_millis()),
        ];
        let config = options.config(&dir, join);
        let process = Process::start(&config, &dir, rank, options.params, &flags)?;
        Ok::<_, BenchError>(Member { process, dir })
    };
    let mut donors = vec![start(0, None)?];
    let address = donors[0].process.address().await?;
    for rank in 1..options.donors {
        donors.push(start(rank, Some(&address))?);
    }
    let first = donors[0].dir.clone();
    let before = wait_for(WAIT, &mut donors, || {
        let rounds = donor_rounds(&first);
        (rounds.len() >= ROUNDS_BEFORE).then_some(rounds)
    });
    let before = before.await?;
    // The newcomer is the last of all.
    donors.push(start(options.donors, Some(&address))?);
    let dir = donors[options.donors].dir.clone();
    let mut killed_at = None;
    if let Some(share) = options.kill_at {
        let enough = || watch::fetched_share(&dir).filter(|here| *here > 0.0 && *here >= share);
        killed_at = Some(wait_for(WAIT, &mut donors, enough).await?);
        if let Some(mut newcomer) = donors.pop() {
            newcomer.process.kill().await;
        }
        donors.push(start(options.donors, Some(&address))?);
    }
    let joined = wait_for(WAIT, &mut donors, || watch::joined(&dir)).await?;
    let after = donor_rounds(&first);
    let peaks: Vec<Option<u64>> = donors.iter().map(|m| m.process.peak_rss_bytes()).collect();
    Ok(JoinReport::new(
        options,
        joined,
        (&before, &after),
        &peaks,
        killed_at,
    ))
}
