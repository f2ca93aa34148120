//! Watches the peers of `murmurate bench join` through their logs of events.

use crate::BenchError;
use crate::exchange::Process;
use futures::future::{Either, select, select_all};
use murmurate_node::events::{Entry, Kind, read_dir};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::{Duration, Instant};

/// How often the logs are read.
const EVERY: Duration = Duration::from_millis(20);

/// The newcomer's wait for a state, in its log.
const STATE: &str = "state";

/// Entries this close to each other are of one moment, seconds.
const SAME_MOMENT: f64 = 0.005;

/// A peer and its directory.
pub(super) struct Member {
    pub(super) process: Process,
    pub(super) dir: PathBuf,
}

/// When the newcomer did what, as Unix time in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Joined {
    pub(super) asked: f64,
    /// Donors had offered one, and it began to fetch it.
    pub(super) offered: f64,
    /// It was there; `None` where that took too little time for the event log.
    pub(super) fetched: Option<f64>,
    /// It was loaded, the rounds since were replayed, and it trained.
    pub(super) trains: f64,
    pub(super) donors: u32,
    /// States that were fetched; more than one if the first was too old in the end.
    pub(super) states: u32,
}

/// Waits until `check` returns something.
///
/// # Errors
/// If a peer ends, or it takes too long.
pub(super) async fn wait_for<T>(
    limit: Duration,
    members: &mut [Member],
    mut check: impl FnMut() -> Option<T>,
) -> Result<T, BenchError> {
    let ends = members.iter_mut().map(|m| Box::pin(m.process.ended()));
    let mut ended = select_all(ends);
    let began = Instant::now();
    while began.elapsed() < limit {
        if let Some(found) = check() {
            return Ok(found);
        }
        match select(&mut ended, pin!(tokio::time::sleep(EVERY))).await {
            Either::Left(((error, ..), _)) => return Err(error),
            Either::Right(_) => {}
        }
    }
    Err(BenchError::Late {
        seconds: limit.as_secs(),
    })
}

/// The end of a round: when, as Unix time, and after how many seconds.
pub(super) type Ended = (f64, f64);

pub(super) fn donor_rounds(dir: &Path) -> Vec<Ended> {
    let ended = |entry: Entry| match entry.kind {
        Kind::RoundEnded { seconds, .. } => Some((entry.time, seconds)),
        _ => None,
    };
    entries(dir).into_iter().filter_map(ended).collect()
}

/// The share of a state's bytes that lie in a newcomer's directory.
pub(super) fn fetched_share(dir: &Path) -> Option<f64> {
    let file = dir.join("incoming.state").metadata().ok()?;
    // The file has its full length from the start, and holes where chunks are missing.
    Some((file.blocks() * 512) as f64 / file.len().max(1) as f64)
}

/// The times of a newcomer's last life, once it trains.
pub(super) fn joined(dir: &Path) -> Option<Joined> {
    joined_in(&entries(dir))
}

fn joined_in(entries: &[Entry]) -> Option<Joined> {
    let started = entries
        .iter()
        .rposition(|e| matches!(e.kind, Kind::Started { .. }))?;
    let life = &entries[started..];
    let phase = |wanted: &str| {
        let is = |e: &&Entry| matches!(&e.kind, Kind::Phase { phase } if phase == wanted);
        life.iter().find(is).map(|e| e.time)
    };
    let trains = phase("train")?;
    let life = || life.iter().filter(|e| e.time <= trains);
    let mut joined = Joined {
        asked: phase("join")?,
        offered: 0.0,
        fetched: None,
        trains,
        donors: 0,
        states: 0,
    };
    for entry in life() {
        match &entry.kind {
            Kind::PeerUp { .. } if joined.states == 0 && joined.offered == 0.0 => {
                // It asks the first peer that it meets.
                joined.offered = entry.time;
                joined.asked = entry.time;
            }
            Kind::CatchUp { donors, .. } => {
                (joined.offered, joined.donors) = (entry.time, *donors);
                joined.states += 1;
            }
            // The wait for an offer began before it.
            Kind::Waited { what, waited_s, .. } if what == STATE && joined.states > 0 => {
                let since = entry.time - waited_s;
                if since >= joined.offered - SAME_MOMENT
                    && joined.fetched.is_none_or(|at| at < joined.offered)
                {
                    joined.fetched = Some(entry.time);
                }
            }
            _ => {}
        }
    }
    (joined.states > 0).then_some(joined)
}

fn entries(dir: &Path) -> Vec<Entry> {
    // The log of a peer that has just started is not there yet.
    read_dir(dir).map_or(Vec::new(), |(entries, _)| entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use murmurate_node::events::VERSION;

    #[test]
    fn the_last_life_of_a_newcomer_counts() {
        let state = |waited_s| Kind::Waited {
            what: STATE.to_owned(),
            waited_s,
            allowed_s: 8.0,
            expired: false,
        };
        let phase = |phase: &str| Kind::Phase {
            phase: phase.to_owned(),
        };
        let started = || Kind::Started {
            version: "1".to_owned(),
            run: "bench".to_owned(),
            name: None,
        };
        let kinds = [
            (1.0, started()),
            (1.5, phase("join")),
            (2.0, Kind::CatchUp { to: 3, donors: 1 }),
            (10.0, started()),
            (10.5, phase("join")),
            (
                10.6,
                Kind::PeerUp {
                    peer: "ab".to_owned(),
                },
            ),
            (
                10.7,
                Kind::PeerUp {
                    peer: "cd".to_owned(),
                },
            ),
            (11.0, Kind::CatchUp { to: 4, donors: 3 }),
            (11.0, state(0.4)),
            (12.5, state(1.5)),
            (12.7, phase("train")),
            (13.0, state(0.1)),
        ];
        let entry = |(time, kind)| Entry {
            v: VERSION,
            seq: 0,
            time,
            daemon: "me".to_owned(),
            round: 0,
            kind,
        };
        let entries: Vec<Entry> = kinds.map(entry).into();
        let wanted = Joined {
            asked: 10.6,
            offered: 11.0,
            fetched: Some(12.5),
            trains: 12.7,
            donors: 3,
            states: 1,
        };
        assert_eq!(joined_in(&entries), Some(wanted));
        assert_eq!(joined_in(&entries[..10]), None, "it does not train yet");
    }
}
