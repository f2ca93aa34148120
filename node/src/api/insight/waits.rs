//! What a peer is waiting for, and how long rounds waited for each peer.

use murmurate_protocol::{PeerId, SortedMap, Time, Waiting};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Peers of a round whose waits are added up. A column of a grid has as many members at most.
const PEERS_MAX: usize = 64;

/// Peers that a round names: those that it waited for the longest.
const NAMED_MAX: usize = 3;

/// The longest time between two reads that counts as waiting: a process that was stopped waited for itself.
const STEP_MAX: Duration = Duration::from_secs(1);

/// A wait that is under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WaitNow {
    /// Kind of the wait: the word of a [`Wait`](murmurate_protocol::Wait).
    pub what: String,
    /// The fragment that waits.
    pub fragment: u16,
    /// The peers that it is for, hexadecimal; empty where it is for none in particular.
    pub peers: Vec<String>,
    /// Unix time at which it began, seconds.
    pub since_unix_s: f64,
    /// Unix time at which the daemon gives up or asks others, seconds.
    pub deadline_unix_s: f64,
}

impl From<&Waiting> for WaitNow {
    fn from(waiting: &Waiting) -> Self {
        Self {
            what: waiting.wait.word().to_owned(),
            fragment: waiting.fragment.0,
            peers: waiting.peers.iter().map(PeerId::to_hex).collect(),
            since_unix_s: waiting.since.as_secs_f64(),
            deadline_unix_s: waiting.deadline.as_secs_f64(),
        }
    }
}

/// How long the present round has waited for each peer, added up from regular reads. Time that is
/// spent on several peers is divided among them.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitedFor {
    last: Option<Time>,
    seconds: SortedMap<PeerId, f64>,
}

impl WaitedFor {
    pub(super) fn sample(&mut self, now: Time, waits: &[Waiting]) {
        let step = self.last.map_or(Duration::ZERO, |last| now.since(last));
        self.last = Some(now);
        let mut peers: Vec<PeerId> = waits.iter().flat_map(|w| w.peers.clone()).collect();
        peers.sort_unstable();
        peers.dedup();
        let each = step.min(STEP_MAX).as_secs_f64() / peers.len().max(1) as f64;
        for peer in peers {
            if self.seconds.contains_key(&peer) || self.seconds.len() < PEERS_MAX {
                *self.seconds.entry(peer).or_default() += each;
            }
        }
    }

    /// The peers that the round waited for the longest, and begins the next round.
    pub(super) fn take(&mut self) -> Vec<(String, f64)> {
        let mut all: Vec<(PeerId, f64)> = std::mem::take(&mut self.seconds).into_iter().collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all.truncate(NAMED_MAX);
        all.retain(|(_, seconds)| *seconds > 0.0);
        all.iter().map(|(peer, s)| (peer.to_hex(), *s)).collect()
    }
}
