//! The final report of one daemon.

use crate::api::{PathStatus, Status, Traffic, Trouble, TroubleKind, WithoutResult};
use murmurate_protocol::SortedMap;
use serde::{Deserialize, Serialize};

/// Results of one daemon, measured by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeReport {
    /// This peer's id, hexadecimal.
    pub peer: String,
    /// Fraction of correct predictions in the last evaluation, 0 to 1.
    pub test_accuracy: Option<f64>,
    /// Loss of the last evaluation, in nats.
    pub test_loss: Option<f64>,
    /// Fraction of samples whose class was among the five most likely, with ten or more classes.
    pub test_top_5: Option<f64>,
    /// Perplexity of a token in the last evaluation, of language models.
    pub perplexity: Option<f64>,
    /// Bits per byte of text in the last evaluation, of language models.
    pub bits_per_byte: Option<f64>,
    /// Number of its trainers; more than one are an island.
    #[serde(default)]
    pub ranks: u32,
    /// Number of ended rounds.
    pub rounds: u64,
    /// Number of inner steps.
    pub inner_steps: u64,
    /// Number of samples.
    pub samples: u64,
    /// Seconds from the start of the first round to the end of the last.
    pub wall_s: f64,
    /// Seconds spent in inner steps.
    pub train_s: f64,
    /// Bytes sent.
    pub bytes_sent: Traffic,
    /// Bytes received.
    pub bytes_received: Traffic,
    /// The longest wait, seconds.
    pub longest_wait_s: f64,
    /// The deadline of that wait, seconds.
    pub deadline_s: Option<f64>,
    /// Kind of the longest wait.
    pub longest_wait_for: Option<String>,
    /// Peak resident bytes.
    pub peak_rss_bytes: Option<u64>,
    /// Digest of the parameters after the last round.
    pub digest: Option<String>,
    /// The round that produced this digest.
    pub digest_round: Option<u64>,
    /// Fetches of the swarm's state.
    pub catch_ups: u64,
    /// Exchanges and rounds that had no result.
    #[serde(flatten)]
    pub no_result: NoResult,
    /// Number of inputs from others that broke a rule.
    #[serde(default)]
    pub misbehaved: u64,
    /// Reachability for others: `public`, `private` or `unknown`.
    #[serde(default)]
    pub reachability: String,
    /// The last path to each peer, by id in hexadecimal.
    #[serde(default)]
    pub paths: SortedMap<String, PathStatus>,
    /// Transport of slices to each peer whose link was still up: `quic`, `tls`, `stream` or `unused`.
    #[serde(default)]
    pub bulk: SortedMap<String, String>,
}

/// Exchanges and rounds of a daemon that had no result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NoResult {
    /// Number of exchanges that ended without a result at this daemon; others may have decided some of them.
    pub voids: u64,
    /// Rounds that had none at this daemon, since its start.
    #[serde(flatten)]
    pub rounds: WithoutResult,
    /// Why they had none, where a trouble of this daemon at its end, or the end of its last rounds, tells.
    #[serde(rename = "no_result_why", default)]
    pub why: Option<String>,
}

impl NoResult {
    /// Number of rounds.
    pub const fn count(&self) -> u64 {
        self.rounds.void + self.rounds.alone
    }

    /// How many rounds had no result, and why; none if all had one.
    pub fn in_words(&self) -> Option<String> {
        let WithoutResult { void, alone } = self.rounds;
        let ends = [
            (alone, "in which no group formed"),
            (void, "whose group agreed on no result in time"),
        ];
        let ends = ends.into_iter().filter(|(count, _)| *count > 0);
        let ends: Vec<String> = ends.map(|(count, how)| format!("{count} {how}")).collect();
        let why = self.why.as_ref();
        let why = why.map_or(String::new(), |why| format!("; why: {why}"));
        let count = void + alone;
        let rounds = if count == 1 { "round" } else { "rounds" };
        (count > 0).then(|| format!("{count} {rounds} had no result: {}{why}", ends.join(", ")))
    }
}

impl From<&Status> for NodeReport {
    fn from(status: &Status) -> Self {
        let wait = status.longest_wait.as_ref();
        let found = status.evaluation.as_ref();
        Self {
            peer: status.peer.clone(),
            test_accuracy: found.and_then(|e| e.accuracy),
            test_loss: found.map(|e| e.loss),
            test_top_5: found.and_then(|e| e.top_5),
            perplexity: found.and_then(|e| e.perplexity),
            bits_per_byte: found.and_then(|e| e.bits_per_byte),
            ranks: status.ranks,
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
            catch_ups: status.unusual.catch_ups,
            no_result: NoResult {
                voids: status.unusual.voids,
                rounds: status.unusual.without_result,
                why: status.troubles.iter().find_map(leaves_no_result),
            },
            misbehaved: status.unusual.misbehaved,
            reachability: status.nat.reachability.clone(),
            paths: status
                .peers
                .iter()
                .filter_map(|(peer, of)| Some((peer.clone(), of.path.clone()?)))
                .collect(),
            bulk: status
                .peers
                .iter()
                .filter_map(|(peer, of)| Some((peer.clone(), of.link.as_ref()?.bulk.to_owned())))
                .collect(),
        }
    }
}

/// A trouble that leaves rounds without a result, in its sentence.
fn leaves_no_result(trouble: &Trouble) -> Option<String> {
    use TroubleKind::{Failing, Isolated, PeersLost, PeersSilent};
    let kind = trouble.kind;
    let leaves = kind.is_refusal() || matches!(kind, Isolated | Failing | PeersLost | PeersSilent);
    leaves.then(|| trouble.text.clone())
}

impl NodeReport {
    /// Inner steps per second of wall time; zero before the first round.
    pub fn inner_steps_per_s(&self) -> f64 {
        if self.wall_s > 0.0 {
            self.inner_steps as f64 / self.wall_s
        } else {
            0.0
        }
    }
}
