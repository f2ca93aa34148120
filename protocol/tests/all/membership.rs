//! Membership against a single peer that may say anything: it cannot crash or move the others.

use crate::common::one::{One, honest};
use crate::common::{alive, peer, plan, ready, record};
use core::time::Duration;
use murmurate_protocol::limits::{
    ADDRESS_BYTES_MAX, FRAME_BYTES_MAX, PIN_LIFETIME, RECORD_ADDRESSES_MAX, RECORD_LIFETIME,
};
use murmurate_protocol::wire::{
    Alive, CellsMessage, ExchangeMessage, FormingMessage, MembershipMessage, Message, Muster,
    Offer, PeerRecord, Reason, RecordFields, TransferMessage, encode,
};
use murmurate_protocol::{
    Axes, Contribution, Digest, Done, Event, ExchangeKind, Grouping, Input, Order, Output, PeerId,
    Phase, PlanHash, Round, StateId, Time, Unneeded,
};

#[test]
fn records_of_full_length_are_passed_on_in_frames_that_hold_them() {
    let mut one = One::new(ExchangeKind::AllReduce);
    one.meet(peer(1));
    for id in 10..42 {
        let record = PeerRecord::from(RecordFields {
            addresses: vec![vec![7; ADDRESS_BYTES_MAX]; RECORD_ADDRESSES_MAX],
            ..record(id, one.now + Duration::from_secs(60))
        });
        one.hear(peer(1), MembershipMessage::Records(vec![record]));
    }
    one.pass(2);
    let spread = one.said().filter_map(|(_, message)| match message {
        Message::Membership(MembershipMessage::Records(records)) => {
            Some((encode(message).len(), records.len()))
        }
        _ => None,
    });
    let (bytes, count) = spread.max().expect("records are spread");
    assert!(
        bytes <= FRAME_BYTES_MAX && count > 8,
        "{count} in {bytes} bytes"
    );
}

/// In a small swarm the news of a newcomer does not wait for anti-entropy.
#[test]
fn news_of_a_newcomer_go_to_the_others_at_once_and_only_once() {
    let mut one = One::new(ExchangeKind::AllReduce);
    one.meet(peer(1));
    one.meet(peer(2));
    let record = PeerRecord::from(record(2, one.now + Duration::from_secs(60)));
    let news = MembershipMessage::Records(vec![record]);
    for heard in [1, 0] {
        one.outputs.clear();
        one.hear(peer(2), news.clone());
        let told = one.told(|message| *message == news.clone().into());
        assert_eq!(told, vec![peer(1); heard]);
    }
}

/// A peer that began as soon as it had met enough others would exchange with few of them, or alone.
#[test]
fn a_peer_begins_only_after_the_others_have_met_as_many() {
    for (theirs, begins) in [
        (Muster::Waiting, false),
        (Muster::Met, true),
        (Muster::Begun, true),
    ] {
        let mut one = One::new(ExchangeKind::Gossip);
        one.meet_as(peer(1), |hello| hello.muster = Muster::Waiting);
        assert_eq!(one.peer.phase(), Phase::Join);
        let met = |said: &Message| matches!(said, Message::Membership(MembershipMessage::Alive(Alive { muster, .. })) if *muster == Muster::Met);
        assert!(!one.told(met).is_empty(), "the other may begin");
        one.hear(peer(1), alive(Round(0), one.peer.digest(), theirs));
        assert_eq!(one.peer.phase() == Phase::Train, begins, "{theirs:?}");
        one.pass(600);
        assert_eq!(one.peer.phase(), Phase::Train, "no peer waits for ever");
    }
}

#[test]
fn a_round_at_the_end_of_its_range_overflows_nothing() {
    for exchange in [ExchangeKind::AllReduce, ExchangeKind::Gossip] {
        let mut one = One::new(exchange);
        one.meet(peer(1));
        let (round, anchor) = (Round(u64::MAX), Digest::of(b"far"));
        one.hear(peer(1), alive(round, anchor, Muster::Begun));
        one.hear(peer(1), ready(round, 1.0, anchor, true));
        one.work(honest);
        one.pass(600);
        assert!(one.peer.round() < Round(10));
    }
}

