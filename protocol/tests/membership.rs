//! Membership and gossip against what a single peer may say: nothing of it may crash, move or
//! drain the others.

#![allow(
    unreachable_pub,
    dead_code,
    clippy::disallowed_methods,
    clippy::too_many_lines,
    clippy::type_complexity,
    clippy::collapsible_match,
    reason = "tests read settings of their own, and list one case after the other"
)]

mod common;

use common::{config, peer, plan};
use core::time::Duration;
use murmurate_protocol::limits::{
    ADDRESS_BYTES_MAX, FRAME_BYTES_MAX, PIN_LIFETIME, RECORD_ADDRESSES_MAX,
};
use murmurate_protocol::wire::{
    FormingMessage, Hello, MembershipMessage, Message, Muster, PeerRecord, Reason, TransferMessage,
    encode,
};
use murmurate_protocol::{
    Digest, Done, Event, ExchangeKind, FetchId, FragmentId, Input, Order, Output, Part, Partners,
    Peer, PeerId, Phase, PlanHash, PushOutcome, Round, RunId, SliceId, SliceMeta, StateId, Tag,
    Time, Topology, TrainSummary, WorkError,
};

/// Pushes half of the mass to the other of two, and waits for nobody.
struct Half;

impl Topology for Half {
    fn partners(&self, _round: Round, rank: usize, count: usize) -> Partners {
        Partners {
            send: (count == 2).then(|| (1 - rank, 0.5)).into_iter().collect(),
            receive: Vec::new(),
        }
    }
}

/// A peer and everything that came out of it.
struct One {
    peer: Peer,
    now: Time,
    outputs: Vec<Output>,
}

impl One {
    fn new(exchange: ExchangeKind) -> Self {
        let topology = exchange.has_neighbours().then(|| Box::new(Half) as _);
        let mut settings = config(peer(0));
        settings.start_with = 2;
        let mut one = Self {
            peer: Peer::new(settings, plan(exchange, 1), topology),
            now: Time::from_nanos(1),
            outputs: Vec::new(),
        };
        let digests = vec![Digest::of(b"anchor")];
        one.feed(Input::Start {
            snapshot: None,
            digests,
        });
        one
    }

