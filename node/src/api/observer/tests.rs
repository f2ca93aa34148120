//! Events go in, the status comes out: counts, rates, waits and times of a daemon's life.

use super::*;
use crate::report::NodeReport;
use crate::tests::assert_begins;
use murmurate_protocol::{Digest, Evaluation, FragmentId, Round};

fn at(seconds: u64) -> Time {
    Time::from_nanos(seconds * 1_000_000_000)
}

fn trained(steps: u64) -> Event {
    let summary = TrainSummary {
        steps,
        samples: 10 * steps,
        loss: 0.5,
        seconds: 1.0,
        blocks: 0,
    };
    Event::Trained {
        round: Round(0),
        summary,
    }
}

fn phase(round: u64, phase: Phase) -> Event {
    Event::Phase {
        round: Round(round),
        phase,
    }
}

#[test]
fn a_round_is_told_in_full() {
    let mut observer = Observer::new(About::default(), Progress::default());
    let (a, b) = (PeerId::from_bytes([1; 32]), PeerId::from_bytes([2; 32]));
    let (round, digest) = (Round(2), Digest::of(b"x"));
    let evaluation = Evaluation {
        loss: 0.25,
        accuracy: Some(0.9),
        top_5: None,
        samples: 100,
    };
    let contributors = vec![vec![(a, 200.0)], vec![(a, 200.0), (b, 100.0)]];
    let decided = Event::Decided {
        round,
        fragment: FragmentId(0),
        ballot: 0,
        contributors,
    };
    let events = [
        (1, Event::PeerUp(b)),
        (5, phase(2, Phase::Train)),
        (7, trained(20)),
        (
            7,
            Event::Group {
                round,
                members: vec![a, b],
            },
        ),
        (8, decided),
        (
            9,
            Event::RoundEnded {
                round,
                digest,
                seconds: 4.0,
            },
        ),
        (
            9,
            Event::Evaluated {
                round: Round(3),
                evaluation,
            },
        ),
        (9, Event::Suspected { peer: b, round }),
    ];
    for (second, event) in &events {
        observer.observe(at(*second), event);
    }
    let status = observer.status(at(11));
    assert_eq!(
        (status.round, status.rounds_ended, status.inner_steps),
        (2, 3, 20)
    );
    assert_eq!(
        (status.wall_s, status.train_s, status.inner_steps_per_s),
        (6.0, 1.0, 10.0)
    );
    let group = status.group.unwrap();
    assert_eq!(
        (group.members.len(), group.contributors[1][1].weight),
        (2, 100.0)
    );
    assert_eq!(status.evaluation.unwrap().accuracy, Some(0.9));
    let peer = &status.peers[&b.to_hex()];
    assert!(peer.is_linked() && peer.suspected && peer.round == Some(2));
    assert_eq!(status.digest.unwrap(), digest.to_hex());
}

#[test]
fn a_report_says_how_many_rounds_had_no_result_and_why() {
    let mut observer = Observer::new(About::default(), Progress::default());
    let (peer, digest) = (PeerId::from_bytes([2; 32]), Digest::of(b"x"));
    let words = |observer: &mut Observer| {
        let report = NodeReport::from(&observer.status(at(9)));
        report.no_result.in_words()
    };
    observer.observe(at(1), &Event::PeerUp(peer));
    observer.observe(at(1), &phase(0, Phase::Train));
    assert_eq!(words(&mut observer), None);
    for round in [Round(0), Round(1)] {
        let void = Event::Voided {
            round,
            fragment: FragmentId(0),
        };
        let ended = Event::RoundEnded {
            round,
            digest,
            seconds: 1.0,
        };
        observer.observe(at(2), &void);
        observer.observe(at(3), &ended);
    }
    let count = "2 rounds had no result: 2 whose group agreed on no result in time";
    assert_eq!(words(&mut observer).as_deref(), Some(count));
    observer.observe(at(4), &Event::PeerDown(peer));
    let line = words(&mut observer).unwrap();
    assert_begins(
        &line,
        &format!("{count}; why: This daemon is cut off since "),
    );
}

/// A round was void here and decided by the others, whose state this daemon took over: until the next round ends,
/// the digest would be that of the parameters before.
#[test]
fn the_digest_is_that_of_the_state_that_was_taken_over() {
    let mut observer = Observer::new(About::default(), Progress::default());
    let (before, decided) = (Digest::of(b"before"), Digest::of(b"decided"));
    observer.opens(Round(38), before);
    assert_eq!(observer.status(at(1)).digest, None, "no round has ended");
    let ended = Event::RoundEnded {
        round: Round(38),
        digest: before,
        seconds: 1.0,
    };
    observer.observe(at(1), &ended);
    let shown = |observer: &mut Observer| {
        let status = observer.status(at(2));
        (status.digest_round, status.digest)
    };
    assert_eq!(shown(&mut observer), (Some(38), Some(before.to_hex())));
    observer.opens(Round(39), decided);
    assert_eq!(shown(&mut observer), (Some(38), Some(decided.to_hex())));
    observer.opens(Round(41), before);
    assert_eq!(shown(&mut observer), (Some(40), Some(before.to_hex())));
    observer.opens(Round(12), decided);
    assert_eq!(shown(&mut observer).0, Some(40), "it never goes back");
}

