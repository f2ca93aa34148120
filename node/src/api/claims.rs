//! What other daemons say of themselves. These are claims: no figure that this daemon measures itself, no
//! decision and no count of contributions depends on them.

use crate::net::SeenVitals;
use murmurate_protocol::vitals::RoundSeconds;
use murmurate_protocol::{PeerId, SortedMap};
use serde::{Deserialize, Serialize};

/// Claims are shown as stale from this age on, seconds. A daemon renews them every five.
const STALE_S: f64 = 15.0;

/// The claims of all daemons that said something, by id in hexadecimal.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    all: SortedMap<String, Claim>,
}

/// Claims of one daemon about itself. A claim that it does not make is `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Its name, which its operator chose.
    pub name: Option<String>,
    /// Version of its program.
    pub version: String,
    /// Its round.
    pub round: u64,
    /// The phase of that round.
    pub phase: String,
    /// The wait that it is in.
    pub waiting: Option<ClaimedWait>,
    /// Its inner steps per second.
    pub inner_steps_per_s: Option<f32>,
    /// Its training loss.
    pub loss: Option<f32>,
    /// Its accuracy on held-out data, 0 to 1.
    pub accuracy: Option<f32>,
    /// Seconds of training in its last round.
    pub train_s: Option<f32>,
    /// Seconds of exchange in its last round.
    pub exchange_s: Option<f32>,
    /// Seconds that its last round waited for others.
    pub wait_s: Option<f32>,
    /// Its resident memory.
    pub rss_bytes: Option<u64>,
    /// The round of its last checkpoint.
    pub saved_round: Option<u64>,
    /// Unix time at which it said so, by its own clock, seconds.
    pub unix_s: f64,
    #[serde(skip)]
    heard_s: f64,
}

/// A wait in the words of the daemon that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimedWait {
    /// The kind of wait, in one word as in [`WaitNow`](super::WaitNow).
    pub what: String,
    /// Some of the peers that it is for, hexadecimal.
    pub peers: Vec<String>,
}

/// A claim with its age.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimView {
    /// The claim.
    #[serde(flatten)]
    pub claim: Claim,
    /// Seconds since it said so.
    pub age_s: f64,
    /// Too old to be true now.
    pub stale: bool,
}

impl Claims {
    /// Replaces all claims by these, as they are at `now`, Unix time in seconds. Returns the daemons that
    /// have a new name, with it.
    pub fn set(&mut self, now: f64, seen: &[SeenVitals]) -> Vec<(String, String)> {
        let claims = seen.iter().map(|seen| {
            let claim = Claim::new(seen, now);
            (seen.vitals.peer.to_hex(), claim)
        });
        let before = std::mem::replace(&mut self.all, claims.collect());
        let name = |(peer, claim): (&String, &Claim)| {
            let known = before.get(peer).and_then(|claim| claim.name.as_ref());
            let name = claim.name.as_ref().filter(|name| Some(*name) != known)?;
            Some((peer.clone(), name.clone()))
        };
        self.all.iter().filter_map(name).collect()
    }

    /// The claims of a daemon.
    pub fn of(&self, peer: &str, now: f64) -> Option<ClaimView> {
        self.all.get(peer).map(|claim| claim.at(now))
    }

    /// The daemons that said something.
    pub fn peers(&self) -> impl Iterator<Item = &String> {
        self.all.keys()
    }

    /// The names that only one daemon gave itself, each with its id in hexadecimal.
    pub fn unique_names(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut of = SortedMap::new();
        let named = self.all.iter();
        for (id, name) in named.filter_map(|(id, claim)| Some((id, claim.name.as_deref()?))) {
            of.entry(name).or_insert_with(Vec::new).push(id.as_str());
        }
        of.into_iter().filter_map(|(name, ids)| match ids[..] {
            [id] => Some((id, name)),
            _ => None,
        })
    }

    /// The names that daemons gave themselves, by id.
    pub fn name(&self, peer: &str) -> Option<&str> {
        self.all.get(peer)?.name.as_deref()
    }
}

impl Claim {
    fn new(seen: &SeenVitals, now: f64) -> Self {
        let vitals = &seen.vitals;
        let part = |of: fn(&RoundSeconds) -> f32| vitals.last_round.as_ref().map(of);
        Self {
            name: vitals.name.as_ref().map(ToString::to_string),
            version: vitals.version.clone(),
            round: vitals.round.0,
            phase: vitals.phase.to_string(),
            waiting: vitals.waiting.as_ref().map(|waiting| ClaimedWait {
                what: waiting.wait.word().to_owned(),
                peers: waiting.peers.iter().map(PeerId::to_hex).collect(),
            }),
            inner_steps_per_s: vitals.steps_per_s,
            loss: vitals.loss,
            accuracy: vitals.accuracy,
            train_s: part(|parts| parts.train),
            exchange_s: part(|parts| parts.exchange),
            wait_s: part(|parts| parts.wait),
            rss_bytes: vitals.memory,
            saved_round: vitals.saved_round.map(|round| round.0),
            unix_s: vitals.unix_ms as f64 / 1e3,
            heard_s: now - seen.age.as_secs_f64(),
        }
    }

    fn at(&self, now: f64) -> ClaimView {
        let age_s = (now - self.heard_s).max(0.0);
        ClaimView {
            claim: self.clone(),
            age_s,
            stale: age_s >= STALE_S,
        }
    }

    /// In its own words the daemon takes part in rounds.
    pub(super) fn trains(&self) -> bool {
        trains(&self.phase)
    }
}

/// A daemon in this phase takes part in rounds.
pub(super) fn trains(phase: &str) -> bool {
    matches!(phase, "train" | "exchange" | "apply" | "settle")
}
