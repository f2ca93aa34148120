//! What goes wrong and is not over yet, as far as events say both.

use crate::api::status::BranchStatus;
use murmurate_protocol::{Event, PeerId, SortedMap, Time};
use murmurate_trust::Refusal;

const PEERS_MAX: usize = 64;

const WORDS_MAX: usize = 256;

/// A failure of this daemon's own work.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The round in which it happened last.
    pub round: u64,
    /// In words.
    pub what: String,
}

/// Files of the daemon's directory that were lost or changed, and what follows from that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Altered {
    /// The loss or change.
    pub text: String,
    /// The remedy in a sentence.
    pub action: String,
    /// The last round in which it matters; none if it does as long as the daemon runs.
    pub until: Option<u64>,
}

impl Altered {
    /// It matters up to a round.
    pub fn until(round: u64, text: impl Into<String>, action: impl Into<String>) -> Self {
        let (text, action) = (text.into(), action.into());
        let until = Some(round);
        Self {
            text,
            action,
            until,
        }
    }

    /// It matters as long as the daemon runs.
    pub fn for_good(text: impl Into<String>, action: impl Into<String>) -> Self {
        Self {
            until: None,
            ..Self::until(0, text, action)
        }
    }
}

/// Troubles that are not over yet.
#[derive(Clone, Debug, Default)]
pub struct Outages {
    round: u64,
    /// Members that refuse this daemon, with the reason and the Unix time of the first refusal.
    pub refused: SortedMap<String, (Refusal, f64)>,
    /// The last failure of this daemon's own work; none once a whole round went well.
    pub failed: Option<Failure>,
    /// The last checkpoint could not be written.
    pub unsaved: bool,
    /// Daemons that contribute nothing, with the round in which they get another chance.
    pub idle: SortedMap<String, u64>,
    /// Daemons that lied and are members still.
    pub lied: SortedMap<String, String>,
    /// The sides of a swarm that was split are being merged.
    merging: bool,
    /// Files that were lost or changed.
    pub altered: Vec<Altered>,
    /// Unix time since which another daemon with this identity is heard.
    pub elsewhere: Option<f64>,
}

impl Outages {
    /// The branch of this daemon while its side is being merged with others.
    pub fn merging_branch(&self, branch: Option<BranchStatus>) -> Option<BranchStatus> {
        branch.filter(|branch| self.merging && branch.met)
    }

    pub(super) fn observe(&mut self, event: &Event) {
        match event {
            Event::Phase { round, .. } => self.enter(round.0),
            Event::PeerUp(peer) => drop(self.refused.remove(&peer.to_hex())),
            Event::WorkFailed { what } => {
                let what = what.chars().take(WORDS_MAX).collect();
                let round = self.round;
                self.failed = Some(Failure { round, what });
            }
            Event::Saved { .. } => self.unsaved = false,
            Event::Absent { peer, until } => put(&mut self.idle, peer, until.0),
            Event::Lied { peer, what, .. } => put(&mut self.lied, peer, what.clone()),
            Event::BranchesMet { .. } => self.merging = true,
            Event::Merged { .. }
            | Event::NotMerged { given_up: true, .. }
            | Event::CatchUp { .. } => self.merging = false,
            _ => {}
        }
    }

    /// Members refuse this daemon because it is none.
    pub(crate) fn is_thrown_out(&self) -> bool {
        let out = |refusal: &Refusal| matches!(refusal, Refusal::Revoked | Refusal::Banned);
        self.refused.values().any(|(refusal, _)| out(refusal))
    }

    fn enter(&mut self, round: u64) {
        self.round = round;
        self.failed = self
            .failed
            .take()
            .filter(|failed| round <= failed.round + 1);
        self.idle.retain(|_, until| round < *until);
        let over = |altered: &Altered| altered.until.is_some_and(|until| until < round);
        self.altered.retain(|altered| !over(altered));
    }

    pub(crate) fn refused_by(&mut self, now: Time, peer: &PeerId, refusal: Refusal) {
        let since = self.refused.get(&peer.to_hex()).map(|(_, since)| *since);
        let since = since.unwrap_or(now.as_secs_f64());
        put(&mut self.refused, peer, (refusal, since));
    }

    pub(crate) fn dismissed(&mut self, peer: &PeerId) {
        let peer = peer.to_hex();
        self.refused.remove(&peer);
        self.idle.remove(&peer);
        self.lied.remove(&peer);
    }
}

fn put<T>(all: &mut SortedMap<String, T>, peer: &PeerId, value: T) {
    let peer = peer.to_hex();
    if all.len() < PEERS_MAX || all.contains_key(&peer) {
        all.insert(peer, value);
    }
}