    fn feed(&mut self, input: Input) {
        let _ = self.peer.handle(self.now, input);
        while let Some(output) = self.peer.poll_output() {
            self.outputs.push(output);
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
        self.feed(Input::Timeout);
    }

    fn hello(&self) -> Hello {
        let plan = self.peer.plan();
        Hello {
            run: plan.run,
            layout: plan.layout,
            plan: plan.hash(),
            round: Round(0),
            anchor: self.peer.digest(),
            ready: true,
            muster: Muster::Begun,
        }
    }

    fn meet(&mut self, other: PeerId) {
        self.feed(Input::LinkUp(other));
        let message = MembershipMessage::Hello(self.hello());
        self.hear(other, message);
    }

    fn hear(&mut self, from: PeerId, message: impl Into<Message>) {
        let message = message.into();
        self.feed(Input::Received { from, message });
    }

    /// Answers the orders so far; the last `Train` too.
    fn work(&mut self, mut answer: impl FnMut(&Order) -> Option<Done>) {
        for output in std::mem::take(&mut self.outputs) {
            if let Output::Order { id, order } = output {
                match answer(&order) {
                    Some(done) => self.feed(Input::Done { order: id, done }),
                    None => self.outputs.push(Output::Order { id, order }),
                }
            } else {
                self.outputs.push(output);
            }
        }
    }

    fn pushed(&self) -> Option<SliceId> {
        self.outputs.iter().find_map(|o| match o {
            Output::Push { slice, .. } => Some(*slice),
            _ => None,
        })
    }

    fn released(&self, wanted: SliceId) -> bool {
        let release = |o: &Output| matches!(o, Output::Order { order: Order::Release { slice }, .. } if *slice == wanted);
        self.outputs.iter().any(release)
    }
}

fn trained() -> Done {
    Done::Trained(TrainSummary {
        steps: 1,
        samples: 8,
        ..TrainSummary::default()
    })
}

/// What an Executor answers that never fails.
fn honest(order: &Order) -> Option<Done> {
    Some(match order {
        Order::Train { .. } => trained(),
        Order::Encode { .. } => Done::Encoded {
            bytes: 48,
            digest: None,
        },
        Order::Reduce { .. } | Order::Mix { .. } => Done::Combined,
        Order::Apply { .. } | Order::Void { .. } => Done::Applied {
            digest: Digest::of(b"mixed"),
        },
        _ => return None,
    })
}

#[test]
fn records_of_full_length_are_passed_on_in_frames_that_hold_them() {
    let mut one = One::new(ExchangeKind::AllReduce);
    one.meet(peer(1));
    for id in 10..42 {
        let record = PeerRecord {
            peer: peer(id),
            run: RunId::from_bytes([1; 32]),
            sequence: 1,
            expires: one.now + Duration::from_secs(60),
            addresses: vec![vec![7; ADDRESS_BYTES_MAX]; RECORD_ADDRESSES_MAX],
            signature: vec![7; 64],
        };
        one.hear(peer(1), MembershipMessage::Records(vec![record]));
    }
    one.pass(2);
    let spread = one.outputs.iter().filter_map(|o| match o {
        Output::Send {
            message: message @ Message::Membership(MembershipMessage::Records(records)),
            ..
        } => Some((encode(message).len(), records.len())),
        _ => None,
    });
    let (bytes, count) = spread.max().expect("records are spread");
    assert!(
        bytes <= FRAME_BYTES_MAX && count > 8,
        "{count} in {bytes} bytes"
    );
}

/// In a small swarm nobody waits for anti-entropy to hear of a newcomer.
#[test]
fn news_of_a_newcomer_go_to_the_others_at_once_and_only_once() {
    let mut one = One::new(ExchangeKind::AllReduce);
    one.meet(peer(1));
    one.meet(peer(2));
    let record = PeerRecord {
        peer: peer(2),
        run: RunId::from_bytes([1; 32]),
        sequence: 1,
        expires: one.now + Duration::from_secs(60),
        addresses: Vec::new(),
        signature: vec![7; 64],
    };
    for heard in [1, 0] {
        one.outputs.clear();
        one.hear(peer(2), MembershipMessage::Records(vec![record.clone()]));
        let told: Vec<PeerId> = one
            .outputs
            .iter()
            .filter_map(|o| match o {
                Output::Send {
                    to,
                    message: Message::Membership(MembershipMessage::Records(records)),
                } if *records == [record.clone()] => Some(*to),
                _ => None,
            })
            .collect();
        assert_eq!(told, vec![peer(1); heard]);
    }
}

/// One that began as soon as it has met enough itself would exchange with few of them, or alone.
#[test]
fn nobody_begins_before_the_others_have_met_as_many() {
    for (theirs, begins) in [
        (Muster::Waiting, false),
        (Muster::Met, true),
        (Muster::Begun, true),
    ] {
        let mut one = One::new(ExchangeKind::Gossip);
        let waiting = Hello {
            muster: Muster::Waiting,
            ..one.hello()
        };
        one.feed(Input::LinkUp(peer(1)));
        one.hear(peer(1), MembershipMessage::Hello(waiting.clone()));
        assert_eq!(one.peer.phase(), Phase::Join);
        let told = |o: &Output| matches!(o, Output::Send { message: Message::Membership(MembershipMessage::Alive { muster, .. }), .. } if *muster == Muster::Met);
        assert!(one.outputs.iter().any(told), "the other may begin");
        one.hear(
            peer(1),
            MembershipMessage::Alive {
                round: Round(0),
                ready: true,
                anchor: waiting.anchor,
                muster: theirs,
            },
        );
        assert_eq!(one.peer.phase() == Phase::Train, begins, "{theirs:?}");
        one.pass(600);
        assert_eq!(one.peer.phase(), Phase::Train, "nobody waits for ever");
    }
}

#[test]
fn a_round_at_the_end_of_its_range_overflows_nothing() {
    for exchange in [ExchangeKind::AllReduce, ExchangeKind::Gossip] {
        let mut one = One::new(exchange);
        one.meet(peer(1));
        let (round, anchor) = (Round(u64::MAX), Digest::of(b"far"));
        one.hear(
            peer(1),
            MembershipMessage::Alive {
                round,
                ready: true,
                muster: Muster::Begun,
                anchor,
            },
        );
        one.hear(
            peer(1),
            FormingMessage::Ready {
                round,
                weight: 1.0,
                anchor,
            },
        );
        one.work(honest);
        one.pass(600);
        assert!(one.peer.round() < Round(10));
    }
}

#[test]
fn a_peer_of_another_plan_may_come_back_with_the_right_one() {
    let mut one = One::new(ExchangeKind::AllReduce);
    one.feed(Input::LinkUp(peer(1)));
    let other = Hello {
        plan: PlanHash::from_bytes([9; 32]),
        ..one.hello()
    };
    one.hear(peer(1), MembershipMessage::Hello(other));
    let refused =
        |o: &Output| matches!(o, Output::Disconnect { reason, .. } if *reason == Reason::OtherPlan);
    assert!(one.outputs.iter().any(refused));
    one.feed(Input::LinkDown(peer(1)));
    one.meet(peer(1));
    let remote = one.peer.view().get(peer(1)).expect("known");
    assert!(remote.greeted && !remote.banned);
}

#[test]
fn a_copy_of_the_own_identity_is_not_spoken_to() {
    let mut one = One::new(ExchangeKind::AllReduce);
    one.outputs.clear();
    one.meet(peer(0));
    assert!(one.peer.view().is_empty());
    assert!(matches!(
        one.outputs.as_slice(),
        [Output::Disconnect { .. }]
    ));
}

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
        assert_eq!(one.peer.weight_in_flight().0, 0.5);
        let to = peer(1);
        one.feed(Input::Pushed { to, slice, outcome });
        let gone = matches!(outcome, PushOutcome::Delivered | PushOutcome::Unknown);
        assert_eq!(
            one.peer.weight_held(),
            if gone { 0.5 } else { 1.0 },
            "{outcome:?}"
        );
        let uncertain = one.outputs.iter().any(
            |o| matches!(o, Output::Emit(Event::MassUncertain { weight, .. }) if *weight == 0.5),
        );
        assert_eq!(uncertain, outcome == PushOutcome::Unknown);
        assert_eq!(one.released(slice), gone, "what came back is still needed");
        // Answered once more, nothing changes.
        one.feed(Input::Pushed { to, slice, outcome });
        assert_eq!(one.peer.weight_held(), if gone { 0.5 } else { 1.0 });
    }
}

