//! The sentences, for a table of situations.

mod accuracy;
mod named;
mod refused;
mod situations;

use super::*;
use crate::api::status::PathStatus;
use crate::api::{About, Claims, ControlStatus, Figures, PeerStatus, Presence};
use crate::net::SeenVitals;
use murmurate_protocol::vitals::{DaemonName, Vitals};
use murmurate_protocol::{
    Digest, Event, FragmentId, PeerId, Phase, Round, Time, TrainSummary, Wait, Waiting,
};
use std::time::Duration;

const ME: PeerId = PeerId::from_bytes([0xaa; 32]);
const CAROL: PeerId = PeerId::from_bytes([0xca; 32]);
const BOB: PeerId = PeerId::from_bytes([0xb0; 32]);

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

struct Case {
    status: Status,
    insight: Insight,
    claims: Claims,
    about: About,
}

impl Case {
    fn new(phase: &str, round: u64) -> Self {
        let mut status = Status {
            peer: ME.to_hex(),
            phase: phase.to_owned(),
            round,
            ..Status::default()
        };
        for (peer, round) in [(CAROL, round.saturating_sub(2)), (BOB, round)] {
            let known = PeerStatus {
                presence: Presence::Linked,
                round: Some(round),
                ..PeerStatus::default()
            };
            status.peers.insert(peer.to_hex(), known);
        }
        Self {
            status,
            insight: Insight::new(&ME.to_hex()),
            claims: Claims::default(),
            about: About::default(),
        }
    }

    fn waits(&mut self, wait: Wait, peers: &[PeerId]) {
        let waiting = Waiting {
            wait,
            fragment: FragmentId(0),
            peers: peers.to_vec(),
            since: at(10_000),
            deadline: at(20_000),
        };
        self.insight.set_waiting(at(17_800), &[waiting]);
    }

    fn tell(&mut self, events: &[Event]) {
        for event in events {
            self.insight.observe(at(1000), event, &Figures::default());
        }
    }

    fn ask(&self, what: Topic, round: Option<u64>, peer: Option<&str>) -> Answer {
        let facts = Facts {
            status: &self.status,
            insight: &self.insight,
            claims: &self.claims,
            about: &self.about,
            now: 17.8,
        };
        let peer = peer.map(str::to_owned);
        let answer = why(&facts, &Question { what, round, peer });
        assert!(answer.action.ends_with('.'), "{answer:?}");
        assert!(
            answer.sentences.iter().all(|s| s.ends_with('.')),
            "{answer:?}"
        );
        answer
    }
}

#[test]
fn a_training_loop_that_does_not_run_comes_first() {
    let mut case = Case::new("settle", 7);
    case.waits(Wait::Group, &[CAROL]);
    case.status.trainer = Some("the trainer ended (exit status: 1): KeyError: 'x'".to_owned());
    let answer = case.ask(Topic::Round, None, None);
    assert_eq!(
        answer.sentences[0],
        "This daemon's training loop does not run: the trainer ended (exit status: 1): KeyError: 'x'."
    );
    assert!(answer.asks_to_act(), "{answer:?}");
}

#[test]
fn a_hanging_round_names_who_is_missing_since_when_and_until_when() {
    let mut case = Case::new("exchange", 41);
    case.waits(Wait::Group, &[CAROL]);
    let answer = case.ask(Topic::Round, None, None);
    assert_eq!(
        answer.sentences,
        [
            "Round 41 waits for daemon cacacaca (linked, in round 39): it has not ended its training of the \
             round.",
            "It has waited 7.8 s.",
            "The deadline is in 2.2 s; then the round goes on with 2 of 3.",
        ]
    );
    assert!(answer.action.contains("silent for 7.8 s"), "{answer:?}");
    assert_eq!(answer.peers, [CAROL.to_hex()]);
    let other = case.ask(Topic::Round, None, Some("b0b0"));
    assert!(other.sentences[0].starts_with("Round 41 does not wait for daemon b0b0b0b0"));
    assert_eq!(other.action, NOTHING);
}