#[test]
fn a_peer_of_another_plan_may_come_back_with_the_right_one() {
    let mut one = One::new(ExchangeKind::AllReduce);
    one.meet_as(peer(1), |hello| hello.plan = PlanHash::from_bytes([9; 32]));
    let refused =
        |o: &Output| matches!(o, Output::Disconnect { reason, .. } if *reason == Reason::OtherPlan);
    assert!(one.outputs.iter().any(refused));
    one.feed(Input::LinkDown(peer(1)));
    one.meet(peer(1));
    let remote = one.peer.view().get(peer(1)).expect("known");
    assert!(remote.greeted && !remote.banned);
}

#[test]
fn a_peer_that_says_goodbye_has_left_and_one_whose_link_breaks_is_down() {
    let mut one = One::new(ExchangeKind::AllReduce);
    one.meet(peer(1));
    one.meet(peer(2));
    one.outputs.clear();
    one.hear(peer(1), MembershipMessage::Goodbye(Reason::Leaving));
    one.feed(Input::LinkDown(peer(1)));
    one.feed(Input::LinkDown(peer(2)));
    let left = |event: &&Event| matches!(event, Event::PeerLeft(_) | Event::PeerDown(_));
    let gone = one.events().filter(left);
    let expected = [Event::PeerLeft(peer(1)), Event::PeerDown(peer(2))];
    assert!(gone.eq(&expected), "each once");
}

#[test]
fn a_peer_with_this_peer_s_identity_is_not_spoken_to() {
    let mut one = One::new(ExchangeKind::AllReduce);
    one.outputs.clear();
    one.meet(peer(0));
    assert!(one.peer.view().is_empty());
    assert!(matches!(
        one.outputs.as_slice(),
        [Output::Disconnect { .. }]
    ));
}

#[test]
fn a_download_keeps_its_donors_state_alive_and_nothing_else_does() {
    let state = state(3, b"state", 900);
    let mut newcomer = One::new(ExchangeKind::AllReduce);
    newcomer.meet_as(peer(1), |hello| hello.round = Round(3));
    newcomer.hear(peer(1), offer(state));
    assert!(!newcomer.fetches().is_empty());
    let (every, lifetime) = (2, PIN_LIFETIME.as_secs());
    let at_least = Round(3);
    let asks = |said: &Message| *said == TransferMessage::StateAsk { at_least }.into();
    for _ in 0..lifetime / every {
        newcomer.outputs.clear();
        newcomer.pass(every);
        assert_eq!(newcomer.told(asks), [peer(1)]);
    }

    let mut donor = One::new(ExchangeKind::AllReduce);
    donor.meet(peer(1));
    let at_least = Round(0);
    let unpinned = |order: &Order| matches!(order, Order::Forget(Unneeded::Pinned(_)));
    donor.hear(peer(1), TransferMessage::StateAsk { at_least });
    donor.work(|order| match order {
        Order::Pin { round, .. } => Some(Done::Pinned(StateId {
            round: *round,
            ..state
        })),
        _ => None,
    });
    for _ in 0..3 * lifetime / every {
        donor.pass(every);
        donor.hear(peer(1), TransferMessage::StateAsk { at_least });
    }
    assert!(!donor.orders().any(unpinned), "{:?}", donor.outputs);
    for _ in 0..=lifetime / every {
        donor.pass(every);
    }
    assert!(donor.orders().any(unpinned), "it is not kept for ever");
}

#[test]
fn a_peer_that_takes_over_a_state_no_longer_serves_its_old_one() {
    let state = |root: &[u8]| state(0, root, 900);
    let mut one = One::new(ExchangeKind::AllReduce);
    one.meet(peer(1));
    let at_least = Round(0);
    one.hear(peer(1), TransferMessage::StateAsk { at_least });
    one.work(|order| match order {
        Order::Pin { .. } => Some(Done::Pinned(state(b"before"))),
        _ => None,
    });
    // It falls behind and takes over the state of peer 1.
    one.work(honest);
    let (round, resync) = (Round(1), true);
    one.hear(peer(1), FormingMessage::Behind { round, resync });
    let taken = state(b"after");
    one.hear(peer(1), offer(taken));
    one.outputs.clear();
    takes_over(&mut one, taken);
    let unpins = Order::Forget(Unneeded::Pinned(Round(0)));
    assert!(
        one.orders().any(|order| *order == unpins),
        "{:?}",
        one.outputs
    );
    // A peer that asks now gets the state that is held now.
    one.outputs.clear();
    one.hear(peer(1), TransferMessage::StateAsk { at_least });
    let old = offer(state(b"before")).into();
    assert_eq!(one.told(|said| *said == old), [], "{:?}", one.outputs);
    let pins = |order: &Order| matches!(order, Order::Pin { .. });
    assert!(one.orders().any(pins), "{:?}", one.outputs);
}

