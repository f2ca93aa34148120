//! Gossip of one peer with another that may say anything: the mass of both is conserved.

use crate::common::one::{One, honest};
use crate::common::{peer, slice};
use murmurate_protocol::wire::{MembershipMessage, Reason};
use murmurate_protocol::{
    Combination, Done, Event, ExchangeKind, Input, Order, Output, Part, PlanHash, PushOutcome,
    SliceId, SliceMeta, Tag, WorkError,
};

/// A gossiping peer of two that has just pushed half of its mass.
fn pusher() -> (One, SliceId) {
    let mut one = One::new(ExchangeKind::Gossip);
    one.meet(peer(1));
    one.work(honest);
    // Encode, then the push, which the mix does not wait for.
    one.work(|order| match order {
        Order::Encode { .. } => honest(order),
        _ => None,
    });
    let slice = one.pushed().expect("half is pushed");
    one.work(honest);
    one.work(honest);
    (one, slice)
}

/// The masses of all pushes so far.
fn masses(one: &One) -> Vec<f64> {
    let masses = one.outputs.iter().filter_map(|o| match o {
        Output::Push { meta, .. } => match meta.tag {
            Tag::Mass { weight } => Some(weight),
            _ => None,
        },
        _ => None,
    });
    masses.collect()
}

#[test]
fn mass_is_conserved_however_a_push_ends() {
    for outcome in [
        PushOutcome::Delivered,
        PushOutcome::Lost,
        PushOutcome::Refused,
        PushOutcome::Unknown,
    ] {
        let (mut one, slice) = pusher();
        assert_eq!(one.peer.weights(), [0.5]);
        assert_eq!(masses(&one), [0.5]);
        let to = peer(1);
        one.feed(Input::Pushed { to, slice, outcome });
        let gone = matches!(outcome, PushOutcome::Delivered | PushOutcome::Unknown);
        assert_eq!(
            one.peer.weight_held(),
            if gone { 0.5 } else { 1.0 },
            "{outcome:?}"
        );
        let half = |e: &Event| matches!(e, Event::MassUncertain { weight, .. } if *weight == 0.5);
        let uncertain = one.events().any(half);
        assert_eq!(uncertain, outcome == PushOutcome::Unknown);
        assert_eq!(one.released(slice), gone, "what came back is still needed");
        // Answered once more, nothing changes.
        one.feed(Input::Pushed { to, slice, outcome });
        assert_eq!(one.peer.weight_held(), if gone { 0.5 } else { 1.0 });
    }
}

fn gossip_slice(round: u64, origin: u8) -> (SliceId, SliceMeta) {
    let meta = SliceMeta {
        of: 1,
        bytes: 48,
        tag: Tag::Mass { weight: 0.25 },
    };
    (slice(round, Part::Contribution, origin), meta)
}

#[test]
fn a_refused_slice_is_released_and_so_is_every_slice_where_nothing_is_exchanged() {
    for exchange in [ExchangeKind::Gossip, ExchangeKind::None] {
        let mut one = One::new(exchange);
        one.meet(peer(1));
        let (slice, meta) = gossip_slice(0, 1);
        let meta = SliceMeta {
            tag: Tag::Mass { weight: f64::NAN },
            ..meta
        };
        one.arrives(peer(1), slice, meta);
        assert!(one.released(slice), "{exchange:?}");
        let score = one.peer.view().get(peer(1)).map(|r| r.score);
        assert_eq!(score, Some(10), "{exchange:?}");
    }
}

/// The sender has its acknowledgement: if the receiver dropped the slice, its mass would be lost.
#[test]
fn what_was_pushed_before_a_goodbye_counts_and_what_a_refused_peer_pushes_does_not() {
    for refuses in [false, true] {
        let mut one = One::new(ExchangeKind::Gossip);
        one.meet(peer(1));
        if refuses {
            let mut other = one.hello();
            other.plan = PlanHash::from_bytes([9; 32]);
            one.hear(peer(1), MembershipMessage::Hello(other));
        } else {
            one.hear(peer(1), MembershipMessage::Goodbye(Reason::Misbehaved));
        }
        let held = one.peer.weight_held();
        let (slice, meta) = gossip_slice(0, 1);
        one.arrives(peer(1), slice, meta);
        let gained = one.peer.weight_held() - held;
        assert_eq!(gained, if refuses { 0.0 } else { 0.25 });
        assert_eq!(one.released(slice), refuses);
    }
}