#[test]
fn a_wait_for_a_peer_without_a_link_says_what_to_check() {
    let mut case = Case::new("exchange", 41);
    let carol = case.status.peers.get_mut(&CAROL.to_hex()).unwrap();
    carol.presence = Presence::Away;
    case.waits(Wait::Contributions, &[CAROL]);
    let answer = case.ask(Topic::Round, None, None);
    assert!(answer.sentences[0].contains("not linked, last seen in round 39"));
    let expected = "Check that daemon cacacaca runs and that this machine can reach it.";
    assert_eq!(answer.action, expected);
}

#[test]
fn training_and_unknown_questions_have_an_answer_too() {
    let case = Case::new("train", 41);
    let answer = case.ask(Topic::Round, None, None);
    assert!(answer.sentences[0].starts_with("Round 41: this daemon trains"));
    assert_eq!(answer.action, NOTHING);
    assert!(case.ask(Topic::Round, Some(50), None).sentences[0].contains("has not begun"));
    assert!(case.ask(Topic::Round, Some(3), None).sentences[0].contains("nothing is remembered"));
    assert!(case.ask(Topic::Slow, None, None).sentences[0].contains("nothing is measured"));
    assert!(case.ask(Topic::Contribution, None, None).sentences[0].contains("No round has ended"));
    let unknown = case.ask(Topic::Round, None, Some("ff"));
    assert!(
        unknown.sentences[0].contains("knows no peer"),
        "{unknown:?}"
    );
}

fn round(number: u64, members: &[PeerId], contributors: &[PeerId]) -> Vec<Event> {
    let summary = TrainSummary {
        seconds: 3.2,
        ..TrainSummary::default()
    };
    let round = Round(number);
    vec![
        Event::Trained { round, summary },
        Event::Group {
            round,
            members: members.to_vec(),
        },
        Event::Waited {
            wait: Wait::Group,
            waited: Duration::from_millis(5100),
            allowed: Duration::from_secs(9),
            expired: false,
        },
        Event::Decided {
            round,
            fragment: FragmentId(0),
            ballot: 0,
            contributors: vec![contributors.iter().map(|p| (*p, 100.0)).collect()],
        },
        Event::RoundEnded {
            round,
            digest: Digest::of(b"anchor"),
            seconds: 9.1,
        },
    ]
}

#[test]
fn contributions_are_explained_for_this_daemon_and_for_others() {
    let mut case = Case::new("train", 2);
    case.tell(&round(0, &[ME, BOB], &[ME, BOB]));
    case.tell(&round(1, &[ME, BOB], &[BOB]));
    let counted = case.ask(Topic::Contribution, Some(0), None);
    assert_eq!(
        counted.sentences[0],
        "The result of round 0 contains your contribution: 50 % of it, by weight 100."
    );
    let left_out = case.ask(Topic::Contribution, None, None);
    assert!(left_out.sentences[0].starts_with("Round 1 left your contribution out"));
    assert!(
        left_out.sentences[1].contains("counted in 1 of 2 rounds"),
        "{left_out:?}"
    );
    assert!(left_out.action.contains("slower than the others"));
    let mut failing = Case::new("train", 2);
    failing.tell(&round(0, &[ME, BOB], &[BOB]));
    let what = "training failed: a value is not finite in tensor `w`".to_owned();
    failing.tell(&[Event::WorkFailed { what }]);
    let failed = failing.ask(Topic::Contribution, None, None);
    assert!(failed.sentences[0].ends_with("a value is not finite in tensor `w`."));
    assert_eq!(
        failed.sentences[1],
        "Round 0 has nothing of this daemon, because its own work failed."
    );
    assert!(failed.action.starts_with("Mend what the message names"));
    let other = case.ask(Topic::Contribution, None, Some("caca"));
    assert!(other.sentences[0].contains("not in the group"), "{other:?}");
    let late = Event::Replayed {
        round: Round(2),
        kept: true,
    };
    let trained = round(2, &[], &[]).swap_remove(0);
    case.tell(&[trained, late]);
    let kept = case.ask(Topic::Contribution, None, None);
    assert!(
        kept.sentences[0].contains("It is kept for the next round"),
        "{kept:?}"
    );
}