/// A newcomer that has met five peers, which are further.
fn newcomer_of_five() -> One {
    let mut one = One::new(ExchangeKind::AllReduce);
    for id in 1..=5 {
        one.meet_as(peer(id), |hello| hello.round = Round(3));
    }
    one
}

/// The donors that were asked for a state, in order.
fn donors_asked(one: &One) -> Vec<PeerId> {
    let at_least = Round(0);
    one.told(|said| *said == TransferMessage::StateAsk { at_least }.into())
}

/// A newcomer meets its first peer some milliseconds before the others. The chunks of a state come
/// faster from several.
#[test]
fn a_newcomer_asks_peers_that_it_meets_while_the_first_has_not_answered() {
    let one = newcomer_of_five();
    assert_eq!(donors_asked(&one), [1, 2, 3, 4].map(peer));
    let mut one = newcomer_of_five();
    one.outputs.clear();
    let mut hello = one.hello();
    hello.round = Round(3);
    one.hear(peer(5), MembershipMessage::Hello(hello));
    assert_eq!(donors_asked(&one), [], "four are enough");
}

/// Only those that gave a state keep the rounds since, however large these are.
#[test]
fn what_was_decided_since_a_state_is_asked_of_its_donors() {
    let state = state(2, b"state", 900);
    let mut one = newcomer_of_five();
    for id in [1, 2] {
        one.hear(peer(id), offer(state));
    }
    for id in [3, 4] {
        one.hear(peer(id), TransferMessage::StateRefuse);
    }
    assert_eq!(one.fetches().len(), 1, "{:?}", one.outputs);
    one.outputs.clear();
    takes_over(&mut one, state);
    let asked = one.asked_for_history();
    assert_eq!(asked.first(), Some(&peer(2)), "{:?}", one.outputs);
}

/// A donor that exchanges a round answers when that has ended, and a machine may be overloaded.
#[test]
fn a_state_that_is_offered_late_is_taken() {
    let state = state(3, b"state", 900);
    let mut one = newcomer_of_five();
    let first = donors_asked(&one);
    let still_asked = |one: &One| donors_asked(one).iter().any(|peer| first.contains(peer));
    one.outputs.clear();
    // The first wait ends, and others are asked.
    while donors_asked(&one).is_empty() {
        one.pass(1);
    }
    assert!(!first.is_empty() && !still_asked(&one), "{first:?}");
    let late = first[0];
    one.hear(late, offer(state));
    assert_eq!(one.fetches().len(), 1, "{:?}", one.outputs);
}

#[test]
fn a_state_that_no_plan_allows_is_refused_and_noted() {
    let state = state(3, b"state", u64::MAX);
    let mut one = newcomer_of_five();
    one.outputs.clear();
    for id in 1..=5 {
        one.hear(peer(id), offer(state));
    }
    assert_eq!(one.fetches().len(), 0);
    assert!(one.misbehaved() > 0, "{:?}", one.outputs);
}

#[test]
fn a_cell_larger_than_the_plan_deals_is_refused() {
    let cell = 8;
    for (grouping, most) in [
        (Grouping::Cells { cell }, Axes::largest(cell)),
        (Grouping::RandomCells { cell }, usize::from(cell)),
    ] {
        let mut plan = plan(ExchangeKind::AllReduce, 1);
        plan.exchange = ExchangeKind::Cells;
        plan.contribution = Contribution::Parameters;
        plan.agreement.grouping = grouping;
        let mut one = One::of(plan);
        one.meet(peer(1));

        for (members, refused) in [(most, false), (most + 1, true)] {
            one.outputs.clear();
            let round = Round(0);
            let members = (0..members as u8).map(peer).collect();
            let form = CellsMessage::Form { round, members };
            one.hear(peer(1), ExchangeMessage::Cells(form));
            assert_eq!(one.misbehaved() > 0, refused, "{:?}", one.outputs);
        }
    }
}

