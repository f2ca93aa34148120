//! Pulling with bounds: on staleness, on how long backups are waited for, and on leads.

use super::*;

fn question(round: u64) -> ExchangeMessage {
    let round = Round(round);
    ExchangeMessage::Pull(PullMessage::Ask { round })
}

#[test]
fn a_question_waits_for_what_is_new_enough() {
    let (mut pull, mut cx) = bounded(PullPlan {
        staleness: 2,
        ..PullPlan::FREE
    });
    pull.begin(&mut cx, &TrainSummary::default());
    let (id, _) = only(&out(&mut cx), encodes);
    done(&mut pull, &mut cx, id, &encoded());
    // What round 5 published answers the questions of round 7, and not those of round 8.
    let (near, far) = (question(7), question(8));
    assert_eq!(signal(&mut pull, &mut cx, ask(2, &near)).pushed.len(), 1);
    assert!(signal(&mut pull, &mut cx, ask(3, &far)).pushed.is_empty());
    pull.finish(&mut cx);
    cx.round = Round(6);
    pull.begin(&mut cx, &TrainSummary::default());
    let (id, _) = only(&out(&mut cx), encodes);
    let told = done(&mut pull, &mut cx, id, &encoded()).pushed;
    let told: Vec<(PeerId, u64)> = told.iter().map(|(to, _, round)| (*to, *round)).collect();
    assert_eq!(told, [(peer(3), 8)]);
}

#[test]
fn a_backup_is_not_waited_for_unless_it_is_too_far_behind() {
    let bounds = PullPlan {
        backup: 1,
        lead: 3,
        ..PullPlan::FREE
    };
    for (behind, waits) in [(0, false), (2, false), (3, true)] {
        let (mut pull, mut cx) = bounded(bounds);
        cx.view.entry(peer(3)).expect("room").round = Round(5 - behind);
        pull.begin(&mut cx, &TrainSummary::default());
        let (id, _) = only(&out(&mut cx), encodes);
        done(&mut pull, &mut cx, id, &encoded());
        let (two, came) = answer(2, 5);
        let after = signal(&mut pull, &mut cx, came);
        let mixes = after.orders.iter().filter(|(_, order)| combines(order));
        assert_eq!(mixes.count() == 0, waits, "{behind} behind");
        if waits {
            // It has come nearer.
            cx.view.entry(peer(3)).expect("room").round = Round(3);
            let after = signal(&mut pull, &mut cx, Signal::Heard(peer(3)));
            let (_, order) = only(&after, combines);
            let (keep, inputs) = row(&order);
            assert!((keep - 2.0 / 3.0).abs() < 1e-15);
            assert_eq!(inputs, [(two, 1.0 / 3.0)]);
        }
    }
}

#[test]
fn without_any_answer_no_partner_is_a_backup() {
    let (mut pull, mut cx) = bounded(PullPlan {
        backup: 9,
        ..PullPlan::FREE
    });
    pull.begin(&mut cx, &TrainSummary::default());
    let (id, _) = only(&out(&mut cx), encodes);
    assert!(done(&mut pull, &mut cx, id, &encoded()).orders.is_empty());
    let (_, came) = answer(3, 5);
    only(&signal(&mut pull, &mut cx, came), combines);
}

#[test]
fn a_mean_over_all_takes_only_what_is_of_the_round() {
    let (mut pull, mut cx) = bounded(PullPlan {
        staleness: 4,
        backup: 1,
        sync_every: 6,
        ..PullPlan::FREE
    });
    pull.begin(&mut cx, &TrainSummary::default());
    let first = out(&mut cx);
    assert_eq!(first.asked, [peer(2), peer(3)]);
    // Asked before it has published: the answer is of this round.
    let asked = question(5);
    assert!(signal(&mut pull, &mut cx, ask(2, &asked)).pushed.is_empty());
    let (id, _) = only(&first, encodes);
    assert_eq!(done(&mut pull, &mut cx, id, &encoded()).pushed.len(), 1);
    let (_, came) = answer(2, 5);
    // No backup in this round.
    assert!(signal(&mut pull, &mut cx, came).orders.is_empty());
    let (_, came) = answer(3, 5);
    let (_, order) = only(&signal(&mut pull, &mut cx, came), combines);
    assert!((row(&order).0 - 1.0 / 3.0).abs() < 1e-15);
}

#[test]
fn who_is_far_behind_continues_in_the_round_of_the_others() {
    for (skip, behind, next) in [(0, 9, 5), (4, 3, 5), (4, 4, 8), (4, 9, 13)] {
        let (mut pull, mut cx) = bounded(PullPlan {
            skip,
            ..PullPlan::FREE
        });
        for id in [2, 3] {
            cx.view.entry(peer(id)).expect("room").round = Round(5 + behind);
        }
        pull.begin(&mut cx, &TrainSummary::default());
        pull.finish(&mut cx);
        assert_eq!(cx.round, Round(next), "skip {skip}, {behind} behind");
    }
}