fn gossip_slice(round: u64, origin: u8) -> (SliceId, SliceMeta) {
    let slice = SliceId {
        round: Round(round),
        fragment: FragmentId(0),
        shard: 0,
        part: Part::Contribution,
        origin: peer(origin),
        attempt: 0,
    };
    let meta = SliceMeta {
        of: 1,
        bytes: 48,
        tag: Tag::Mass { weight: 0.25 },
    };
    (slice, meta)
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
        one.feed(Input::Arrived {
            from: peer(1),
            slice,
            meta,
            digest: None,
        });
        assert!(one.released(slice), "{exchange:?}");
        let score = one.peer.view().get(peer(1)).map(|r| r.score);
        assert_eq!(score, Some(10), "{exchange:?}");
    }
}

/// Its sender has the acknowledgement: whoever turned it away would lose its mass for all.
#[test]
fn what_was_pushed_before_a_goodbye_counts_and_what_a_refused_peer_pushes_does_not() {
    for refuses in [false, true] {
        let mut one = One::new(ExchangeKind::Gossip);
        one.meet(peer(1));
        if refuses {
            let other = Hello {
                plan: PlanHash::from_bytes([9; 32]),
                ..one.hello()
            };
            one.hear(peer(1), MembershipMessage::Hello(other));
        } else {
            one.hear(peer(1), MembershipMessage::Goodbye(Reason::Misbehaved));
        }
        let held = one.peer.weight_held();
        let (slice, meta) = gossip_slice(0, 1);
        one.feed(Input::Arrived {
            from: peer(1),
            slice,
            meta,
            digest: None,
        });
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
    one.feed(Input::Arrived {
        from: peer(1),
        slice,
        meta,
        digest: None,
    });
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
    one.feed(Input::Arrived {
        from: peer(1),
        slice,
        meta,
        digest: None,
    });
    one.work(honest);
    one.work(|order| match order {
        Order::Mix { inputs, .. } if inputs.iter().any(|(s, _)| *s == slice) => {
            Some(Done::Failed(WorkError::BadSlice {
                slice,
                origin: slice.origin,
                reason: "NaN".to_owned(),
            }))
        }
        Order::Encode { .. } => honest(order),
        _ => None,
    });
    assert_eq!(one.peer.view().get(peer(1)).map(|r| r.score), Some(0));
    one.work(|order| match order {
        Order::Mix { inputs, .. } if inputs.iter().any(|(s, _)| *s == slice) => {
            Some(Done::Failed(WorkError::BadSlice {
                slice,
                origin: slice.origin,
                reason: "NaN".to_owned(),
            }))
        }
        _ => None,
    });
    assert_eq!(one.peer.view().get(peer(1)).map(|r| r.score), Some(10));
    one.work(honest);
    assert_eq!(one.peer.weights(), [0.5], "its mass is not in the mix");
}

#[test]
fn a_download_keeps_its_donors_state_alive_and_nothing_else_does() {
    let state = StateId {
        round: Round(3),
        root: Digest::of(b"state"),
        bytes: 900,
    };
    let mut newcomer = One::new(ExchangeKind::AllReduce);
    newcomer.feed(Input::LinkUp(peer(1)));
    let mut hello = newcomer.hello();
    hello.round = Round(3);
    newcomer.hear(peer(1), MembershipMessage::Hello(hello));
    newcomer.hear(peer(1), TransferMessage::StateOffer(state));
    let fetches = |o: &Output| matches!(o, Output::Fetch { .. });
    assert!(newcomer.outputs.iter().any(fetches));
    let (every, lifetime) = (2, PIN_LIFETIME.as_secs());
    let asks = |o: &&Output| {
        let Output::Send { to, message } = o else {
            return false;
        };
        *to == peer(1) && *message == TransferMessage::StateAsk { at_least: Round(3) }.into()
    };
    for _ in 0..lifetime / every {
        newcomer.outputs.clear();
        newcomer.pass(every);
        assert_eq!(newcomer.outputs.iter().filter(asks).count(), 1);
    }

    let mut donor = One::new(ExchangeKind::AllReduce);
    donor.meet(peer(1));
    let at_least = Round(0);
    let unpinned = |o: &Output| matches!(o, Output::Order { order, .. } if matches!(order, Order::Unpin { .. }));
    donor.hear(peer(1), TransferMessage::StateAsk { at_least });
    donor.work(|order| match order {
        Order::Pin { round } => Some(Done::Pinned(StateId {
            round: *round,
            ..state
        })),
        _ => None,
    });
    for _ in 0..3 * lifetime / every {
        donor.pass(every);
        donor.hear(peer(1), TransferMessage::StateAsk { at_least });
    }
    assert!(!donor.outputs.iter().any(unpinned), "{:?}", donor.outputs);
    for _ in 0..=lifetime / every {
        donor.pass(every);
    }
    assert!(
        donor.outputs.iter().any(unpinned),
        "it is not kept for ever"
    );
}

#[test]
fn who_takes_a_state_over_gives_away_none_that_it_held_before() {
    let state = |root: &[u8]| StateId {
        round: Round(0),
        root: Digest::of(root),
        bytes: 900,
    };
    let mut one = One::new(ExchangeKind::AllReduce);
    one.meet(peer(1));
    let at_least = Round(0);
    one.hear(peer(1), TransferMessage::StateAsk { at_least });
    one.work(|order| match order {
        Order::Pin { .. } => Some(Done::Pinned(state(b"before"))),
        _ => None,
    });
    // It falls behind, and takes over what peer 1 holds.
    one.work(honest);
    let (round, resync) = (Round(1), true);
    one.hear(peer(1), FormingMessage::Behind { round, resync });
    let taken = state(b"after");
    one.hear(peer(1), TransferMessage::StateOffer(taken));
    one.outputs.clear();
    one.feed(Input::Fetched {
        what: FetchId::State(taken),
        meta: None,
        digest: None,
    });
    let digests = vec![Digest::of(b"taken over"); one.peer.plan().fragments.len()];
    one.work(|order| match order {
        Order::Load { state } if *state == taken => Some(Done::Loaded {
            digests: digests.clone(),
        }),
        _ => None,
    });
    let unpins = |o: &Output| matches!(o, Output::Order { order, .. } if *order == Order::Unpin { round: Round(0) });
    assert!(one.outputs.iter().any(unpins), "{:?}", one.outputs);
    // Whoever asks now gets what is held now.
    one.outputs.clear();
    one.hear(peer(1), TransferMessage::StateAsk { at_least });
    let old = TransferMessage::StateOffer(state(b"before")).into();
    let offered = |o: &Output| matches!(o, Output::Send { message, .. } if *message == old);
    assert!(!one.outputs.iter().any(offered), "{:?}", one.outputs);
    let pins =
        |o: &Output| matches!(o, Output::Order { order, .. } if matches!(order, Order::Pin { .. }));
    assert!(one.outputs.iter().any(pins), "{:?}", one.outputs);
}
