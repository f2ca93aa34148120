//! The memory of rounds that ended in every way.

use super::*;
use murmurate_protocol::{Digest, Evaluation, FragmentId, PeerId, Round, TrainSummary};
use std::time::Duration;

const ME: PeerId = PeerId::from_bytes([1; 32]);
const OTHER: PeerId = PeerId::from_bytes([2; 32]);
const THIRD: PeerId = PeerId::from_bytes([3; 32]);

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn insight() -> Insight {
    Insight::new(&ME.to_hex())
}

fn tell(insight: &mut Insight, ms: u64, events: &[Event]) {
    for event in events {
        insight.observe(at(ms), event, &Figures::default());
    }
}

fn trained(round: u64) -> Event {
    let summary = TrainSummary {
        steps: 4,
        samples: 8,
        loss: 1.5,
        seconds: 0.25,
        ..TrainSummary::default()
    };
    Event::Trained {
        round: Round(round),
        summary,
    }
}

fn group(round: u64, members: &[PeerId]) -> Event {
    Event::Group {
        round: Round(round),
        members: members.to_vec(),
    }
}

fn decided(round: u64, shards: &[&[PeerId]]) -> Event {
    let of = |shard: &&[PeerId]| shard.iter().map(|peer| (*peer, 8.0)).collect();
    Event::Decided {
        round: Round(round),
        fragment: FragmentId(0),
        ballot: 0,
        contributors: shards.iter().map(of).collect(),
    }
}

fn ended(round: u64) -> Event {
    Event::RoundEnded {
        round: Round(round),
        digest: Digest::of(b"anchor"),
        seconds: 2.0,
    }
}

fn standing(insight: &Insight, round: u64, peer: PeerId) -> Option<Standing> {
    let entry = insight.ledger.round(round)?;
    Some(entry.peers.get(&peer.to_hex())?.standing)
}

#[test]
fn contributions_are_counted_partly_counted_or_left_out() {
    let mut it = insight();
    let all = [ME, OTHER, THIRD];
    tell(&mut it, 1, &[trained(0), group(0, &all)]);
    tell(&mut it, 2, &[decided(0, &[&all, &[ME, OTHER]]), ended(0)]);
    assert_eq!(standing(&it, 0, ME), Some(Standing::Counted));
    assert_eq!(standing(&it, 0, THIRD), Some(Standing::Partly));
    tell(&mut it, 3, &[trained(1), group(1, &all)]);
    tell(&mut it, 4, &[decided(1, &[&[OTHER, THIRD]]), ended(1)]);
    assert_eq!(standing(&it, 1, ME), Some(Standing::LeftOut));
    let shares = &it.ledger.round(1).unwrap().peers;
    assert_eq!(shares[&OTHER.to_hex()].share, 0.5);
    tell(
        &mut it,
        5,
        &[
            group(2, &[ME, OTHER]),
            decided(2, &[&[ME, OTHER]]),
            ended(2),
        ],
    );
    let totals = it.ledger.totals();
    let expected = PeerTotals {
        partly: 1,
        counted: 1,
        absent: 1,
        ..PeerTotals::default()
    };
    assert_eq!(totals[&THIRD.to_hex()], expected);
    assert_eq!(totals[&ME.to_hex()].left_out, 1);
}

#[test]
fn rounds_without_a_result_say_so() {
    let mut it = insight();
    let void = Event::Voided {
        round: Round(0),
        fragment: FragmentId(0),
    };
    tell(&mut it, 1, &[group(0, &[ME, OTHER]), void, ended(0)]);
    assert_eq!(it.ledger.round(0).unwrap().result, Some(RoundResult::Void));
    assert_eq!(standing(&it, 0, ME), Some(Standing::NoResult));
    let alone = Event::Alone {
        round: Round(1),
        seconds: 1.0,
    };
    tell(&mut it, 2, &[alone, ended(1)]);
    assert_eq!(it.ledger.round(1).unwrap().result, Some(RoundResult::Alone));
    assert_eq!(
        it.history.points().last().unwrap().result,
        Some(RoundResult::Alone)
    );
}

