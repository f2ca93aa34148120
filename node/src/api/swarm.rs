//! The swarm as one daemon knows it: what the page and `/api/v1/swarm` show. What is not known is
//! null, never zero.

use super::insight::{Insight, RoundResult, Standing, WaitNow};
use super::why::{Answer, Facts, Question, why};
use super::{EvaluationStatus, RoundStatus, Status};
use serde::{Deserialize, Serialize};

/// Rounds in a peer's strip.
const STRIP_ROUNDS: usize = 32;

/// The swarm as this daemon knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Swarm {
    /// What the round does, in sentences with one action.
    pub verdict: Answer,
    /// Unix time of this answer, seconds.
    pub unix_s: f64,
    /// This daemon and its run.
    pub daemon: DaemonView,
    /// The other peers.
    pub peers: Vec<PeerView>,
    /// The waits that are under way.
    pub waiting: Vec<WaitNow>,
    /// Seconds until the last round ends at the present pace, at most: a goal may be reached before.
    pub eta_s: Option<f64>,
    /// Predicted cost of a round.
    pub predicted: Option<RoundStatus>,
    /// Mean cost of the last rounds.
    pub measured: Option<RoundStatus>,
}

/// This daemon.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DaemonView {
    /// The peer's id, hexadecimal.
    pub peer: String,
    /// Version of the program.
    pub version: String,
    /// The run's name.
    pub run: String,
    /// The preset of the configuration.
    pub preset: String,
    /// The present round.
    pub round: u64,
    /// Number of rounds; zero means until told to stop.
    pub rounds: u64,
    /// The phase of the round.
    pub phase: String,
    /// Inner steps per second over the last rounds.
    pub inner_steps_per_s: f64,
    /// Loss; see `/status`.
    pub loss: Option<f64>,
    /// The last evaluation on held-out data.
    pub evaluation: Option<EvaluationStatus>,
    /// The round of the last checkpoint.
    pub saved_round: Option<u64>,
    /// Resident memory.
    pub rss_bytes: Option<u64>,
    /// `public`, `private` or `unknown`.
    pub reachability: String,
    /// Addresses at which others can join.
    pub addresses: Vec<String>,
    /// Its last rounds.
    pub strip: Strip,
}

/// The last rounds of a peer, oldest first, one letter each: `c` counted, `p` counted in parts, `l` left
/// out, `k` kept for the next round, `a` absent, `n` no result, `m` mixed, `?` unknown.
pub type Strip = String;

/// Another peer, as this daemon knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerView {
    /// The peer's id, hexadecimal.
    pub peer: String,
    /// Whether a link is up.
    pub linked: bool,
    /// Whether it missed a deadline and has not been heard from since.
    pub suspected: bool,
    /// Whether the present round waits for it.
    pub awaited: bool,
    /// Its round in its own words, while it is linked.
    pub round: Option<u64>,
    /// By how many rounds it is behind this daemon; negative if it is ahead.
    pub lag: Option<i64>,
    /// Its last rounds.
    pub strip: Strip,
    /// Its share of the last result, 0 to 1.
    pub share: Option<f64>,
    /// Seconds that this daemon waited for it in the last rounds.
    pub waited_s: f64,
    /// Round-trip time, seconds.
    pub rtt_s: Option<f64>,
    /// Loss; see `/status`.
    pub loss: Option<f64>,
    /// Bytes per second that the path carries.
    pub bytes_per_s: Option<f64>,
    /// The kind of path: direct or relayed.
    pub path: Option<String>,
}

impl Swarm {
    /// The swarm now.
    pub fn new(facts: &Facts<'_>) -> Self {
        let Facts {
            status,
            insight,
            now,
        } = *facts;
        let slow = insight.slow_peers(STRIP_ROUNDS);
        let view = |(id, known): (&String, &super::PeerStatus)| {
            let link = known.link.as_ref();
            let pushed = link
                .and_then(|l| l.push_bytes_per_s)
                .map(|rate| rate as f64);
            let round = known.round.filter(|_| known.linked);
            PeerView {
                peer: id.clone(),
                linked: known.linked,
                suspected: known.suspected,
                awaited: insight.waiting.iter().any(|wait| wait.peers.contains(id)),
                round,
                lag: round.map(|round| status.round as i64 - round as i64),
                strip: strip(insight, id),
                share: share(insight, id),
                waited_s: slow.get(id).copied().unwrap_or_default(),
                rtt_s: link.and_then(|l| l.rtt_s).or(known.rtt_s),
                loss: link.and_then(|l| l.loss),
                bytes_per_s: link.and_then(|l| l.delivery_bytes_per_s).or(pushed),
                path: known.path.as_ref().map(|path| path.kind.clone()),
            }
        };
        Self {
            verdict: why(facts, &Question::default()),
            unix_s: now,
            daemon: DaemonView::new(status, insight),
            peers: status.peers.iter().map(view).collect(),
            waiting: insight.waiting.clone(),
            eta_s: eta(status),
            predicted: status.predicted.as_ref().map(|p| p.round),
            measured: status.measured,
        }
    }
}

impl DaemonView {
    fn new(status: &Status, insight: &Insight) -> Self {
        Self {
            peer: status.peer.clone(),
            version: status.version.clone(),
            run: status.run.clone(),
            preset: status.preset.clone(),
            round: status.round,
            rounds: status.rounds,
            phase: status.phase.clone(),
            inner_steps_per_s: status.inner_steps_per_s,
            loss: status.loss,
            evaluation: status.evaluation,
            saved_round: status.saved_round,
            rss_bytes: status.memory.rss_bytes,
            reachability: status.nat.reachability.clone(),
            addresses: status.addresses.clone(),
            strip: strip(insight, &status.peer),
        }
    }
}

/// Seconds until the last round ends, if there is one and rounds are measured.
fn eta(status: &Status) -> Option<f64> {
    let left = status.rounds.checked_sub(status.rounds_ended)?;
    let ends = status.rounds > 0 && status.phase != "finished";
    let each = status.measured.as_ref()?.round_s;
    ends.then_some(left as f64 * each)
}

fn strip(insight: &Insight, peer: &str) -> Strip {
    let rounds = insight.ledger.rounds().rev().take(STRIP_ROUNDS);
    let letters = rounds.map(|entry| match entry.peers.get(peer).map(|s| s.standing) {
        Some(Standing::Counted) => 'c',
        Some(Standing::Partly) => 'p',
        Some(Standing::LeftOut) => 'l',
        Some(Standing::Kept) => 'k',
        Some(Standing::Absent) => 'a',
        Some(Standing::NoResult) => 'n',
        Some(Standing::Unknown) => '?',
        None => match entry.result {
            Some(RoundResult::Decided | RoundResult::Partial) => 'a',
            Some(RoundResult::Mixed) => 'm',
            Some(RoundResult::Void | RoundResult::Alone) => 'n',
            _ => '?',
        },
    });
    let letters: Vec<char> = letters.collect();
    letters.into_iter().rev().collect()
}

fn share(insight: &Insight, peer: &str) -> Option<f64> {
    let last = insight.ledger.rounds().next_back()?;
    let shared = last.peers.get(peer)?;
    let counts = matches!(shared.standing, Standing::Counted | Standing::Partly);
    counts.then_some(shared.share)
}
