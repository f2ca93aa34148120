//! A daemon of the swarm as a row of the table.

use crate::picture::Picture;
use murmurate_node::api::{DaemonView, PeerView};

/// State of a daemon of the swarm. Each has a sign and a word of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeerState {
    /// No link is up.
    Gone,
    /// It said goodbye and left.
    Left,
    /// It missed a deadline and has not been heard from since.
    Silent,
    /// The present round waits for it.
    Awaited,
    /// A link is up.
    Linked,
    /// The daemon that is asked, in a phase of its round.
    This(String),
}

impl PeerState {
    /// The order in a sorted table: what needs attention first.
    pub(crate) const fn rank(&self) -> u8 {
        match self {
            Self::Gone => 0,
            Self::Silent => 1,
            Self::Awaited => 2,
            Self::Linked => 3,
            Self::Left => 4,
            Self::This(_) => 5,
        }
    }

    pub(crate) const fn sign(&self) -> &'static str {
        match self {
            Self::Gone => "✕",
            Self::Left => "○",
            Self::Silent => "!",
            Self::Awaited => "▸",
            Self::Linked => "●",
            Self::This(_) => "◆",
        }
    }

    pub(crate) fn word(&self) -> &str {
        match self {
            Self::Gone => "no link",
            Self::Left => "left",
            Self::Silent => "silent",
            Self::Awaited => "awaited",
            Self::Linked => "linked",
            Self::This(phase) => phase,
        }
    }
}

/// A row. An unknown value is none, never zero.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) state: PeerState,
    pub(crate) round: Option<u64>,
    /// Rounds behind the daemon that is asked; negative if it is ahead.
    pub(crate) lag: Option<i64>,
    pub(crate) strip: String,
    pub(crate) share: Option<f64>,
    pub(crate) waited_s: Option<f64>,
    pub(crate) rtt_s: Option<f64>,
    pub(crate) lost: Option<f64>,
    pub(crate) bytes_per_s: Option<f64>,
    pub(crate) path: Option<String>,
    /// Its accuracy on held-out data, in its own words.
    pub(crate) accuracy: Option<f64>,
    /// The version of its program, in its own words.
    pub(crate) version: Option<String>,
}

impl Row {
    /// The rows of a picture: the daemon that is asked, then its peers by name.
    pub(crate) fn all(picture: &Picture) -> Vec<Self> {
        let Some(swarm) = &picture.swarm else {
            return Vec::new();
        };
        let peers = swarm.peers.iter().map(|peer| Self::of_peer(picture, peer));
        let mut peers: Vec<Self> = peers.collect();
        peers.sort_by(|a, b| a.name.cmp(&b.name));
        let own = Self::own(picture, &swarm.daemon);
        std::iter::once(own).chain(peers).collect()
    }

    fn own(picture: &Picture, daemon: &DaemonView) -> Self {
        let rounds = &picture.contributions.rounds;
        let shared = rounds.last().and_then(|last| last.peers.get(&daemon.peer));
        Self {
            id: daemon.peer.clone(),
            name: picture.name(&daemon.peer),
            state: PeerState::This(daemon.phase.clone()),
            round: Some(daemon.round),
            lag: None,
            strip: daemon.strip.clone(),
            share: shared
                .map(|shared| shared.share)
                .filter(|share| *share > 0.0),
            waited_s: None,
            rtt_s: None,
            lost: None,
            bytes_per_s: None,
            path: None,
            accuracy: daemon.evaluation.as_ref().and_then(|found| found.accuracy),
            version: Some(daemon.version.clone()).filter(|version| !version.is_empty()),
        }
    }

    fn of_peer(picture: &Picture, peer: &PeerView) -> Self {
        let state = match (peer.linked, peer.suspected, peer.awaited) {
            (false, ..) if peer.left => PeerState::Left,
            (false, ..) => PeerState::Gone,
            (true, true, _) => PeerState::Silent,
            (true, false, true) => PeerState::Awaited,
            (true, false, false) => PeerState::Linked,
        };
        let fresh = peer.says.as_ref().filter(|says| !says.stale);
        Self {
            id: peer.peer.clone(),
            name: picture.name(&peer.peer),
            state,
            round: peer.round,
            lag: peer.lag,
            strip: peer.strip.clone(),
            share: peer.share,
            // A log tells long waits only.
            waited_s: Some(peer.waited_s).filter(|waited| !picture.recorded || *waited > 0.0),
            rtt_s: peer.rtt_s,
            lost: peer.loss,
            bytes_per_s: peer.bytes_per_s,
            path: peer.path.clone(),
            accuracy: fresh.and_then(|says| says.claim.accuracy).map(f64::from),
            version: peer.says.as_ref().map(|says| says.claim.version.clone()),
        }
    }

    /// It is the daemon that is asked.
    pub(crate) const fn is_this(&self) -> bool {
        matches!(self.state, PeerState::This(_))
    }

    /// A filter finds it: by id, name, state, path or version.
    pub(crate) fn matches(&self, filter: &str) -> bool {
        let filter = filter.to_lowercase();
        let path = self.path.as_deref().unwrap_or("");
        let version = self.version.as_deref().unwrap_or("");
        let texts = [
            self.id.as_str(),
            &self.name,
            self.state.word(),
            path,
            version,
        ];
        texts
            .iter()
            .any(|text| text.to_lowercase().contains(&filter))
    }

    pub(crate) fn counted(&self) -> usize {
        self.strip.chars().filter(|letter| *letter == 'c').count()
    }
}
