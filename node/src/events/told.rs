//! Which events of the peer go into the log, and as what.

use super::entry::Kind;
use crate::directive::DirectiveStatus;
use murmurate_protocol::{Event, PeerId, Round};
use murmurate_strategies::grid::rung_words;
use std::collections::BTreeSet;
use std::time::Duration;

/// Shorter waits than this that ended in time are not worth a line.
const WAIT_MIN: Duration = Duration::from_millis(50);

/// The longest text of an entry, in characters.
const TEXT_MAX: usize = 300;

fn text(what: &str) -> String {
    what.chars().take(TEXT_MAX).collect()
}

fn names(peers: &[PeerId]) -> Vec<String> {
    peers.iter().map(PeerId::to_hex).collect()
}

/// The entry of an event, with its round where it names one; none if it is not logged.
pub(super) fn told(event: &Event) -> Option<(Option<Round>, Kind)> {
    of_peers(event)
        .or_else(|| of_rounds(event))
        .or_else(|| of_the_daemon(event))
}

/// Events about another peer.
fn of_peers(event: &Event) -> Option<(Option<Round>, Kind)> {
    let kind = match event {
        Event::PeerUp(peer) => Kind::PeerUp {
            peer: peer.to_hex(),
        },
        Event::PeerDown(peer) => Kind::PeerDown {
            peer: peer.to_hex(),
        },
        Event::PeerLeft(peer) => Kind::PeerLeft {
            peer: peer.to_hex(),
        },
        Event::Suspected { peer, round } => {
            let peer = peer.to_hex();
            return Some((Some(*round), Kind::Suspected { peer }));
        }
        Event::Refused { peer, reason } => Kind::Refused {
            peer: peer.to_hex(),
            reason: reason.to_string(),
        },
        Event::RefusedBy { peer, reason } => Kind::RefusedBy {
            peer: peer.to_hex(),
            reason: reason.to_string(),
        },
        Event::Misbehaved { peer, what, .. } => Kind::Misbehaved {
            peer: peer.to_hex(),
            what: text(what),
        },
        Event::Malformed { peer, error } => Kind::Misbehaved {
            peer: peer.to_hex(),
            what: text(&error.to_string()),
        },
        Event::Lied {
            peer, what, proven, ..
        } => Kind::Lied {
            peer: peer.to_hex(),
            what: text(what),
            proven: *proven,
        },
        Event::Absent { peer, until } => Kind::Absent {
            peer: peer.to_hex(),
            until: until.0,
        },
        Event::ClockOff { peer, ahead } => Kind::ClockOff {
            peer: peer.as_ref().map(PeerId::to_hex),
            ahead_s: *ahead,
        },
        _ => return None,
    };
    Some((None, kind))
}

/// Steps of a round.
fn of_rounds(event: &Event) -> Option<(Option<Round>, Kind)> {
    let (round, kind) = match event {
        Event::Phase { round, phase } => {
            let phase = phase.to_string();
            (round, Kind::Phase { phase })
        }
        Event::Trained { round, summary } => (
            round,
            Kind::Trained {
                steps: summary.steps,
                samples: summary.samples,
                loss: summary.loss,
                train_s: summary.seconds,
            },
        ),
        Event::Group { round, members } => {
            let members = names(members);
            (round, Kind::Group { members })
        }
        Event::Seated {
            round,
            peers,
            place,
            ..
        } => {
            let (peers, place) = (*peers, *place);
            (round, Kind::Seated { peers, place })
        }
        Event::Decided {
            round,
            fragment,
            ballot,
            contributors,
        } => {
            let all: BTreeSet<PeerId> = contributors.iter().flatten().map(|(p, _)| *p).collect();
            let decided = Kind::Decided {
                fragment: fragment.0,
                ballot: *ballot,
                contributors: names(&all.into_iter().collect::<Vec<_>>()),
            };
            (round, decided)
        }
        Event::Voided { round, fragment } => {
            let fragment = fragment.0;
            (round, Kind::Voided { fragment })
        }
        Event::Mixed {
            round,
            inputs,
            weight,
        } => {
            let (inputs, weight) = (*inputs, *weight);
            (round, Kind::Mixed { inputs, weight })
        }
        Event::Alone { round, seconds } => (round, Kind::Alone { seconds: *seconds }),
        Event::RoundEnded {
            round,
            digest,
            seconds,
        } => {
            let (seconds, digest) = (*seconds, digest.to_hex());
            (round, Kind::RoundEnded { seconds, digest })
        }
        _ => return of_results(event),
    };
    Some((Some(*round), kind))
}

