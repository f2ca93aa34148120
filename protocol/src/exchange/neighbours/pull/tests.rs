//! Pulling by hand: one peer among three, its questions, its answers and its mixes.

mod bounds;
mod queues;

use super::*;
use crate::exchange::neighbours::Neighbours;
use crate::exchange::tests::{Complete, linked};
use crate::exchange::{CenterMessage, Exchange, Outcome, Signal};
use crate::id::tests::peer;
use crate::wire::Message;
use crate::{
    Combination, Done, ExchangeKind, FragmentId, Order, OrderId, Output, PushOutcome, Round,
    SliceMeta, TrainSummary, WorkError,
};

/// Peer 1 of three, in round 5.
fn one() -> (Neighbours<Pull>, Context) {
    bounded(PullPlan::FREE)
}

/// As [`one`], with bounds.
fn bounded(bounds: PullPlan) -> (Neighbours<Pull>, Context) {
    let pull = Pull::new(Box::new(Complete), bounds, false);
    (Neighbours::new(pull), context(bounds))
}

/// As [`bounded`], with queues.
fn queued(bounds: PullPlan) -> (Neighbours<Pull>, Context) {
    let pull = Pull::new(Box::new(Complete), bounds, true);
    (Neighbours::new(pull), context(bounds))
}

/// Of peer 1 in round 5, linked with peers 2 and 3.
fn context(bounds: PullPlan) -> Context {
    linked(ExchangeKind::Pull(bounds), 5, &[2, 3])
}

/// What came out since the last call.
#[derive(Debug, Default)]
struct Out {
    orders: Vec<(OrderId, Order)>,
    asked: Vec<PeerId>,
    said: Vec<(PeerId, PullMessage)>,
    pushed: Vec<(PeerId, SliceId, u64)>,
}

fn out(cx: &mut Context) -> Out {
    let mut all = Out::default();
    while let Some(output) = cx.take() {
        match output {
            Output::Order { id, order } => all.orders.push((id, order)),
            Output::Push {
                to, slice, meta, ..
            } => all.pushed.push((to, slice, answered(meta))),
            Output::Send {
                to,
                message: Message::Exchange(ExchangeMessage::Pull(PullMessage::Ask { round })),
            } => {
                assert_eq!(round, cx.round);
                all.asked.push(to);
            }
            Output::Send {
                to,
                message: Message::Exchange(ExchangeMessage::Pull(message)),
            } => all.said.push((to, message)),
            _ => {}
        }
    }
    all
}

/// The one order of its kind.
fn only(out: &Out, kind: fn(&Order) -> bool) -> (OrderId, Order) {
    let found: Vec<_> = out.orders.iter().filter(|(_, o)| kind(o)).collect();
    assert_eq!(found.len(), 1, "{out:?}");
    found[0].clone()
}

fn encodes(order: &Order) -> bool {
    matches!(order, Order::Encode { .. })
}

fn combines(order: &Order) -> bool {
    matches!(order, Order::Combine { .. })
}

fn released(out: &Out) -> Vec<SliceId> {
    let slice = |(_, order): &(OrderId, Order)| match order {
        Order::Release { slice } => Some(*slice),
        _ => None,
    };
    out.orders.iter().filter_map(slice).collect()
}

fn signal(pull: &mut Neighbours<Pull>, cx: &mut Context, signal: Signal<'_>) -> Out {
    pull.signal(cx, signal).expect("it breaks no rule");
    out(cx)
}

fn done(pull: &mut Neighbours<Pull>, cx: &mut Context, order: OrderId, done: &Done) -> Out {
    signal(pull, cx, Signal::Done { order, done })
}

fn encoded() -> Done {
    Done::Encoded {
        bytes: 48,
        digest: None,
    }
}

/// An answer of a peer to the question of round 5, with parameters that it published in `round`.
fn answer(id: u8, round: u64) -> (SliceId, Signal<'static>) {
    let slice = SliceId {
        round: Round(round),
        fragment: FragmentId(0),
        shard: 0,
        part: Part::Contribution,
        origin: peer(id),
        attempt: crate::Attempt(0),
    };
    let meta = SliceMeta {
        of: 1,
        bytes: 48,
        tag: Tag::Answer { round: Round(5) },
    };
    let (from, digest) = (peer(id), None);
    let signal = Signal::Arrived(Arrived {
        from,
        slice,
        meta,
        digest,
    });
    (slice, signal)
}

