//! What the tests of several modules share.

use murmurate_protocol::vitals::Vitals;
use murmurate_protocol::{PeerId, Phase, Round};

/// What a daemon says of itself that has nothing to say but its round and phase.
pub(crate) fn vitals(peer: PeerId, round: u64, phase: Phase) -> Vitals {
    Vitals {
        peer,
        sequence: 1,
        unix_ms: 1000,
        name: None,
        version: "0.1.0".to_owned(),
        round: Round(round),
        phase,
        waiting: None,
        steps_per_s: None,
        loss: None,
        accuracy: None,
        last_round: None,
        memory: None,
        saved_round: None,
    }
}

/// Fails unless a text has this part.
#[track_caller]
pub(crate) fn assert_has(text: &str, part: &str) {
    assert!(text.contains(part), "{text}");
}

/// Fails unless a text begins so.
#[track_caller]
pub(crate) fn assert_begins(text: &str, start: &str) {
    assert!(text.starts_with(start), "{text}");
}

/// Fails unless a text ends so.
#[track_caller]
pub(crate) fn assert_ends(text: &str, end: &str) {
    assert!(text.ends_with(end), "{text}");
}
