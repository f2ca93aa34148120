//! The swarm as one daemon knows it, for the page and `/api/v1/swarm`. Unknown values are null, never zero.

use super::claims::{ClaimView, trains};
use super::goal_eta::rounds_left;
use super::insight::{Insight, Point, RoundResult, Standing, WaitNow};
use super::why::{Answer, Facts, Question, why};
use super::{
    ControlStatus, EvaluationStatus, PeerStatus, Presence, PrivacyStatus, RoundStatus, Status,
    Trouble,
};
use crate::goal::Target;
use serde::{Deserialize, Serialize};

const STRIP_ROUNDS: usize = 32;

/// The swarm as this daemon knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Swarm {
    /// The state of the round, in sentences with one action.
    pub verdict: Answer,
    /// Present troubles, the gravest first.
    pub troubles: Vec<Trouble>,
    /// Unix time of this answer, seconds.
    pub unix_s: f64,
    /// This daemon and its run.
    pub daemon: DaemonView,
    /// The other peers: those that it knows, then those that it only heard of.
    pub peers: Vec<PeerView>,
    /// Directives of the run's owner.
    pub control: ControlStatus,
    /// Privacy and masks of this daemon's contributions, where they have one of them.
    pub privacy: Option<PrivacyStatus>,
    /// Sums over all daemons.
    pub totals: Totals,
    /// The goal of the run, if it has one.
    pub goal: Option<GoalView>,
    /// The waits that are under way.
    pub waiting: Vec<WaitNow>,
    /// Seconds until the last round ends at the present pace, at most: a goal may be reached before.
    pub eta_s: Option<f64>,
    /// Predicted cost of a round.
    pub predicted: Option<RoundStatus>,
    /// Mean cost of the last rounds.
    pub measured: Option<RoundStatus>,
}

/// Sums over all daemons, this one included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Daemons that are there: this one, those that it is linked with, and those whose vitals are fresh.
    pub daemons: usize,
    /// Those of them whose inner steps are in the sum.
    pub counted: usize,
    /// Inner steps per second, in the words of each; `None` if none of them says.
    pub inner_steps_per_s: Option<f64>,
    /// Accuracies on the held-out data of each daemon, in the words of each, if two or more say one.
    pub accuracy: Option<Spread>,
}

/// A figure of several daemons, each on data of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spread {
    /// Daemons that say it.
    pub daemons: usize,
    /// Their mean, each counting alike.
    pub mean: f64,
    /// Standard deviation between them.
    pub deviation: f64,
    /// The highest.
    pub best: f64,
    /// The daemon that says it.
    pub best_peer: String,
    /// The lowest.
    pub worst: f64,
    /// The daemon that says it.
    pub worst_peer: String,
}

/// A goal, and how far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GoalView {
    /// The accuracy to reach.
    pub accuracy: Option<f64>,
    /// The loss to reach, in nats.
    pub loss: Option<f64>,
    /// The last evaluation of this daemon reaches it.
    pub reached: bool,
    /// Seconds until it is probably reached; `None` if the curve does not tell.
    pub eta_s: Option<f64>,
}

/// This daemon.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DaemonView {
    /// The peer's id, hexadecimal.
    pub peer: String,
    /// Its name.
    pub name: Option<String>,
    /// Version of the program.
    pub version: String,
    /// The run's name.
    pub run: String,
    /// The preset of the configuration.
    pub preset: String,
    /// The task: its kind, its model and its data.
    pub task: String,
    /// Parameters of the model.
    pub parameters: u64,
    /// Bytes of text of a token, of language models.
    pub bytes_per_token: Option<f64>,
    /// Seconds since the first round began.
    pub wall_s: f64,
    /// The present round.
    pub round: u64,
    /// Number of rounds; zero means until told to stop.
    pub rounds: u64,
    /// The phase of the round.
    pub phase: String,
    /// State of the daemon in one word; see `/status`.
    pub state: String,
    /// Inner steps of the round that is trained, so far.
    pub round_steps: u64,
    /// Inner steps per second over the last rounds.
    pub inner_steps_per_s: Option<f64>,
    /// Its share of the last result, 0 to 1.
    pub share: Option<f64>,
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
pub(crate) type Strip = String;