#[test]
fn a_slice_from_a_round_far_ahead_is_mixed_and_not_kept_for_ever() {
    let mut one = One::new(ExchangeKind::Gossip);
    one.meet(peer(1));
    let (slice, meta) = gossip_slice(1_000_000, 1);
    one.arrives(peer(1), slice, meta);
    assert_eq!(one.peer.inbox_len(), 1);
    one.work(honest);
    one.work(honest);
    assert_eq!(one.peer.inbox_len(), 0);
    assert_eq!(one.peer.weights(), [0.75]);
}

#[test]
fn a_mix_goes_on_without_a_bad_slice_whose_sender_is_scored() {
    let mut one = One::new(ExchangeKind::Gossip);
    one.meet(peer(1));
    let (slice, meta) = gossip_slice(0, 1);
    one.arrives(peer(1), slice, meta);
    one.work(honest);
    let failed = Done::Failed(WorkError::BadSlice {
        slice,
        origin: slice.origin,
        reason: "NaN".to_owned(),
    });
    one.work(|order| match order {
        order if order.inputs().contains(&slice) => Some(failed.clone()),
        Order::Encode { .. } => honest(order),
        _ => None,
    });
    assert_eq!(one.peer.view().get(peer(1)).map(|r| r.score), Some(0));
    one.work(|order| match order {
        order if order.inputs().contains(&slice) => Some(failed.clone()),
        _ => None,
    });
    assert_eq!(one.peer.view().get(peer(1)).map(|r| r.score), Some(10));
    one.work(honest);
    assert_eq!(one.peer.weights(), [0.5], "its mass is not in the mix");
}

/// A peer of two that trains, and what the other pushes to it.
fn receiver(slices: &[(u64, u8, f64)]) -> One {
    let mut one = One::new(ExchangeKind::Gossip);
    one.meet(peer(1));
    for (round, attempt, weight) in slices {
        let (slice, meta) = gossip_slice(*round, 1);
        let attempt = murmurate_protocol::Attempt(*attempt);
        let (slice, tag) = (SliceId { attempt, ..slice }, Tag::Mass { weight: *weight });
        one.arrives(peer(1), slice, SliceMeta { tag, ..meta });
    }
    one
}

#[test]
fn mass_above_four_is_refused_and_its_sender_blamed() {
    for (mass, expected) in [(4.0, 0), (4.1, 1), (1e6, 1), (f64::INFINITY, 1), (-1.0, 1)] {
        let one = receiver(&[(0, 0, mass)]);
        assert_eq!(one.misbehaved(), expected, "{mass}");
        let held = if expected == 0 { 1.0 + mass } else { 1.0 };
        assert_eq!(one.peer.weight_held(), held, "{mass}");
    }
}

/// However much one sender pushes, four of its slices are in a mix; the mass of the others waits.
#[test]
fn four_slices_of_a_sender_are_mixed_at_a_time() {
    let pushed: Vec<(u64, u8, f64)> = (0..6).map(|at| (0, at, 4.0)).collect();
    let mut one = receiver(&pushed);
    for _ in 0..4 {
        one.work(|order| match order {
            Order::Combine { .. } => None,
            _ => honest(order),
        });
    }
    let mix = one.orders().find_map(|order| match order {
        Order::Combine {
            how: Combination::Mix { inputs, .. },
            ..
        } => Some(inputs.clone()),
        _ => None,
    });
    let of_other = |(slice, _): &&(SliceId, f64)| slice.origin == peer(1);
    assert_eq!(mix.unwrap().iter().filter(of_other).count(), 4);
    let waiting = one.peer.weight_held() - one.peer.weights()[0];
    assert_eq!(waiting, 8.0, "the rest waits");
}

/// An honest peer that has gathered more than four keeps what is above it.
#[test]
fn no_more_than_four_is_pushed() {
    let mut one = receiver(&[(0, 0, 4.0), (0, 1, 4.0)]);
    for _ in 0..12 {
        one.work(honest);
    }
    // Half of 1, half of 8.5 if that were allowed, half of the 4.5 that are left.
    assert_eq!(masses(&one)[..3], [0.5, 4.0, 2.25]);
}
