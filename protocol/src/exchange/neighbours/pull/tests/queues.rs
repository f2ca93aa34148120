//! Pulling with queues of iterates: which one answers, how many are kept, and what each counts.

use super::*;
use crate::limits::PULL_QUEUE_BYTES_MAX;

const BOUNDS: PullPlan = PullPlan {
    staleness: 2,
    backup: 1,
    lead: 4,
    skip: 0,
    sync_every: 0,
};

fn since(round: u64, taken: Option<u64>) -> ExchangeMessage {
    ExchangeMessage::Pull(PullMessage::AskSince {
        round: Round(round),
        taken: taken.map(Round),
    })
}

/// Goes through a round of this peer in which no other answers. Gives its outputs.
fn alone(pull: &mut Neighbours<Pull>, cx: &mut Context, round: u64, bytes: u64) -> Out {
    cx.round = Round(round);
    pull.begin(cx, &TrainSummary::default());
    let mut all = out(cx);
    let (id, _) = only(&all, encodes);
    let digest = None;
    let after = done(pull, cx, id, &Done::Encoded { bytes, digest });
    all.pushed.extend(after.pushed);
    all.orders.extend(after.orders);
    pull.finish(cx);
    all.orders.extend(out(cx).orders);
    all
}

/// The rounds of the iterates that were pushed.
fn rounds(pushed: &[(PeerId, SliceId, u64)]) -> Vec<u64> {
    pushed.iter().map(|(_, slice, _)| slice.round.0).collect()
}

#[test]
fn a_question_is_answered_with_the_iterate_of_its_round() {
    let (mut pull, mut cx) = queued(BOUNDS);
    for round in 5..=8 {
        alone(&mut pull, &mut cx, round, 48);
    }
    let mut asked = |round, taken| {
        let question = since(round, taken);
        let told = signal(&mut pull, &mut cx, ask(2, &question));
        for (to, slice, _) in &told.pushed {
            let outcome = PushOutcome::Delivered;
            let (to, slice) = (*to, *slice);
            signal(
                &mut pull,
                &mut cx,
                Signal::Pushed(PushEnd { to, slice, outcome }),
            );
        }
        (rounds(&told.pushed), told.said)
    };
    // Of the round itself, though this peer is ahead.
    assert_eq!(asked(6, None).0, [6]);
    assert_eq!(asked(7, Some(6)).0, [7]);
    // This peer is behind: its newest, up to two rounds old.
    assert_eq!(asked(9, None).0, [8]);
    assert_eq!(asked(10, Some(7)).0, [8]);
    let unchanged = PullMessage::Unchanged { round: Round(10) };
    assert_eq!(asked(10, Some(8)), (vec![], vec![(peer(2), unchanged)]));
    // And no older.
    assert_eq!(asked(11, None), (vec![], vec![]));
    let told = alone(&mut pull, &mut cx, 9, 48);
    assert_eq!(rounds(&told.pushed), [9]);
    assert_eq!(told.pushed[0].2, 11);
}

#[test]
fn a_queue_is_as_long_as_a_partner_may_be_behind() {
    let (mut pull, mut cx) = queued(BOUNDS);
    assert_eq!(BOUNDS.queue(), 5);
    for round in 5..=30 {
        let told = alone(&mut pull, &mut cx, round, 48);
        assert!(pull.rule.published.longest() <= BOUNDS.queue());
        let gone: Vec<u64> = released(&told).iter().map(|slice| slice.round.0).collect();
        assert_eq!(
            gone,
            (10..=round)
                .map(|r| r - 5)
                .rev()
                .take(1)
                .collect::<Vec<_>>()
        );
    }
    // One that is further behind gets the oldest that is left.
    let question = since(11, None);
    let told = signal(&mut pull, &mut cx, ask(2, &question));
    assert_eq!(rounds(&told.pushed), [26]);
}

#[test]
fn a_queue_of_large_iterates_is_shorter() {
    let (mut pull, mut cx) = queued(BOUNDS);
    for round in 5..=12 {
        let bytes = PULL_QUEUE_BYTES_MAX / 2;
        alone(&mut pull, &mut cx, round, bytes);
        assert!(pull.rule.published.longest() <= 2, "{round}");
    }
    // The newest stays, however large.
    alone(&mut pull, &mut cx, 13, 2 * PULL_QUEUE_BYTES_MAX);
    assert_eq!(pull.rule.published.longest(), 1);
    let question = since(13, None);
    let told = signal(&mut pull, &mut cx, ask(2, &question));
    assert_eq!(rounds(&told.pushed), [13]);
}

/// Luo et al. 2019, section 4.4: an update u counts u.round - (k - s) + 1.
#[test]
fn answers_count_by_their_age_and_what_did_not_come_counts_nothing() {
    for (staleness, ages) in [(0, [0, 0]), (2, [0, 2]), (4, [1, 3])] {
        let (mut pull, mut cx) = queued(PullPlan {
            staleness,
            ..PullPlan::FREE
        });
        pull.begin(&mut cx, &TrainSummary::default());
        let (id, _) = only(&out(&mut cx), encodes);
        done(&mut pull, &mut cx, id, &encoded());
        let (two, came) = answer(2, 5 - ages[0]);
        assert!(signal(&mut pull, &mut cx, came).orders.is_empty());
        let (three, came) = answer(3, 5 - ages[1]);
        let (_, order) = only(&signal(&mut pull, &mut cx, came), combines);
        let (keep, inputs) = row(&order);
        let s = f64::from(staleness);
        let expected = [s + 1.0, s + 1.0 - ages[0] as f64, s + 1.0 - ages[1] as f64];
        let found = [keep, inputs[0].1, inputs[1].1];
        let total = [expected.iter().sum::<f64>(), found.iter().sum::<f64>()];
        for (expected, found) in expected.iter().zip(found) {
            assert!((expected / total[0] - found / total[1]).abs() < 1e-12);
        }
        assert_eq!([inputs[0].0, inputs[1].0], [two, three]);
    }
}