/// A state.
fn state(round: u64, root: &[u8], bytes: u64) -> StateId {
    StateId {
        round: Round(round),
        root: Digest::of(root),
        bytes,
    }
}

/// A state is fetched and loaded.
fn takes_over(one: &mut One, taken: StateId) {
    one.fetched(taken);
    assert!(
        one.orders()
            .any(|order| *order == Order::Load { state: taken })
    );
    one.loads(Digest::of(b"taken over"));
}

/// An offer of a state. Without liars it does not matter which anchor it names.
fn offer(state: StateId) -> TransferMessage {
    let anchor = Digest::of(b"any");
    TransferMessage::StateOffer(Offer { state, anchor })
}

/// The reports about clocks among the outputs.
fn clocks(one: &One) -> Vec<(Option<PeerId>, i64)> {
    let off = one.events().filter_map(|event| match event {
        Event::ClockOff { peer, ahead } => Some((*peer, *ahead)),
        _ => None,
    });
    off.collect()
}

/// A peer's own record, signed at `signed` seconds by its clock.
fn signed_at(one: &One, id: u8, signed: u64, sequence: u64) -> PeerRecord {
    let expires = Time::ZERO + Duration::from_secs(signed) + RECORD_LIFETIME;
    PeerRecord::from(RecordFields {
        run: one.peer.plan().run,
        sequence,
        ..record(id, expires)
    })
}

#[test]
fn of_three_machines_the_one_whose_clock_is_wrong_is_named_by_all() {
    const DAY: u64 = 24 * 3600;
    // This machine's clock is right, then it is the one that is wrong.
    for (mine, theirs, named) in [
        (10 * DAY, [10 * DAY, 11 * DAY], Some(peer(2))),
        (10 * DAY, [11 * DAY, 11 * DAY], None),
    ] {
        let mut one = One::new(ExchangeKind::AllReduce);
        one.now = one.now + Duration::from_secs(mine);
        for (id, signed) in [1, 2].into_iter().zip(theirs) {
            one.meet(peer(id));
            let told = signed_at(&one, id, signed, 1);
            one.hear(peer(id), MembershipMessage::Records(vec![told]));
        }
        assert_eq!(clocks(&one).last(), Some(&(named, DAY as i64)));
    }
}

#[test]
fn a_wrong_clock_is_reported_once_and_breaks_no_rule() {
    const DAY: u64 = 24 * 3600;
    let mut one = One::new(ExchangeKind::AllReduce);
    one.now = one.now + Duration::from_secs(10 * DAY);
    (1..4).for_each(|id| one.meet(peer(id)));
    // The others' clocks are right; records of any age that is still believed say so.
    for id in [1, 2] {
        let told = signed_at(&one, id, 10 * DAY - 3000, 1);
        one.hear(peer(id), MembershipMessage::Records(vec![told]));
    }
    assert_eq!(clocks(&one), []);
    for sequence in 1..20 {
        let told = signed_at(&one, 3, 11 * DAY, sequence);
        one.hear(peer(3), MembershipMessage::Records(vec![told]));
    }
    assert_eq!(clocks(&one), [(Some(peer(3)), DAY as i64)]);
    assert_eq!(one.peer.view().get(peer(3)).unwrap().score, 0);
    // All others are ahead: the wrong one is this peer's.
    one.outputs.clear();
    for (id, sequence) in [(1, 2), (2, 2), (1, 3)] {
        let told = signed_at(&one, id, 11 * DAY, sequence);
        one.hear(peer(id), MembershipMessage::Records(vec![told]));
    }
    assert_eq!(clocks(&one).last(), Some(&(None, DAY as i64)));
    assert_eq!(
        clocks(&one)
            .iter()
            .filter(|(peer, _)| peer.is_none())
            .count(),
        1
    );
}