#[test]
fn rounds_without_a_result_are_counted_until_one_is_taken_over() {
    let mut it = insight();
    let void = |round| Event::Voided {
        round: Round(round),
        fragment: FragmentId(0),
    };
    let members = [ME, OTHER];
    tell(
        &mut it,
        1,
        &[group(0, &members), void(0), void(0), ended(0)],
    );
    tell(&mut it, 2, &[group(1, &members), void(1), ended(1)]);
    let alone = Event::Alone {
        round: Round(2),
        seconds: 1.0,
    };
    tell(&mut it, 3, &[alone, ended(2)]);
    let all = [group(3, &members), decided(3, &[&members]), void(3)];
    tell(&mut it, 4, &all);
    tell(&mut it, 5, &[ended(3)]);
    let counted = |void| WithoutResult { void, alone: 1 };
    assert_eq!(it.ledger.without_result(), counted(2), "a part is a result");
    let replayed = Event::Replayed {
        round: Round(1),
        kept: true,
    };
    tell(&mut it, 6, &[replayed]);
    assert_eq!(it.ledger.without_result(), counted(1));
}

#[test]
fn training_of_a_missed_round_is_kept_only_where_the_peer_says_so() {
    let mut it = insight();
    let replayed = |round, kept| Event::Replayed {
        round: Round(round),
        kept,
    };
    tell(&mut it, 0, &[trained(0), replayed(0, true)]);
    // It trained nothing of this one.
    tell(&mut it, 1, &[replayed(1, true)]);
    tell(&mut it, 2, &[trained(2), replayed(2, false)]);
    assert_eq!(standing(&it, 0, ME), Some(Standing::Kept));
    assert_eq!(standing(&it, 1, ME), Some(Standing::Absent));
    assert_eq!(standing(&it, 2, ME), Some(Standing::LeftOut));
    // A state of the next round from one donor is no replay.
    let state = Event::CatchUp {
        from: Round(3),
        to: Round(4),
        donors: 1,
    };
    tell(&mut it, 3, &[trained(3), state]);
    let entry = it.ledger.round(3).unwrap();
    assert_eq!(entry.result, Some(RoundResult::Skipped));
    assert_eq!(standing(&it, 3, ME), Some(Standing::LeftOut));
    let state = Event::CatchUp {
        from: Round(3),
        to: Round(1_000_000),
        donors: 2,
    };
    tell(&mut it, 4, &[state]);
    assert_eq!(it.ledger.rounds().count(), ROUNDS_MAX);
    let last = it.ledger.rounds().next_back().unwrap();
    assert_eq!(
        (last.round, last.result),
        (999_999, Some(RoundResult::Skipped))
    );
    assert_eq!(standing(&it, 999_999, ME), Some(Standing::Absent));
}

#[test]
fn a_round_is_divided_into_training_waiting_and_exchange() {
    let mut it = insight();
    let phase = |phase| Event::Phase {
        round: Round(0),
        phase,
    };
    let waited = Event::Waited {
        wait: Wait::Group,
        waited: Duration::from_millis(500),
        allowed: Duration::from_secs(1),
        expired: false,
    };
    tell(&mut it, 0, &[phase(Phase::Train), trained(0)]);
    tell(&mut it, 250, &[phase(Phase::Exchange), waited]);
    tell(&mut it, 1000, &[phase(Phase::Apply)]);
    tell(&mut it, 2000, &[ended(0)]);
    let evaluation = Evaluation {
        loss: 0.5,
        accuracy: Some(0.75),
        ..Evaluation::default()
    };
    let evaluated = Event::Evaluated {
        round: Round(1),
        evaluation,
    };
    tell(&mut it, 2001, &[evaluated]);
    let point = it.history.points().next().unwrap();
    assert_eq!((point.train_s, point.wait_s), (0.25, 0.5));
    assert_eq!((point.exchange_s, point.seconds), (0.25, 2.0));
    assert_eq!((point.eval_loss, point.accuracy), (Some(0.5), Some(0.75)));
}

