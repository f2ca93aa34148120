//! Means of a group by hand: one peer among four, its questions, means and mixes.

use super::*;
use crate::exchange::neighbours::Neighbours;
use crate::exchange::tests::{Complete, linked};
use crate::exchange::{Exchange, Outcome, Signal};
use crate::id::tests::peer;
use crate::limits::GROUP_MEANS_MAX;
use crate::wire::Message;
use crate::{
    Attempt, Combination, ExchangeKind, FragmentId, Order, Output, Part, PullAnswers, PullPlan,
    SliceMeta, Source, TrainSummary, WorkError,
};

const BOUNDS: PullPlan = PullPlan {
    staleness: 3,
    sync_every: 10,
    ..PullPlan::FREE
};

/// Peer 1 of four, in a round.
fn one(round: u64) -> (Neighbours<GroupMeans>, Context) {
    let kind = ExchangeKind::PullBy(BOUNDS, PullAnswers::GroupMean);
    let means = GroupMeans::new(Box::new(Complete), BOUNDS);
    (Neighbours::new(means), linked(kind, round, &[2, 3, 4]))
}

/// Who makes the mean of a round, the first, the second and so on.
fn makers(cx: &Context, round: u64) -> Vec<u8> {
    let mut all: Vec<u8> = (1..=4).collect();
    let rank = |id: &u8| crate::id::rendezvous(&cx.plan.run, Round(round), 128, peer(*id));
    all.sort_by_key(|id| std::cmp::Reverse(rank(id)));
    all
}

/// The first round from this one on whose mean a peer makes, and that is of a group.
fn made_by(cx: &Context, id: u8, from: u64) -> u64 {
    let mut rounds = from..;
    let found = rounds.find(|round| makers(cx, *round)[0] == id && !BOUNDS.syncs(Round(*round)));
    found.expect("each peer is the maker of some round")
}

/// What came out since the last call.
#[derive(Debug, Default)]
struct Out {
    orders: Vec<(OrderId, Order)>,
    said: Vec<(PeerId, PullMessage)>,
    pushed: Vec<(PeerId, SliceId, Tag)>,
}

impl Out {
    fn order(&self, kind: fn(&Order) -> bool) -> (OrderId, Order) {
        let found: Vec<_> = self.orders.iter().filter(|(_, o)| kind(o)).collect();
        assert_eq!(found.len(), 1, "{self:?}");
        found[0].clone()
    }

    fn released(&self) -> Vec<SliceId> {
        let slice = |(_, order): &(OrderId, Order)| match order {
            Order::Release { slice } => Some(*slice),
            _ => None,
        };
        self.orders.iter().filter_map(slice).collect()
    }
}

fn out(cx: &mut Context) -> Out {
    let mut all = Out::default();
    while let Some(output) = cx.take() {
        match output {
            Output::Order { id, order } => all.orders.push((id, order)),
            Output::Push {
                to, slice, meta, ..
            } => all.pushed.push((to, slice, meta.tag)),
            Output::Send {
                to,
                message: Message::Exchange(ExchangeMessage::Pull(message)),
            } => all.said.push((to, message)),
            _ => {}
        }
    }
    all
}

fn local(order: &Order) -> bool {
    matches!(
        order,
        Order::Encode {
            from: Source::Store(StoreId::Local),
            ..
        }
    )
}

fn reduce(order: &Order) -> bool {
    order.name() == "reduce"
}

fn mean(order: &Order) -> bool {
    matches!(
        order,
        Order::Encode {
            from: Source::Store(StoreId::Shard(0)),
            ..
        }
    )
}

fn mix(order: &Order) -> bool {
    order.name() == "mix"
}

type Engine = Neighbours<GroupMeans>;

fn signal(engine: &mut Engine, cx: &mut Context, signal: Signal<'_>) -> Out {
    engine.signal(cx, signal).expect("it breaks no rule");
    out(cx)
}

fn done(engine: &mut Engine, cx: &mut Context, order: OrderId, done: &Done) -> Out {
    signal(engine, cx, Signal::Done { order, done })
}

fn says(engine: &mut Engine, cx: &mut Context, from: u8, message: PullMessage) -> Out {
    let message = ExchangeMessage::Pull(message);
    let from = peer(from);
    let message = &message;
    signal(engine, cx, Signal::Message { from, message })
}

fn encoded() -> Done {
    Done::Encoded {
        bytes: 48,
        digest: None,
    }
}