/// The round that an answer names.
fn answered(meta: SliceMeta) -> u64 {
    match meta.tag {
        Tag::Answer { round } => round.0,
        other => panic!("{other:?} is no answer"),
    }
}

fn ask(from: u8, message: &ExchangeMessage) -> Signal<'_> {
    Signal::Message {
        from: peer(from),
        message,
    }
}

/// What a mix keeps and takes.
fn row(order: &Order) -> (f64, Vec<(SliceId, f64)>) {
    match order {
        Order::Combine {
            how: Combination::Mix { keep, inputs, .. },
            ..
        } => (*keep, inputs.clone()),
        other => panic!("not a mix: {other:?}"),
    }
}

#[test]
fn answers_of_any_round_are_mixed_by_the_row() {
    let (mut pull, mut cx) = one();
    pull.begin(&mut cx, &TrainSummary::default());
    let first = out(&mut cx);
    assert_eq!(first.asked, [peer(2), peer(3)]);
    let (id, _) = only(&first, encodes);
    // One answer arrives before this peer's parameters are encoded.
    let (two, came) = answer(2, 5);
    assert!(signal(&mut pull, &mut cx, came).orders.is_empty());
    assert!(done(&mut pull, &mut cx, id, &encoded()).orders.is_empty());
    let (three, came) = answer(3, 1);
    let (id, order) = only(&signal(&mut pull, &mut cx, came), combines);
    let (keep, inputs) = row(&order);
    let third = 1.0 / 3.0;
    assert_eq!(inputs, [(two, third), (three, third)]);
    assert!((keep - third).abs() < 1e-15, "{keep}");
    assert!(pull.outcome().is_none());
    done(&mut pull, &mut cx, id, &Done::Combined);
    assert_eq!(pull.outcome(), Some(Outcome::Ended));
    pull.finish(&mut cx);
    assert_eq!(released(&out(&mut cx)), [two, three]);
}

#[test]
fn who_does_not_answer_leaves_its_share_to_oneself() {
    let (mut pull, mut cx) = one();
    pull.begin(&mut cx, &TrainSummary::default());
    let (id, _) = only(&out(&mut cx), encodes);
    done(&mut pull, &mut cx, id, &encoded());
    let (_, came) = answer(3, 4);
    signal(&mut pull, &mut cx, came);
    // Half-way it is asked again.
    assert_eq!(signal(&mut pull, &mut cx, Signal::Timeout).asked, [peer(2)]);
    let (id, order) = only(&signal(&mut pull, &mut cx, Signal::Timeout), combines);
    let (keep, inputs) = row(&order);
    assert!((keep - 2.0 / 3.0).abs() < 1e-15 && inputs.len() == 1);
    assert!(cx.view.get(peer(2)).is_some_and(|r| r.suspected));
    // What comes now is too late, and says that it is there.
    let (two, came) = answer(2, 5);
    assert_eq!(released(&signal(&mut pull, &mut cx, came)), [two]);
    assert!(cx.view.get(peer(2)).is_some_and(|r| !r.suspected));
    done(&mut pull, &mut cx, id, &Done::Combined);
    assert_eq!(pull.outcome(), Some(Outcome::Ended));
}

#[test]
fn a_bad_answer_is_left_out_and_its_sender_accused() {
    let (mut pull, mut cx) = one();
    pull.begin(&mut cx, &TrainSummary::default());
    let (id, _) = only(&out(&mut cx), encodes);
    done(&mut pull, &mut cx, id, &encoded());
    let (bad, came) = answer(2, 5);
    signal(&mut pull, &mut cx, came);
    let mixed = signal(&mut pull, &mut cx, Signal::Gone(peer(3)));
    // Its link being gone, only the one is in the mix: without it nothing is.
    let (order, _) = only(&mixed, combines);
    let failed = Done::Failed(WorkError::BadSlice {
        slice: bad,
        origin: bad.origin,
        reason: "NaN".to_owned(),
    });
    let after = done(&mut pull, &mut cx, order, &failed);
    assert_eq!(released(&after), [bad]);
    assert_eq!(cx.accused().map(|(peer, _)| peer), Some(peer(2)));
    assert_eq!(pull.outcome(), Some(Outcome::Ended));
}

