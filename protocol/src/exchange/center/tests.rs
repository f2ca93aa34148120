//! A center by hand: one peer that owns everything, and what others bring to it.

use super::*;
use crate::Combination;
use crate::exchange::tests::alone;
use crate::id::tests::peer;
use crate::{CenterPlan, Contribution, Ending, Round};
use crate::{Order, Output, WorkError};

/// A center of one shard, and its context.
fn center(contribution: Contribution) -> (Center, Context) {
    let plan = CenterPlan {
        owners: 1,
        lead: None,
        buffer: 1,
    };
    let cx = alone(crate::ExchangeKind::Center(plan), contribution);
    (Center::new(&cx.plan).expect("a center"), cx)
}

/// What came out since the last call.
fn outputs(cx: &mut Context) -> (Vec<(OrderId, Order)>, usize) {
    let (mut orders, mut pushes) = (Vec::new(), 0);
    while let Some(output) = cx.take() {
        match output {
            Output::Order { id, order } => orders.push((id, order)),
            Output::Push { .. } => pushes += 1,
            _ => {}
        }
    }
    (orders, pushes)
}

fn contribution(from: u8, round: u64, life: u8) -> Signal<'static> {
    Signal::Arrived(Arrived {
        from: peer(from),
        slice: SliceId {
            round: Round(round),
            fragment: FragmentId(0),
            shard: 0,
            part: Part::Contribution,
            origin: peer(from),
            attempt: crate::Attempt(life),
        },
        meta: SliceMeta {
            of: 1,
            bytes: 48,
            tag: Tag::Update {
                base: 0,
                round: Round(round),
            },
        },
        digest: None,
    })
}

fn done(center: &mut Center, cx: &mut Context, order: OrderId, done: &Done) {
    center
        .signal(cx, Signal::Done { order, done })
        .expect("an answer breaks no rule");
}

fn encoded() -> Done {
    Done::Encoded {
        bytes: 48,
        digest: None,
    }
}

#[test]
fn what_is_brought_again_is_answered_again_and_counted_once() {
    for kind in [Contribution::Delta, Contribution::Parameters] {
        let (mut center, mut cx) = center(kind);
        let mut bring = |round: u64, life: u8| -> (u32, usize, u32) {
            center
                .signal(&mut cx, contribution(2, round, life))
                .expect("it fits");
            let (mut moved, mut pushed, mut released) = (0, 0, 0);
            loop {
                let (orders, pushes) = outputs(&mut cx);
                pushed += pushes;
                if orders.is_empty() {
                    return (moved, pushed, released);
                }
                for (id, order) in orders {
                    match order {
                        Order::Combine {
                            how: Combination::MoveCenter(_),
                            ..
                        } => {
                            moved += 1;
                            done(&mut center, &mut cx, id, &Done::Combined);
                        }
                        Order::Combine {
                            how: Combination::ResetCenter(_),
                            ..
                        } => done(&mut center, &mut cx, id, &Done::Combined),
                        Order::Encode { .. } => done(&mut center, &mut cx, id, &encoded()),
                        Order::Release { slice } if slice.part == Part::Contribution => {
                            released += 1;
                        }
                        _ => {}
                    }
                }
            }
        };
        assert_eq!(bring(3, 7), (1, 1, 1), "the first time");
        assert_eq!(bring(3, 7), (0, 1, 1), "the same again");
        assert_eq!(bring(2, 7), (0, 1, 1), "one from before it");
        assert_eq!(bring(4, 7), (1, 1, 1), "the next round's");
        assert_eq!(bring(1, 8), (1, 1, 1), "it restarted from a checkpoint");
    }
}

#[test]
fn a_reply_that_this_peer_cannot_encode_ends_the_wait_for_it() {
    let (mut center, mut cx) = center(Contribution::Delta);
    center.begin(&mut cx, &TrainSummary::default());
    for _ in 0..4 {
        for (id, order) in outputs(&mut cx).0 {
            match order {
                Order::Encode { slice, .. } if slice.part == Part::Aggregate => {
                    let reason = "not finite".to_owned();
                    let failed = Done::Failed(WorkError::Training { reason });
                    done(&mut center, &mut cx, id, &failed);
                }
                Order::Encode { .. } => done(&mut center, &mut cx, id, &encoded()),
                Order::Combine { .. } => {
                    done(&mut center, &mut cx, id, &Done::Combined);
                }
                _ => {}
            }
        }
    }
    let ended = center.ended(&cx);
    assert_eq!(ended, vec![(FragmentId(0), Ending::Void)]);
    assert_eq!(center.outcome(), Some(Outcome::Ended));
}

#[test]
fn an_answer_of_a_round_that_was_left_is_none_of_this_one() {
    let (mut center, mut cx) = center(Contribution::Delta);
    center.begin(&mut cx, &TrainSummary::default());
    let (old, _) = outputs(&mut cx).0.remove(0);
    center.finish(&mut cx);
    cx.round = Round(1);
    center.begin(&mut cx, &TrainSummary::default());
    let (new, _) = outputs(&mut cx).0.remove(0);
    done(&mut center, &mut cx, old, &encoded());
    let orders: Vec<Order> = outputs(&mut cx).0.into_iter().map(|(_, o)| o).collect();
    let of_old = |order: &Order| match order {
        Order::Settle { slice, .. } | Order::Release { slice } => slice.round == Round(0),
        _ => false,
    };
    assert!(orders.len() == 2 && orders.iter().all(of_old), "{orders:?}");
    done(&mut center, &mut cx, new, &encoded());
    let brought = outputs(&mut cx).0;
    assert!(
        brought.iter().any(|(_, o)| o.name() == "move center"),
        "{brought:?}"
    );
}

#[test]
fn only_an_owner_with_a_contribution_gets_a_copy() {
    let (mut center, mut cx) = center(Contribution::Delta);
    center.bases.insert((FragmentId(0), 0), 5);
    let ask = ExchangeMessage::Center(CenterMessage::Ask {
        fragment: FragmentId(0),
        shard: 0,
    });
    let from = peer(2);
    let signal = Signal::Message {
        from,
        message: &ask,
    };
    center.signal(&mut cx, signal).expect("a question is none");
    assert_eq!(outputs(&mut cx), (Vec::new(), 0));
}