fn slice(id: u8, round: u64, part: Part) -> SliceId {
    SliceId {
        round: Round(round),
        fragment: FragmentId(0),
        shard: 0,
        part,
        origin: peer(id),
        attempt: Attempt(0),
    }
}

fn arrives(engine: &mut Engine, cx: &mut Context, slice: SliceId, tag: Tag) -> Out {
    let came = arrival(slice, tag);
    signal(engine, cx, Signal::Arrived(came))
}

fn arrival(slice: SliceId, tag: Tag) -> Arrived {
    Arrived {
        from: slice.origin,
        slice,
        meta: SliceMeta {
            of: 1,
            bytes: 48,
            tag,
        },
        digest: None,
    }
}

/// A part of a peer, published in a round of its own, for the mean of a round.
fn part(engine: &mut Engine, cx: &mut Context, (id, of): (u8, u64), round: u64) -> Out {
    let tag = Tag::Answer {
        round: Round(round),
    };
    arrives(engine, cx, slice(id, of, Part::Contribution), tag)
}

fn asks(round: u64, closes: bool) -> PullMessage {
    PullMessage::AskMean {
        round: Round(round),
        fragment: FragmentId(0),
        closes,
    }
}

fn ask_part(round: u64) -> PullMessage {
    PullMessage::AskPart {
        round: Round(round),
        fragment: FragmentId(0),
    }
}

/// Trains a round and publishes, without anything else. Gives its messages, pushes and orders.
fn publish(engine: &mut Engine, cx: &mut Context, round: u64) -> Out {
    cx.round = Round(round);
    engine.begin(cx, &TrainSummary::default());
    let mut all = out(cx);
    let (id, _) = all.order(local);
    let after = done(engine, cx, id, &encoded());
    all.said.extend(after.said);
    all.pushed.extend(after.pushed);
    all.orders.extend(after.orders);
    all
}

fn inputs(order: &Order) -> Vec<SliceId> {
    match order {
        Order::Combine {
            how: Combination::Reduce(inputs),
            ..
        } => {
            assert!(inputs.iter().all(|(_, weight)| *weight == 1.0));
            inputs.iter().map(|(slice, _)| *slice).collect()
        }
        other => panic!("not a sum: {other:?}"),
    }
}

#[test]
fn the_first_member_begins_the_mean_and_a_late_one_gives_what_it_published_last() {
    let (mut engine, mut cx) = one(5);
    let round = made_by(&cx, 1, 6);
    publish(&mut engine, &mut cx, round - 1);
    engine.finish(&mut cx);
    cx.round = Round(round);
    out(&mut cx);
    // This peer still trains when peer 3 has ended its inner steps.
    let first = says(&mut engine, &mut cx, 3, asks(round, false));
    let all: Vec<_> = [2, 3, 4].map(|id| (peer(id), ask_part(round))).into();
    assert_eq!(first.said, all);
    part(&mut engine, &mut cx, (2, round - 2), round);
    part(&mut engine, &mut cx, (3, round), round);
    let last = part(&mut engine, &mut cx, (4, round), round);
    let (sum, order) = last.order(reduce);
    let own = slice(1, round - 1, Part::Contribution).round;
    let rounds: Vec<_> = inputs(&order).iter().map(|s| s.round).collect();
    assert_eq!(rounds, [own, Round(round - 2), Round(round), Round(round)]);
    let (encode, _) = last.order(mean);
    assert!(
        done(&mut engine, &mut cx, sum, &Done::Combined)
            .pushed
            .is_empty()
    );
    let told = done(&mut engine, &mut cx, encode, &encoded());
    let of = |own| Tag::GroupMean {
        round: Round(round),
        parts: 4,
        own,
    };
    let the_mean = told.pushed[0].1;
    assert_eq!(told.pushed, [(peer(3), the_mean, of(Some(Round(round))))]);
    assert_eq!(told.released().len(), 3, "parts of others");
    // The late one gets the same bytes, and is told which of its parameters are in them.
    let told = says(&mut engine, &mut cx, 2, asks(round, false));
    assert_eq!(
        told.pushed,
        [(peer(2), the_mean, of(Some(Round(round - 2))))]
    );
    // And so does this peer: its parameters of the round are not in it.
    let own = publish(&mut engine, &mut cx, round);
    let (id, order) = own.order(mix);
    let Order::Combine {
        how: Combination::Mix { keep, inputs, .. },
        ..
    } = order
    else {
        panic!("{order:?}");
    };
    assert_eq!((keep, inputs), (1.0, vec![(the_mean, 4.0)]));
    done(&mut engine, &mut cx, id, &Done::Combined);
    assert_eq!(engine.outcome(), Some(Outcome::Ended));
}