#[test]
fn a_long_history_is_bounded_and_keeps_its_ends() {
    let mut history = History::default();
    for round in 0..100_000 {
        history.push(Point {
            round,
            ..Point::default()
        });
        assert!(history.points().count() <= POINTS_MAX);
    }
    let rounds: Vec<u64> = history.points().map(|p| p.round).collect();
    assert_eq!((rounds[0], rounds[rounds.len() - 1]), (0, 99_999));
    assert!(rounds.is_sorted());
    // The newest are complete.
    let newest: Vec<u64> = history.last(1000).map(|p| p.round).collect();
    assert_eq!(newest, (99_000..100_000).collect::<Vec<_>>());
}

#[test]
fn a_long_history_keeps_its_evaluations() {
    let mut history = History::default();
    let rounds = 4 * POINTS_MAX as u64;
    for round in 0..rounds {
        history.push(Point {
            round,
            ..Point::default()
        });
        // It comes after the next round has begun.
        if round % 6 == 1 {
            history.evaluated(round, 0.5, None);
        }
    }
    let evaluated = |of: &Point| of.eval_loss.is_some();
    let older: Vec<&Point> = history
        .points()
        .take(history.points().count() / 2)
        .collect();
    let share = older.iter().filter(|p| evaluated(p)).count() as f64 / older.len() as f64;
    assert!((0.12..0.22).contains(&share), "of six rounds one: {share}");
}

#[test]
fn waiting_time_is_divided_among_those_that_are_waited_for() {
    let mut it = insight();
    let wait = |peers: &[PeerId]| Waiting {
        wait: Wait::Group,
        fragment: FragmentId(0),
        peers: peers.to_vec(),
        since: at(0),
        deadline: at(9000),
    };
    it.set_waiting(at(0), &[wait(&[OTHER, THIRD])]);
    it.set_waiting(at(1000), &[wait(&[OTHER, THIRD])]);
    it.set_waiting(at(1500), &[wait(&[THIRD])]);
    it.set_waiting(at(900_000), &[wait(&[THIRD])]);
    assert_eq!(it.waiting[0].what, "group");
    assert_eq!(it.waiting[0].peers, [THIRD.to_hex()]);
    tell(&mut it, 900_001, &[ended(0)]);
    let slow = it.slow_peers(8);
    assert_eq!(
        slow[&THIRD.to_hex()],
        2.0,
        "a stop of this daemon counts one second"
    );
    assert_eq!(slow[&OTHER.to_hex()], 0.5);
}

#[test]
fn incidents_are_bounded_and_a_repeated_one_pushes_out_no_other() {
    let mut insight = Insight::new("me");
    let lied = |round: u64, what: String| Event::Lied {
        peer: murmurate_protocol::PeerId::from_bytes([1; 32]),
        proven: false,
        round: murmurate_protocol::Round(round),
        what,
    };
    let mut tell = |event: &Event| insight.observe(Time::ZERO, event, &Figures::default());
    tell(&lied(0, "once".to_owned()));
    (1..1000).for_each(|round| tell(&lied(round, "again".to_owned())));
    tell(&lied(1000, "x".repeat(10_000)));
    let rounds: Vec<u64> = insight.incidents.all().map(|i| i.round).collect();
    assert_eq!(rounds, [0, 999, 1000]);
    let longest = insight.incidents.all().map(|i| i.words.len()).max();
    assert!(longest.unwrap() <= 256);
    for round in 0..1000 {
        let event = lied(round, round.to_string());
        insight.observe(Time::ZERO, &event, &Figures::default());
    }
    assert_eq!(insight.incidents.all().count(), INCIDENTS_MAX);
}