#[test]
fn who_asks_gets_what_was_published_last_one_answer_at_a_time() {
    let (mut pull, mut cx) = one();
    let [first, second] = [8, 9].map(|round| {
        ExchangeMessage::Pull(PullMessage::Ask {
            round: Round(round),
        })
    });
    // Nothing is published yet.
    let early = signal(&mut pull, &mut cx, ask(2, &first));
    assert!(early.pushed.is_empty());
    pull.begin(&mut cx, &TrainSummary::default());
    let (id, order) = only(&out(&mut cx), encodes);
    let Order::Encode { slice: five, .. } = order else {
        panic!("{order:?}");
    };
    let told = done(&mut pull, &mut cx, id, &encoded());
    assert_eq!(told.pushed, [(peer(2), five, 8)]);
    // It asks again, in its next round, while that is under way; another gets its own at once.
    for again in [&first, &second, &second] {
        let told = signal(&mut pull, &mut cx, ask(2, again));
        assert!(told.pushed.is_empty(), "{told:?}");
    }
    let other = signal(&mut pull, &mut cx, ask(3, &first));
    assert_eq!(other.pushed, [(peer(3), five, 8)]);
    // Newer is published: what is under way keeps the old until it has ended.
    pull.finish(&mut cx);
    cx.round = Round(6);
    pull.begin(&mut cx, &TrainSummary::default());
    let (id, order) = only(&out(&mut cx), encodes);
    let Order::Encode { slice: six, .. } = order else {
        panic!("{order:?}");
    };
    let told = done(&mut pull, &mut cx, id, &encoded());
    assert!(told.pushed.is_empty() && released(&told).is_empty());
    let mut pushed = |to, slice, outcome| {
        signal(
            &mut pull,
            &mut cx,
            Signal::Pushed(PushEnd { to, slice, outcome }),
        )
    };
    // The old one is not pushed again.
    let after = pushed(peer(2), five, PushOutcome::Lost);
    assert_eq!(after.pushed, [(peer(2), six, 9)]);
    assert!(released(&after).is_empty());
    let after = pushed(peer(3), five, PushOutcome::Delivered);
    assert_eq!(released(&after), [five]);
    // The newest is, once.
    let after = pushed(peer(2), six, PushOutcome::Lost);
    assert_eq!(after.pushed, [(peer(2), six, 9)]);
    let after = pushed(peer(2), six, PushOutcome::Lost);
    assert!(after.pushed.is_empty());
}

/// A question of a peer in a round of its own.
#[test]
fn what_is_no_answer_is_refused() {
    let (mut pull, mut cx) = one();
    let (_, came) = answer(2, 5);
    let Signal::Arrived(Arrived { slice, meta, .. }) = came else {
        panic!("an arrival");
    };
    let (origin, shard, fragment, part) = (peer(3), 1, FragmentId(1), Part::Aggregate);
    let tag = Tag::Mass { weight: 1.0 };
    let wrong = [
        (SliceId { origin, ..slice }, meta),
        (SliceId { shard, ..slice }, meta),
        (SliceId { fragment, ..slice }, meta),
        (SliceId { part, ..slice }, meta),
        (slice, SliceMeta { of: 2, ..meta }),
        (slice, SliceMeta { tag, ..meta }),
    ];
    for (slice, meta) in wrong {
        let (from, digest) = (peer(2), None);
        let signal = Signal::Arrived(Arrived {
            from,
            slice,
            meta,
            digest,
        });
        assert!(pull.signal(&mut cx, signal).is_err(), "{slice:?}");
        assert_eq!(released(&out(&mut cx)), [slice]);
    }
    let message = ExchangeMessage::Center(CenterMessage::Ask {
        fragment: FragmentId(0),
        shard: 0,
    });
    assert!(pull.signal(&mut cx, ask(2, &message)).is_err());
}