#[test]
fn a_member_takes_the_mean_as_it_is_where_its_own_parameters_are_in_it() {
    for (fresh, expected) in [(true, (0.0, 1.0)), (false, (1.0, 3.0))] {
        let (mut engine, mut cx) = one(5);
        let round = made_by(&cx, 3, 6);
        let first = publish(&mut engine, &mut cx, round);
        assert_eq!(first.said, [(peer(3), asks(round, false))]);
        let own = if fresh { round } else { round - 1 };
        let mean = slice(3, round, Part::Aggregate);
        let tag = Tag::GroupMean {
            round: Round(round),
            parts: 3,
            own: Some(Round(own)),
        };
        // Not of a peer that was not asked.
        let other = slice(2, round, Part::Aggregate);
        assert_eq!(
            arrives(&mut engine, &mut cx, other, tag).released(),
            [other]
        );
        let (_, order) = arrives(&mut engine, &mut cx, mean, tag).order(mix);
        let Order::Combine {
            how: Combination::Mix { keep, inputs, .. },
            ..
        } = order
        else {
            panic!("{order:?}");
        };
        assert_eq!((keep, inputs), (expected.0, vec![(mean, expected.1)]));
        engine.finish(&mut cx);
        assert_eq!(out(&mut cx).released(), [mean]);
    }
}

#[test]
fn who_still_encodes_answers_with_what_is_new_and_who_trains_with_what_is_old() {
    let (mut engine, mut cx) = one(5);
    publish(&mut engine, &mut cx, 5);
    engine.finish(&mut cx);
    out(&mut cx);
    // In training of round 6.
    cx.round = Round(6);
    let told = says(&mut engine, &mut cx, 2, ask_part(6));
    assert_eq!(told.pushed.len(), 1);
    let (to, old, _) = told.pushed[0];
    assert_eq!((to, old.round), (peer(2), Round(5)));
    // It has ended, and its parameters are being encoded.
    engine.begin(&mut cx, &TrainSummary::default());
    let first = out(&mut cx);
    assert!(says(&mut engine, &mut cx, 3, ask_part(6)).pushed.is_empty());
    let (id, _) = first.order(local);
    let told = done(&mut engine, &mut cx, id, &encoded()).pushed;
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].0, told[0].1.round), (peer(3), Round(6)));
    // Nothing older than the bound: a mean of round 9 takes round 6, one of round 10 waits.
    engine.finish(&mut cx);
    cx.round = Round(7);
    assert_eq!(says(&mut engine, &mut cx, 4, ask_part(8)).pushed.len(), 1);
    assert!(
        says(&mut engine, &mut cx, 4, ask_part(10))
            .pushed
            .is_empty()
    );
    // A mean over all waits for the round itself.
    assert!(says(&mut engine, &mut cx, 3, ask_part(9)).pushed.is_empty());
}

#[test]
fn lost_parts_are_asked_for_again_and_at_last_left_out() {
    let (mut engine, mut cx) = one(5);
    let round = made_by(&cx, 1, 6);
    let first = publish(&mut engine, &mut cx, round);
    assert_eq!(first.said.len(), 3);
    part(&mut engine, &mut cx, (2, round), round);
    // Another member waits, too.
    let more = says(&mut engine, &mut cx, 2, asks(round, false));
    assert!(more.said.is_empty(), "{more:?}");
    let again = says(&mut engine, &mut cx, 2, asks(round, false));
    let late: Vec<_> = [3, 4].map(|id| (peer(id), ask_part(round))).into();
    assert_eq!(again.said, late);
    part(&mut engine, &mut cx, (3, round), round);
    let closed = says(&mut engine, &mut cx, 2, asks(round, true));
    assert!(cx.view.get(peer(4)).is_some_and(|r| r.suspected));
    assert_eq!(inputs(&closed.order(reduce).1).len(), 3);
    let (encode, _) = closed.order(mean);
    let told = done(&mut engine, &mut cx, encode, &encoded());
    assert_eq!(told.pushed[0].0, peer(2));
    told.order(mix);
    // A part that comes now is too late, and says that its sender is there.
    let late = part(&mut engine, &mut cx, (4, round), round);
    assert_eq!(late.released().len(), 1);
    assert!(cx.view.get(peer(4)).is_some_and(|r| !r.suspected));
}

