//! What one daemon reports when it ends.

use crate::api::{PathStatus, Status, Traffic};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One daemon's results, measured by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeReport {
    /// This peer, hexadecimal.
    pub peer: String,
    /// Share of held samples that are right, at the last look.
    pub test_accuracy: Option<f64>,
    /// Loss on held data at the last look, in nats.
    pub test_loss: Option<f64>,
    /// Rounds ended.
    pub rounds: u64,
    /// Inner steps taken.
    pub inner_steps: u64,
    /// Samples seen.
    pub samples: u64,
    /// Seconds from the first round's start to the end of the last.
    pub wall_s: f64,
    /// Seconds in inner steps.
    pub train_s: f64,
    /// What was sent.
    pub bytes_sent: Traffic,
    /// What was received.
    pub bytes_received: Traffic,
    /// The longest wait.
    pub longest_wait_s: f64,
    /// The deadline which that wait had.
    pub deadline_s: Option<f64>,
    /// What it waited for.
    pub longest_wait_for: Option<String>,
    /// Resident bytes at the most.
    pub peak_rss_bytes: Option<u64>,
    /// Digest of the parameters after the last round.
    pub digest: Option<String>,
    /// The round that ended with this digest.
    pub digest_round: Option<u64>,
    /// How often it took over the swarm's state.
    pub catch_ups: u64,
    /// Exchanges that were given up.
    pub voids: u64,
    /// Whether others can dial it: `public`, `private` or `unknown`.
    #[serde(default)]
    pub reachability: String,
    /// How each peer was last reached.
    #[serde(default)]
    pub paths: BTreeMap<String, PathStatus>,
}

impl From<&Status> for NodeReport {
    fn from(status: &Status) -> Self {
        let wait = status.longest_wait.as_ref();
        Self {
            peer: status.peer.clone(),
            test_accuracy: status.evaluation.and_then(|e| e.accuracy),
            test_loss: status.evaluation.map(|e| e.loss),
            rounds: status.rounds_ended,
            inner_steps: status.inner_steps,
            samples: status.samples,
            wall_s: status.wall_s,
            train_s: status.train_s,
            bytes_sent: status.bytes_sent,
            bytes_received: status.bytes_received,
            longest_wait_s: wait.map_or(0.0, |w| w.waited_s),
            deadline_s: wait.map(|w| w.deadline_s),
            longest_wait_for: wait.map(|w| w.what.clone()),
            peak_rss_bytes: status.memory.peak_rss_bytes,
            digest: status.digest.clone(),
            digest_round: status.digest_round,
            catch_ups: status.catch_ups,
            voids: status.voids,
            reachability: status.nat.reachability.clone(),
            paths: status
                .peers
                .iter()
                .filter_map(|(peer, of)| Some((peer.clone(), of.path.clone()?)))
                .collect(),
        }
    }
}

impl NodeReport {
    /// Useful inner steps per second of wall time; zero before the first round.
    pub fn inner_steps_per_s(&self) -> f64 {
        if self.wall_s > 0.0 {
            self.inner_steps as f64 / self.wall_s
        } else {
            0.0
        }
    }
}