/// Another peer, as this daemon knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerView {
    /// The peer's id, hexadecimal.
    pub peer: String,
    /// Known from others only: this daemon never met it.
    pub heard_of: bool,
    /// Its own claims.
    pub says: Option<ClaimView>,
    /// A link is up.
    pub linked: bool,
    /// It said goodbye and left.
    pub left: bool,
    /// It missed a deadline and has not been heard from since.
    pub suspected: bool,
    /// The present round waits for it.
    pub awaited: bool,
    /// Its round in its own words; without a link, the last one that is known.
    pub round: Option<u64>,
    /// By how many rounds it is behind this daemon, while it is linked; negative if it is ahead.
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
    /// The swarm now. `goal` takes the place of the daemon's own, if it is set.
    pub fn new(facts: &Facts<'_>, goal: Target) -> Self {
        let status = facts.status;
        let goal = if goal.is_set() {
            goal
        } else {
            facts.about.goal
        };
        let peers = peers(facts);
        let daemon = DaemonView::new(facts);
        Self {
            privacy: status.privacy,
            verdict: why(facts, &Question::default()),
            troubles: status.troubles.clone(),
            unix_s: facts.now,
            totals: Totals::of(&daemon, &peers),
            daemon,
            peers,
            control: status.control.clone(),
            goal: goal.is_set().then(|| GoalView::new(facts, goal)),
            waiting: facts.insight.waiting.clone(),
            eta_s: eta(status),
            predicted: status.predicted.as_ref().map(|p| p.round),
            measured: status.measured,
        }
    }

    /// The peers that have a name, by id, this daemon included.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        fn of(peer: &PeerView) -> (&str, Option<&str>) {
            let says = peer.says.as_ref();
            (&peer.peer, says.and_then(|says| says.claim.name.as_deref()))
        }
        let me = (self.daemon.peer.as_str(), self.daemon.name.as_deref());
        let all = std::iter::once(me).chain(self.peers.iter().map(of));
        all.filter_map(|(peer, name)| Some((peer, name?)))
    }

    /// A peer is this daemon, or linked with it.
    pub fn is_here(&self, peer: &str) -> bool {
        let mut peers = self.peers.iter();
        self.daemon.peer == peer || peers.any(|known| known.linked && known.peer == peer)
    }
}

/// The peers that this daemon knows, then those that it only heard of.
fn peers(facts: &Facts<'_>) -> Vec<PeerView> {
    let known = &facts.status.peers;
    let waited = facts.insight.slow_peers(STRIP_ROUNDS);
    let view = |(id, status): (&String, &PeerStatus)| {
        let waited_s = waited.get(id).copied().unwrap_or_default();
        PeerView::new(facts, id, status, waited_s)
    };
    let strangers = facts.claims.peers().filter(|id| !known.contains_key(*id));
    let heard_of = |id: &String| PeerView {
        peer: id.clone(),
        heard_of: true,
        says: facts.claims.of(id, facts.now),
        ..PeerView::default()
    };
    known
        .iter()
        .map(view)
        .chain(strangers.map(heard_of))
        .collect()
}

impl PeerView {
    fn new(facts: &Facts<'_>, id: &str, known: &PeerStatus, waited_s: f64) -> Self {
        let insight = facts.insight;
        let link = known.link.as_ref();
        let pushed = link
            .and_then(|l| l.push_bytes_per_s)
            .map(|rate| rate as f64);
        let says = facts.claims.of(id, facts.now);
        // What it said last may be older than what its link told.
        let said = says.as_ref().filter(|_| !known.is_linked());
        let round = known.round.max(said.map(|says| says.claim.round));
        let lag = round.filter(|_| known.is_linked());
        Self {
            peer: id.to_owned(),
            heard_of: false,
            says,
            linked: known.is_linked(),
            left: known.presence == Presence::Left,
            suspected: known.suspected,
            awaited: insight
                .waiting
                .iter()
                .any(|wait| wait.peers.iter().any(|peer| peer == id)),
            round,
            lag: lag.map(|round| facts.status.round as i64 - round as i64),
            strip: strip(insight, id),
            share: share(insight, id),
            waited_s,
            rtt_s: link.and_then(|l| l.rtt_s).or(known.rtt_s),
            loss: link.and_then(|l| l.loss),
            bytes_per_s: link.and_then(|l| l.delivery_bytes_per_s).or(pushed),
            path: known.path.as_ref().map(|path| path.kind.clone()),
        }
    }