#[test]
fn an_iterate_enters_one_mean_and_its_successor_the_next() {
    let (mut pull, mut cx) = queued(BOUNDS);
    cx.view.entry(peer(3)).expect("room").round = Round(5);
    pull.begin(&mut cx, &TrainSummary::default());
    let first = out(&mut cx);
    let asked = |round, taken| PullMessage::AskSince {
        round: Round(round),
        taken,
    };
    let both = [2, 3].map(|id| (peer(id), asked(5, None)));
    assert_eq!(first.said, both);
    let (id, _) = only(&first, encodes);
    done(&mut pull, &mut cx, id, &encoded());
    let (_, came) = answer(2, 4);
    let (id, _) = only(&signal(&mut pull, &mut cx, came), combines);
    done(&mut pull, &mut cx, id, &Done::Combined);
    pull.finish(&mut cx);
    out(&mut cx);
    cx.round = Round(6);
    pull.begin(&mut cx, &TrainSummary::default());
    let next = out(&mut cx);
    let taken = Some(Round(4));
    assert_eq!(
        next.said,
        [(peer(2), asked(6, taken)), (peer(3), asked(6, None))]
    );
    let (id, _) = only(&next, encodes);
    done(&mut pull, &mut cx, id, &encoded());
    // Peer 2 is where it was: a round may end with that, and nothing of it is mixed.
    let unchanged = ExchangeMessage::Pull(PullMessage::Unchanged { round: Round(6) });
    let after = signal(&mut pull, &mut cx, ask(2, &unchanged));
    assert!(!after.orders.iter().any(|(_, order)| combines(order)));
    assert_eq!(pull.outcome(), Some(Outcome::Ended));
    // What it says of another round changes nothing.
    signal(&mut pull, &mut cx, ask(2, &unchanged));
}

#[test]
fn what_is_older_than_the_bound_is_refused() {
    let (mut pull, mut cx) = queued(BOUNDS);
    pull.begin(&mut cx, &TrainSummary::default());
    out(&mut cx);
    let (old, came) = answer(2, 2);
    assert!(pull.signal(&mut cx, came).is_err());
    assert_eq!(released(&out(&mut cx)), [old]);
    // A partner that claims to be far ahead counts as one of the round.
    let (_, came) = answer(2, 1_000_000);
    signal(&mut pull, &mut cx, came);
    let counts = pull
        .rule
        .weights(Round(5), &pull.mixes.at(0).expect("one").own)
        .1;
    assert!((counts[0].1 - 1.0).abs() < 1e-12, "{counts:?}");
}

#[test]
fn a_peer_that_is_ahead_waits_for_a_token_of_its_backup() {
    for behind in 0..8 {
        let (mut pull, mut cx) = queued(BOUNDS);
        cx.view.entry(peer(3)).expect("room").round = Round(8_u64.saturating_sub(behind));
        cx.round = Round(8);
        pull.begin(&mut cx, &TrainSummary::default());
        let (id, _) = only(&out(&mut cx), encodes);
        done(&mut pull, &mut cx, id, &encoded());
        let (two, mut came) = answer(2, 8);
        if let Signal::Arrived(arrived) = &mut came {
            arrived.meta.tag = Tag::Answer { round: Round(8) };
        }
        let after = signal(&mut pull, &mut cx, came);
        let goes_on = after.orders.iter().any(|(_, order)| combines(order));
        assert_eq!(goes_on, behind < u64::from(BOUNDS.lead), "{behind} behind");
        if !goes_on {
            // A question of the partner says that it has come nearer.
            let question = since(5, None);
            let after = signal(&mut pull, &mut cx, ask(3, &question));
            let (_, order) = only(&after, combines);
            assert_eq!(
                row(&order).1.iter().map(|(s, _)| *s).collect::<Vec<_>>(),
                [two]
            );
        }
    }
}

/// Luo et al. 2019, section 5: a straggler renews its parameters with those of the round before the
/// one that it continues in.
#[test]
fn who_skips_rounds_renews_its_parameters_first() {
    for (behind, target, keeps) in [(3, 5, true), (4, 8, false), (9, 13, false)] {
        let (mut pull, mut cx) = queued(PullPlan {
            staleness: 2,
            skip: 4,
            ..PullPlan::FREE
        });
        for id in [2, 3] {
            cx.view.entry(peer(id)).expect("room").round = Round(5 + behind);
        }
        pull.begin(&mut cx, &TrainSummary::default());
        let first = out(&mut cx);
        for (_, message) in &first.said {
            assert_eq!(message.round(), Round(target), "{behind} behind");
        }
        let (id, _) = only(&first, encodes);
        done(&mut pull, &mut cx, id, &encoded());
        let mut last = Vec::new();
        for id in [2, 3] {
            let (_, mut came) = answer(id, target);
            if let Signal::Arrived(arrived) = &mut came {
                arrived.meta.tag = Tag::Answer {
                    round: Round(target),
                };
            }
            last = signal(&mut pull, &mut cx, came).orders;
        }
        let (_, order) = last
            .iter()
            .find(|(_, order)| combines(order))
            .expect("a mix");
        // Its own are older than the bound.
        assert_eq!(row(order).0 > 0.0, keeps, "{behind} behind");
        pull.finish(&mut cx);
        assert_eq!(cx.round, Round(target));
    }
}