#[test]
fn the_clock_stops_when_all_rounds_are_done() {
    let mut observer = Observer::new(About::default(), Progress::default());
    observer.observe(
        at(1),
        &Event::Phase {
            round: Round(0),
            phase: Phase::Train,
        },
    );
    let digest = Digest::of(b"taken over at the end");
    let rounds = Round(1);
    observer.observe(at(3), &Event::Finished { digest, rounds });
    let shown = observer.status(at(3));
    assert_eq!(shown.digest, Some(digest.to_hex()));
    assert_eq!(shown.digest_round, Some(0));
    observer.observe(
        at(9),
        &Event::Phase {
            round: Round(1),
            phase: Phase::Leaving,
        },
    );
    assert_eq!(observer.progress(at(20)).wall_s, 2.0);
}

/// An evaluation takes seconds, while inner steps take milliseconds: it would look like a wait.
#[test]
fn what_follows_the_last_round_is_no_part_of_the_wall_time() {
    let mut observer = Observer::new(About::default(), Progress::default());
    observer.observe(at(1), &phase(0, Phase::Train));
    observer.observe(at(3), &phase(1, Phase::Settle));
    // A round that is not the last one: its evaluation counts.
    observer.observe(at(4), &phase(1, Phase::Train));
    observer.observe(at(7), &phase(2, Phase::Settle));
    let (digest, rounds) = (Digest::of(b"the last"), Round(2));
    observer.observe(at(9), &Event::Finished { digest, rounds });
    assert_eq!(observer.progress(at(20)).wall_s, 6.0);
}

#[test]
fn a_resumed_daemon_counts_on() {
    let base = Progress {
        inner_steps: 100,
        samples: 1000,
        train_s: 5.0,
        wall_s: 8.0,
    };
    let mut observer = Observer::new(About::default(), base);
    observer.observe(
        at(1),
        &Event::Phase {
            round: Round(9),
            phase: Phase::Train,
        },
    );
    observer.observe(at(2), &trained(10));
    assert_eq!(observer.status(at(2)).rounds_ended, 9);
    let expected = Progress {
        inner_steps: 110,
        samples: 1100,
        train_s: 6.0,
        wall_s: 10.0,
    };
    assert_eq!(observer.progress(at(3)), expected);
    assert_eq!(observer.status(at(3)).inner_steps_per_s, 10.0);
}

#[test]
fn live_counts_and_finished_trainings_are_not_added_up() {
    let mut observer = Observer::new(About::default(), Progress::default());
    observer.observe(at(1), &phase(0, Phase::Train));
    observer.set_live_steps(at(2), 15, 150);
    let status = observer.status(at(2));
    assert_eq!(
        (status.inner_steps_per_s, status.round_steps),
        (15.0, 15),
        "before the first training has ended"
    );
    assert_eq!(observer.progress(at(2)).inner_steps, 15);
    observer.observe(at(2), &trained(20));
    observer.set_live_steps(at(3), 20, 200);
    let progress = observer.progress(at(3));
    assert_eq!((progress.inner_steps, progress.samples), (20, 200));
    assert_eq!(observer.status(at(3)).inner_steps_per_s, 20.0);
    assert_eq!(observer.status(at(3)).round_steps, 0);
}

#[test]
fn a_peer_that_left_is_told_from_one_whose_link_is_lost() {
    let mut observer = Observer::new(About::default(), Progress::default());
    let (a, b) = (PeerId::from_bytes([1; 32]), PeerId::from_bytes([2; 32]));
    for event in [
        Event::PeerUp(a),
        Event::PeerUp(b),
        Event::PeerDown(a),
        Event::PeerLeft(b),
    ] {
        observer.observe(at(1), &event);
    }
    let left = |observer: &mut Observer, peer: PeerId| {
        let peer = &observer.status(at(2)).peers[&peer.to_hex()];
        (peer.is_linked(), peer.presence == Presence::Left)
    };
    assert_eq!(left(&mut observer, a), (false, false));
    assert_eq!(left(&mut observer, b), (false, true));
    observer.observe(at(3), &Event::PeerUp(b));
    assert_eq!(left(&mut observer, b), (true, false));
}

#[test]
fn the_longest_wait_keeps_its_own_deadline() {
    let mut observer = Observer::new(About::default(), Progress::default());
    let wait = |wait, waited, allowed| Event::Waited {
        wait,
        waited: Duration::from_secs(waited),
        allowed: Duration::from_secs(allowed),
        expired: waited == allowed,
    };
    observer.observe(at(1), &wait(Wait::Peers, 50, 60));
    observer.observe(at(2), &wait(Wait::Agreement, 3, 3));
    observer.observe(at(3), &wait(Wait::Contributions, 2, 9));
    let status = observer.status(at(4));
    let expected = WaitStatus {
        what: "agreement".to_owned(),
        waited_s: 3.0,
        deadline_s: 3.0,
    };
    assert_eq!(status.longest_wait, Some(expected));
    assert_eq!(status.unusual.expired_waits, 1);
}