    fn says_now(&self) -> Option<&ClaimView> {
        self.says.as_ref().filter(|says| !says.stale)
    }
}

impl Totals {
    fn of(me: &DaemonView, peers: &[PeerView]) -> Self {
        let there = |peer: &&PeerView| peer.linked || (peer.heard_of && peer.says_now().is_some());
        let own = trains(&me.phase).then_some(me.inner_steps_per_s).flatten();
        let others = peers.iter().filter(there).filter_map(|peer| {
            let says = peer.says_now().filter(|says| says.claim.trains())?;
            says.claim.inner_steps_per_s.map(f64::from)
        });
        let rates: Vec<f64> = own.into_iter().chain(others).collect();
        let found = me.evaluation.as_ref().and_then(|found| found.accuracy);
        // As the others say it, in f32.
        let own = found.map(|accuracy| (f64::from(accuracy as f32), me.peer.as_str()));
        let others = peers.iter().filter(there).filter_map(|peer| {
            let accuracy = peer.says_now()?.claim.accuracy?;
            Some((f64::from(accuracy), peer.peer.as_str()))
        });
        let accuracies: Vec<_> = own.into_iter().chain(others).collect();
        Self {
            accuracy: Spread::of(&accuracies),
            daemons: 1 + peers.iter().filter(there).count(),
            counted: rates.len(),
            inner_steps_per_s: (!rates.is_empty()).then(|| rates.iter().sum()),
        }
    }
}

impl Spread {
    /// The spread of at least two figures, each with its daemon.
    fn of(figures: &[(f64, &str)]) -> Option<Self> {
        let by_figure = |a: &&(f64, &str), b: &&(f64, &str)| a.0.total_cmp(&b.0);
        let best = figures.iter().max_by(by_figure)?;
        let worst = figures.iter().min_by(by_figure)?;
        let count = figures.len() as f64;
        let mean = figures.iter().map(|(value, _)| value).sum::<f64>() / count;
        let squares = figures.iter().map(|(value, _)| (value - mean).powi(2));
        (figures.len() > 1).then(|| Self {
            daemons: figures.len(),
            mean,
            deviation: (squares.sum::<f64>() / count).sqrt(),
            best: best.0,
            best_peer: best.1.to_owned(),
            worst: worst.0,
            worst_peer: worst.1.to_owned(),
        })
    }
}

impl GoalView {
    fn new(facts: &Facts<'_>, goal: Target) -> Self {
        let found = facts.status.evaluation.as_ref();
        let reached = found.is_some_and(|found| goal.reached_by(found));
        let points: Vec<&Point> = facts.insight.history.points().collect();
        let each = facts.status.measured.map(|measured| measured.round_s);
        let left = rounds_left(&points, goal).filter(|_| !reached);
        let eta_s = left.zip(each).map(|(left, each)| left * each);
        // A run that ends before does not reach it.
        let ends = eta(facts.status);
        Self {
            accuracy: goal.accuracy,
            loss: goal.loss,
            reached,
            eta_s: eta_s.filter(|eta| ends.is_none_or(|ends| *eta <= ends)),
        }
    }
}

impl DaemonView {
    fn new(facts: &Facts<'_>) -> Self {
        let (status, insight) = (facts.status, facts.insight);
        Self {
            peer: status.peer.clone(),
            name: status.name.clone(),
            version: status.version.clone(),
            run: status.run.clone(),
            preset: status.preset.clone(),
            task: facts.about.task.clone(),
            parameters: facts.about.parameters,
            bytes_per_token: facts.about.unit.bytes_per_token,
            wall_s: status.wall_s,
            round: status.round,
            rounds: status.rounds,
            phase: status.phase.clone(),
            state: status.state.clone(),
            round_steps: status.round_steps,
            inner_steps_per_s: Some(status.inner_steps_per_s).filter(|rate| *rate > 0.0),
            share: share(insight, &status.peer),
            loss: status.loss,
            evaluation: status.evaluation.clone(),
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
    let ends = status.rounds > 0 && status.phase != "finished" && !status.control.paused;
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

#[cfg(test)]
mod tests;