#[test]
fn slow_rounds_name_the_largest_part_and_the_peer_behind_it() {
    let mut case = Case::new("exchange", 1);
    let wait = Waiting {
        wait: Wait::Group,
        fragment: FragmentId(0),
        peers: vec![BOB],
        since: at(0),
        deadline: at(9000),
    };
    case.insight.set_waiting(at(0), std::slice::from_ref(&wait));
    case.insight.set_waiting(at(900), &[wait]);
    case.tell(&round(0, &[ME, BOB], &[ME, BOB]));
    let answer = case.ask(Topic::Slow, None, None);
    assert_eq!(answer.sentences[0], "Rounds take 9.1 s (mean of 1).");
    assert!(answer.sentences[1].starts_with("Training takes 3.2 s, waiting for others 5.1 s"));
    assert!(
        answer.sentences[2].starts_with("It waited longest for daemon b0b0b0b0"),
        "{answer:?}"
    );
    assert!(answer.action.starts_with("Give daemon b0b0b0b0 less work"));
    let bob = case.status.peers.get_mut(&BOB.to_hex()).unwrap();
    bob.path = Some(PathStatus {
        kind: "relayed".to_owned(),
        relay: Some(CAROL.to_hex()),
        reason: String::new(),
    });
    let answer = case.ask(Topic::Slow, None, None);
    let detour = "(relayed through daemon cacacaca)";
    assert!(answer.sentences[2].contains(detour), "{answer:?}");
    let action = "Let daemon b0b0b0b0 and this one reach each other directly";
    assert!(answer.action.starts_with(action), "{answer:?}");
    let past = case.ask(Topic::Round, Some(0), None);
    assert!(
        past.sentences[1].contains("waited the longest for daemon b0b0b0b0"),
        "{past:?}"
    );
}

#[test]
fn a_peer_whose_bytes_are_late_is_blamed_and_not_the_codec() {
    let mut case = Case::new("exchange", 1);
    let wait = Waiting {
        wait: Wait::Contributions,
        fragment: FragmentId(0),
        peers: vec![BOB],
        since: at(0),
        deadline: at(9000),
    };
    for second in 0..8 {
        case.insight
            .set_waiting(at(second * 1000), std::slice::from_ref(&wait));
    }
    let mut events = round(0, &[ME, BOB], &[ME, BOB]);
    events.retain(|event| !matches!(event, Event::Waited { .. }));
    let phase = |phase| Event::Phase {
        round: Round(0),
        phase,
    };
    case.insight
        .observe(at(0), &phase(Phase::Exchange), &Figures::default());
    case.insight
        .observe(at(8000), &phase(Phase::Apply), &Figures::default());
    case.tell(&events);
    let answer = case.ask(Topic::Slow, None, None);
    assert!(
        answer.sentences[1].ends_with("exchange 8.0 s."),
        "{answer:?}"
    );
    assert!(
        answer.action.starts_with("Give daemon b0b0b0b0 less work"),
        "{answer:?}"
    );
}

#[test]
fn a_pause_has_an_owner_and_a_round() {
    let mut case = Case::new("paused", 43);
    case.status.control = ControlStatus {
        paused: true,
        paused_from: Some(41),
        ..ControlStatus::default()
    };
    let answer = case.ask(Topic::Round, None, None);
    assert_eq!(
        answer.sentences,
        ["The run is paused by the owner since round 41: round 43 does not begin."]
    );
    assert!(
        answer.action.contains("murmurate control resume"),
        "{answer:?}"
    );
}

fn evaluated(round: u64, accuracy: f64) -> Event {
    Event::Evaluated {
        round: Round(round),
        evaluation: murmurate_protocol::Evaluation {
            loss: 1.0 - accuracy,
            accuracy: Some(accuracy),
            ..Default::default()
        },
    }
}

/// Rounds of all three daemons, each evaluated, with these accuracies.
fn curve(case: &mut Case, from: u64, accuracies: &[f64]) {
    for (number, accuracy) in (from..).zip(accuracies) {
        case.tell(&[Event::Phase {
            round: Round(number),
            phase: Phase::Train,
        }]);
        case.tell(&round(number, &[ME, BOB, CAROL], &[ME, BOB, CAROL]));
        case.tell(&[evaluated(number + 1, *accuracy)]);
    }
}