#[test]
fn a_bad_part_is_left_out_and_its_sender_accused() {
    let (mut engine, mut cx) = one(5);
    let round = made_by(&cx, 1, 6);
    publish(&mut engine, &mut cx, round);
    let mut last = Out::default();
    for id in [2, 3, 4] {
        last = part(&mut engine, &mut cx, (id, round), round);
    }
    let ((sum, _), (encode, _)) = (last.order(reduce), last.order(mean));
    let bad = slice(3, round, Part::Contribution);
    let failed = Done::Failed(WorkError::BadSlice {
        slice: bad,
        origin: bad.origin,
        reason: "NaN".to_owned(),
    });
    let after = done(&mut engine, &mut cx, sum, &failed);
    assert_eq!(after.released(), [bad]);
    assert_eq!(cx.accused().map(|(peer, _)| peer), Some(peer(3)));
    let missing = Done::Failed(WorkError::Storage {
        reason: "there is no mean of a group to encode".to_owned(),
    });
    let again = done(&mut engine, &mut cx, encode, &missing);
    assert_eq!(inputs(&again.order(reduce).1).len(), 3);
    let ((sum, _), (encode, _)) = (again.order(reduce), again.order(mean));
    done(&mut engine, &mut cx, sum, &Done::Combined);
    done(&mut engine, &mut cx, encode, &encoded()).order(mix);
}

#[test]
fn a_member_whose_maker_is_gone_asks_the_next_one() {
    let (mut engine, mut cx) = one(5);
    let round = made_by(&cx, 3, 6);
    let order = makers(&cx, round);
    publish(&mut engine, &mut cx, round);
    let mut gone = Vec::new();
    for next in &order[1..] {
        let left = order[gone.len()];
        gone.push(left);
        let remote = cx.view.entry(peer(left)).expect("known");
        remote.linked = false;
        let after = signal(&mut engine, &mut cx, Signal::Gone(peer(left)));
        match next {
            1 => {
                let live = (2..=4).filter(|id| !gone.contains(id)).count();
                assert_eq!(after.said.len(), live, "{after:?}");
                break;
            }
            next => assert_eq!(after.said, [(peer(*next), asks(round, false))]),
        }
    }
}

#[test]
fn a_maker_keeps_few_means_whatever_is_asked_of_it() {
    let (mut engine, mut cx) = one(5);
    publish(&mut engine, &mut cx, 5);
    for round in (6..200).chain(1_000_000..1_000_100) {
        let told = says(&mut engine, &mut cx, 2, asks(round, false));
        assert!(engine.rule.means.count() <= GROUP_MEANS_MAX);
        let none = told
            .said
            .iter()
            .filter(|(_, said)| matches!(said, PullMessage::NoMean { .. }));
        // Who waits for one that is forgotten is told.
        assert!(none.count() <= 1);
    }
    let old = says(&mut engine, &mut cx, 3, asks(7, false));
    let (round, fragment) = (Round(7), FragmentId(0));
    assert_eq!(
        old.said,
        [(peer(3), PullMessage::NoMean { round, fragment })]
    );
}

#[test]
fn what_is_no_part_and_no_mean_is_refused() {
    let (mut engine, mut cx) = one(5);
    publish(&mut engine, &mut cx, 6);
    let good = slice(2, 6, Part::Aggregate);
    let tag = |parts| Tag::GroupMean {
        round: Round(6),
        parts,
        own: None,
    };
    let old = Tag::Answer { round: Round(12) };
    let wrong = [
        (good, tag(0)),
        (good, tag(u32::MAX)),
        (
            SliceId {
                round: Round(5),
                ..good
            },
            tag(2),
        ),
        (slice(2, 6, Part::Contribution), tag(2)),
        (good, Tag::Answer { round: Round(6) }),
        (slice(2, 6, Part::Contribution), old),
        (good, Tag::Mass { weight: 1.0 }),
    ];
    for (slice, tag) in wrong {
        let came = Signal::Arrived(arrival(slice, tag));
        assert!(engine.signal(&mut cx, came).is_err(), "{slice:?} {tag:?}");
        assert_eq!(out(&mut cx).released(), [slice]);
    }
    let unknown = PullMessage::AskPart {
        round: Round(6),
        fragment: FragmentId(9),
    };
    for message in [unknown, PullMessage::Ask { round: Round(6) }] {
        let message = ExchangeMessage::Pull(message);
        let (from, message) = (peer(2), &message);
        assert!(
            engine
                .signal(&mut cx, Signal::Message { from, message })
                .is_err()
        );
    }
}
