//! Which events of the peer go into the log, and as what.

use super::entry::Kind;
use crate::directive::DirectiveStatus;
use murmurate_protocol::{Event, PeerId, Round, SortedSet};
use murmurate_strategies::grid::rung_words;
use std::time::Duration;

/// Shorter waits than this that ended in time are not worth a line.
const WAIT_MIN: Duration = Duration::from_millis(50);

/// The longest text of an entry, in characters.
const TEXT_MAX: usize = 300;

fn text(what: &str) -> String {
    what.chars().take(TEXT_MAX).collect()
}

fn names<'a>(peers: impl IntoIterator<Item = &'a PeerId>) -> Vec<String> {
    peers.into_iter().map(PeerId::to_hex).collect()
}

/// The entry of an event, with its round where it names one; none if it is not logged.
pub(crate) fn told(event: &Event) -> Option<(Option<Round>, Kind)> {
    let kind = of_peers(event)
        .or_else(|| of_rounds(event))
        .or_else(|| of_the_daemon(event))?;
    Some((round_of(event), kind))
}

/// The round of an entry, if it is not the present one.
const fn round_of(event: &Event) -> Option<Round> {
    match event {
        Event::Suspected { round, .. }
        | Event::Phase { round, .. }
        | Event::Trained { round, .. }
        | Event::Group { round, .. }
        | Event::Seated { round, .. }
        | Event::Decided { round, .. }
        | Event::Voided { round, .. }
        | Event::Mixed { round, .. }
        | Event::Alone { round, .. }
        | Event::RoundEnded { round, .. }
        | Event::Evaluated { round, .. }
        | Event::Saved { round }
        | Event::CatchUp { from: round, .. }
        | Event::Replayed { round, .. }
        | Event::Directed { round, .. }
        | Event::Paced { round, .. }
        | Event::Recoded { round, .. }
        | Event::Merged { round, .. }
        | Event::NotMerged { round, .. }
        | Event::BranchesMet { round, .. }
        | Event::BranchSaved { round, .. }
        | Event::Finished { rounds: round, .. } => Some(*round),
        _ => None,
    }
}

fn of_peers(event: &Event) -> Option<Kind> {
    let hex = PeerId::to_hex;
    Some(match event {
        Event::PeerUp(peer) => Kind::PeerUp { peer: hex(peer) },
        Event::PeerDown(peer) => Kind::PeerDown { peer: hex(peer) },
        Event::PeerLeft(peer) => Kind::PeerLeft { peer: hex(peer) },
        Event::Suspected { peer, .. } => Kind::Suspected { peer: hex(peer) },
        Event::Refused { peer, reason } => Kind::Refused {
            peer: hex(peer),
            reason: reason.to_string(),
        },
        Event::RefusedBy { peer, reason } => Kind::RefusedBy {
            peer: hex(peer),
            reason: reason.to_string(),
        },
        Event::Misbehaved { peer, what, .. } => Kind::Misbehaved {
            peer: hex(peer),
            what: text(what),
        },
        Event::Malformed { peer, error } => Kind::Misbehaved {
            peer: hex(peer),
            what: text(&error.to_string()),
        },
        Event::Lied {
            peer, what, proven, ..
        } => Kind::Lied {
            peer: hex(peer),
            what: text(what),
            proven: *proven,
        },
        Event::Absent { peer, until } => Kind::Absent {
            peer: hex(peer),
            until: until.0,
        },
        Event::ClockOff { peer, ahead } => Kind::ClockOff {
            peer: peer.as_ref().map(hex),
            ahead_s: *ahead,
        },
        _ => return None,
    })
}

fn of_rounds(event: &Event) -> Option<Kind> {
    Some(match *event {
        Event::Phase { phase, .. } => Kind::Phase {
            phase: phase.to_string(),
        },
        Event::Trained { ref summary, .. } => Kind::Trained {
            steps: summary.steps,
            samples: summary.samples,
            loss: summary.loss,
            train_s: summary.seconds,
        },
        Event::Group { ref members, .. } => Kind::Group {
            members: names(members),
        },
        Event::Seated { peers, place, .. } => Kind::Seated { peers, place },
        Event::Decided {
            fragment,
            ballot,
            ref contributors,
            ..
        } => {
            let all: SortedSet<&PeerId> = contributors.iter().flatten().map(|(p, _)| p).collect();
            Kind::Decided {
                fragment: fragment.0,
                ballot,
                contributors: names(all),
            }
        }
        Event::Voided { fragment, .. } => Kind::Voided {
            fragment: fragment.0,
        },
        Event::Mixed { inputs, weight, .. } => Kind::Mixed { inputs, weight },
        Event::Alone { seconds, .. } => Kind::Alone { seconds },
        Event::RoundEnded {
            digest, seconds, ..
        } => Kind::RoundEnded {
            seconds,
            digest: digest.to_hex(),
        },
        Event::Evaluated { ref evaluation, .. } => Kind::Evaluated {
            loss: evaluation.loss,
            accuracy: evaluation.accuracy,
        },
        Event::Saved { .. } => Kind::Saved,
        Event::CatchUp { to, donors, .. } => Kind::CatchUp { to: to.0, donors },
        Event::Replayed { kept, .. } => Kind::Replayed { kept },
        Event::Finished { .. } => Kind::Finished,
        _ => return None,
    })
}

/// Events of the daemon or the run as a whole.
fn of_the_daemon(event: &Event) -> Option<Kind> {
    Some(match *event {
        Event::Directed { ref directive, .. } => {
            let shown = DirectiveStatus::new(directive, "");
            Kind::Directive {
                number: shown.number,
                change: shown.change,
                value: shown.value,
                codec: shown.codec,
                from: shown.from_round,
            }
        }
        Event::Paced {
            steps,
            before,
            said,
            ..
        } => Kind::Paced {
            steps,
            before,
            said,
        },
        Event::Recoded { ref change, .. } => Kind::Recoded {
            codec: rung_words(&change.codec),
            before: rung_words(&change.before),
            wait: change.wait,
            room: change.room,
        },
        Event::Merged { digest, .. } => Kind::Merged {
            digest: digest.to_hex(),
        },
        Event::NotMerged { given_up, .. } => Kind::NotMerged { given_up },
        Event::BranchesMet { base, weight, .. } => Kind::BranchesMet {
            base: base.0,
            weight,
        },
        Event::BranchSaved { weight, .. } => Kind::BranchSaved { weight },
        Event::Waited {
            wait,
            waited,
            allowed,
            expired,
        } if expired || waited >= WAIT_MIN => Kind::Waited {
            what: wait.word().to_owned(),
            waited_s: waited.as_secs_f64(),
            allowed_s: allowed.as_secs_f64(),
            expired,
        },
        Event::WorkFailed { ref what } | Event::TrainerFailed { ref what } => {
            Kind::WorkFailed { what: text(what) }
        }
        Event::JoinFailed { waited } => Kind::JoinFailed {
            waited_s: waited.as_secs_f64(),
        },
        Event::Missing { here, wanted, .. } => Kind::Missing {
            here: here as u64,
            wanted: wanted as u64,
        },
        _ => return None,
    })
}