#[test]
fn a_fall_of_the_accuracy_is_explained_by_what_happened_in_its_rounds() {
    let mut case = Case::new("train", 9);
    let nothing = case.ask(Topic::Accuracy, None, None);
    assert!(nothing.sentences[0].starts_with("No evaluation of an accuracy"));
    curve(&mut case, 0, &[0.8, 0.9, 0.898]);
    let same = case.ask(Topic::Accuracy, None, None);
    assert!(
        same.sentences[0].contains("has not fallen by more than 0.5 %"),
        "{same:?}"
    );
    assert_eq!(same.action, NOTHING);
    let lied = Event::Lied {
        peer: CAROL,
        proven: false,
        round: Round(3),
        what: "it sent two different values".to_owned(),
    };
    case.tell(&[lied]);
    curve(&mut case, 3, &[0.6]);
    let answer = case.ask(Topic::Accuracy, None, None);
    let fell = "The accuracy fell from 89.8 % after round 2 to 60.0 % after round 3.";
    assert_eq!(answer.sentences[0], fell);
    let lie =
        "In round 3, daemon cacacaca (linked, in round 7) lied: it sent two different values.";
    assert_eq!(answer.sentences[1], lie);
    assert!(answer.action.contains("`murmurate revoke`"), "{answer:?}");
    assert_eq!(answer.peers, [CAROL.to_hex()]);
    // Of another peer nothing is known that explains it.
    let bob = case.ask(Topic::Accuracy, None, Some("b0b0"));
    assert!(bob.sentences[1].contains("saw nothing unusual"), "{bob:?}");
    // Once it has recovered, the fall is still explained.
    curve(&mut case, 4, &[0.7, 0.91]);
    let over = case.ask(Topic::Accuracy, None, None);
    assert_eq!(over.sentences[0], fell);
    assert_eq!(
        over.sentences.last().unwrap(),
        "It has recovered: 91.0 % after round 5."
    );
    // The liar is a member still.
    assert!(
        over.action.contains("`murmurate revoke cacacaca`"),
        "{over:?}"
    );
    let rose = case.ask(Topic::Accuracy, Some(5), None);
    assert!(
        rose.sentences[0].starts_with("The accuracy rose from 70.0 %"),
        "{rose:?}"
    );
    let unknown = case.ask(Topic::Accuracy, Some(100), None);
    assert!(
        unknown.sentences[0].starts_with("Nothing is known"),
        "{unknown:?}"
    );
}

/// Evenly slow links are no daemon's fault, and fewer inner steps would make it worse.
#[test]
fn only_a_peer_that_is_slower_than_the_others_is_blamed() {
    let mut case = Case::new("exchange", 1);
    for second in 0..8 {
        let wait = Waiting {
            wait: Wait::Contributions,
            fragment: FragmentId(0),
            peers: vec![if second % 2 == 0 { BOB } else { CAROL }],
            since: at(0),
            deadline: at(9000),
        };
        case.insight.set_waiting(at(second * 1000), &[wait]);
    }
    let round_0 = |phase| Event::Phase {
        round: Round(0),
        phase,
    };
    let mut events = round(0, &[ME, BOB, CAROL], &[ME, BOB, CAROL]);
    events.retain(|event| !matches!(event, Event::Waited { .. }));
    for (ms, phase) in [(0, Phase::Exchange), (8000, Phase::Apply)] {
        case.insight
            .observe(at(ms), &round_0(phase), &Figures::default());
    }
    case.tell(&events);
    let answer = case.ask(Topic::Slow, None, None);
    assert_eq!(answer.peers, [] as [String; 0], "{answer:?}");
    assert!(answer.action.starts_with("Send less"), "{answer:?}");
    assert!(answer.action.contains("more inner steps"), "{answer:?}");
    // A daemon that is gone has no work that could be less.
    let mut case = Case::new("exchange", 1);
    case.status.peers.get_mut(&BOB.to_hex()).unwrap().presence = Presence::Away;
    let waits = |since| Waiting {
        wait: Wait::Group,
        fragment: FragmentId(0),
        peers: vec![BOB],
        since: at(since),
        deadline: at(9000),
    };
    case.insight.set_waiting(at(0), &[waits(0)]);
    case.insight.set_waiting(at(900), &[waits(0)]);
    case.tell(&round(0, &[ME, BOB], &[ME, BOB]));
    let answer = case.ask(Topic::Slow, None, None);
    assert!(!answer.action.contains("less work"), "{answer:?}");
}