/// What follows a round's exchange.
fn of_results(event: &Event) -> Option<(Option<Round>, Kind)> {
    let (round, kind) = match event {
        Event::Evaluated { round, evaluation } => {
            let (loss, accuracy) = (evaluation.loss, evaluation.accuracy);
            (round, Kind::Evaluated { loss, accuracy })
        }
        Event::Saved { round } => (round, Kind::Saved),
        Event::CatchUp { from, to, donors } => {
            let (to, donors) = (to.0, *donors);
            (from, Kind::CatchUp { to, donors })
        }
        Event::Replayed { round, kept } => (round, Kind::Replayed { kept: *kept }),
        Event::Directed { round, directive } => {
            let shown = DirectiveStatus::new(directive, "");
            let directed = Kind::Directive {
                number: shown.number,
                change: shown.change,
                value: shown.value,
                codec: shown.codec,
                from: shown.from_round,
            };
            (round, directed)
        }
        Event::Paced {
            round,
            steps,
            before,
            said,
        } => {
            let (steps, before, said) = (*steps, *before, *said);
            let paced = Kind::Paced {
                steps,
                before,
                said,
            };
            (round, paced)
        }
        Event::Recoded { round, change } => {
            let recoded = Kind::Recoded {
                codec: rung_words(&change.codec),
                before: rung_words(&change.before),
                wait: change.wait,
                room: change.room,
            };
            (round, recoded)
        }
        Event::Finished { rounds, .. } => (rounds, Kind::Finished),
        _ => return of_sides(event),
    };
    Some((Some(*round), kind))
}

/// What concerns the sides of a swarm that was split.
fn of_sides(event: &Event) -> Option<(Option<Round>, Kind)> {
    let (round, kind) = match event {
        Event::Merged { round, digest, .. } => {
            let digest = digest.to_hex();
            (round, Kind::Merged { digest })
        }
        Event::NotMerged { round, given_up } => {
            let given_up = *given_up;
            (round, Kind::NotMerged { given_up })
        }
        Event::BranchesMet {
            round,
            base,
            weight,
        } => {
            let (base, weight) = (base.0, *weight);
            (round, Kind::BranchesMet { base, weight })
        }
        Event::BranchSaved { round, weight } => {
            let weight = *weight;
            (round, Kind::BranchSaved { weight })
        }
        _ => return None,
    };
    Some((Some(*round), kind))
}

/// What concerns the daemon as a whole.
fn of_the_daemon(event: &Event) -> Option<(Option<Round>, Kind)> {
    let kind = match event {
        Event::Waited {
            wait,
            waited,
            allowed,
            expired,
        } if *expired || *waited >= WAIT_MIN => Kind::Waited {
            what: wait.word().to_owned(),
            waited_s: waited.as_secs_f64(),
            allowed_s: allowed.as_secs_f64(),
            expired: *expired,
        },
        Event::WorkFailed { what } | Event::TrainerFailed { what } => {
            Kind::WorkFailed { what: text(what) }
        }
        Event::JoinFailed { waited } => Kind::JoinFailed {
            waited_s: waited.as_secs_f64(),
        },
        Event::Missing { here, wanted, .. } => Kind::Missing {
            here: *here as u64,
            wanted: *wanted as u64,
        },
        _ => return None,
    };
    Some((None, kind))
}
