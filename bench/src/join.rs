//! `murmurate bench join`: a newcomer takes over the state of peers that are in rounds.

mod options;
mod report;
mod watch;

pub use options::JoinOptions;
pub use report::{JoinReport, join_table};

use crate::BenchError;
use crate::exchange::{Process, tempdir};
use std::path::Path;
use std::time::Duration;
use watch::{Member, donor_rounds, wait_for};

/// Rounds that the donors do before the newcomer comes.
const ROUNDS_BEFORE: usize = 3;

/// How long the newcomer, and before it the donors' first rounds, may take.
const WAIT: Duration = Duration::from_secs(300);

/// Starts the donors of [checked](JoinOptions::check) options and, when they are in rounds, the newcomer, and
/// measures until it trains.
///
/// # Errors
/// If a peer does not start, fails or hangs.
pub async fn run_join(options: &JoinOptions) -> Result<JoinReport, BenchError> {
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
            format!("--train-ms={}", options.train_ms),
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
        let there = || watch::fetched_share(&dir).filter(|here| *here > 0.0 && *here >= share);
        let enough = || match watch::joined(&dir) {
            Some(_) => Some(None),
            None => there().map(Some),
        };
        let at = wait_for(WAIT, &mut donors, enough).await?;
        let Some(at) = at else {
            return crate::wrong(
                "--kill-at",
                "the newcomer had joined before; give more --params",
            );
        };
        killed_at = Some(at);
        if let Some(mut newcomer) = donors.pop() {
            newcomer.process.kill().await;
        }
        donors.push(start(options.donors, Some(&address))?);
    }
    let joined = wait_for(WAIT, &mut donors, || watch::joined(&dir)).await?;
    // The round that the newcomer entered beside counts, too.
    let after = wait_for(WAIT, &mut donors, || {
        let rounds = donor_rounds(&first);
        let ended = rounds.last().is_some_and(|(at, _)| *at >= joined.trains);
        ended.then_some(rounds)
    });
    let after = after.await?;
    let peaks: Vec<Option<u64>> = donors.iter().map(|m| m.process.peak_rss_bytes()).collect();
    Ok(JoinReport::new(
        options,
        joined,
        (&before, &after),
        &peaks,
        killed_at,
    ))
}
