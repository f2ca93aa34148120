//! What happened to this daemon that is worth naming when something went wrong.

use murmurate_protocol::{Event, PeerId};
use std::collections::VecDeque;

pub(super) const INCIDENTS_MAX: usize = 256;

/// Bytes of an incident's words that are kept.
const WORDS_MAX: usize = 256;

/// Kind of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncidentKind {
    Lied,
    /// A peer broke a rule of the protocol.
    BrokeRule,
    /// A peer took part and contributed nothing.
    Absent,
    /// The sides of a split became one.
    Merged,
    /// This daemon took over the state of others.
    TookState,
    /// This daemon refused a peer.
    Refused,
    /// A peer refused this daemon.
    RefusedBy,
    /// A peer's configuration differs, in the keys that the words name.
    Differs,
}

/// One incident.
#[derive(Clone, Debug, PartialEq)]
pub struct Incident {
    /// Its kind.
    pub kind: IncidentKind,
    /// In which round.
    pub round: u64,
    /// The peer that it was about, hexadecimal.
    pub peer: Option<String>,
    /// More of it, in words that follow the peer; may be empty.
    pub words: String,
}

/// The last incidents, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Incidents {
    all: VecDeque<Incident>,
    round: u64,
}

impl Incidents {
    /// The incidents that are kept, oldest first.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Incident> {
        self.all.iter()
    }

    pub(super) fn observe(&mut self, event: &Event) {
        use IncidentKind as Kind;
        let now = self.round;
        let (kind, round, peer, words) = match event {
            Event::Phase { round, .. } => {
                self.round = round.0;
                return;
            }
            Event::Lied {
                peer, round, what, ..
            } => (Kind::Lied, round.0, Some(peer), what.clone()),
            Event::Misbehaved { peer, what, .. } => {
                (Kind::BrokeRule, now, Some(peer), what.clone())
            }
            Event::Absent { peer, .. } => (Kind::Absent, now, Some(peer), String::new()),
            Event::Merged { round, sides, .. } => {
                let sides: Vec<String> = sides.iter().map(|(n, _)| n.to_string()).collect();
                let words = format!("sides of {} daemons", sides.join(" and "));
                (Kind::Merged, round.0, None, words)
            }
            Event::CatchUp { to, .. } => (Kind::TookState, to.0, None, String::new()),
            Event::Refused { peer, reason } => (Kind::Refused, now, Some(peer), reason.to_string()),
            Event::RefusedBy { peer, reason } => {
                (Kind::RefusedBy, now, Some(peer), reason.to_string())
            }
            _ => return,
        };
        self.push(Incident {
            kind,
            round,
            peer: peer.map(PeerId::to_hex),
            words: words.chars().take(WORDS_MAX).collect(),
        });
    }

    /// A peer's configuration differs from this daemon's in these keys.
    pub(super) fn differs(&mut self, peer: &PeerId, keys: &[String]) {
        let named: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        self.push(Incident {
            kind: IncidentKind::Differs,
            round: self.round,
            peer: Some(peer.to_hex()),
            words: named.join(", ").chars().take(WORDS_MAX).collect(),
        });
    }

    fn push(&mut self, incident: Incident) {
        // A peer that does the same again and again must not push out all others.
        let same = |known: &Incident| {
            (known.kind, &known.peer, &known.words)
                == (incident.kind, &incident.peer, &incident.words)
        };
        if let Some(place) = self.all.iter().position(same) {
            self.all.remove(place);
        }
        self.all.push_back(incident);
        if self.all.len() > INCIDENTS_MAX {
            self.all.pop_front();
        }
    }
}
