//! Properties of the wire and of the peer under arbitrary inputs.
#![expect(
    clippy::disallowed_methods,
    clippy::too_many_lines,
    reason = "tests read settings of their own, and list one case after the other"
)]

use crate::common::{
    any_half, any_message, any_peer, any_pulled, any_record, any_relayed, any_slice, any_state,
    config, peer, plan, record, snapshot,
};
use core::time::Duration;
use murmurate_protocol::limits::{FRAME_BYTES_MAX, OUTPUTS_MAX};
use murmurate_protocol::wire::{
    AgreedMessage, ExchangeMessage, FragmentMessage, Hello, MembershipMessage, Message, Muster,
    PeerRecord, Reason, RecordFields, WIRE_VERSION, WireError, WireVersions, canonical, decode,
    decode_value, encode,
};
use murmurate_protocol::{
    CenterPlan, Change, Contribution, CopyPlan, Digest, Directive, Done, Evaluation, Event,
    ExchangeKind, FetchId, FragmentId, Grace, GroupTag, Grouping, Input, LeadPlan, Order, OrderId,
    Output, Pace, Partners, Peer, PeerId, Phase, Plan, PlanHash, PullAnswers, PullPlan,
    PushOutcome, Quorum, RateFactor, Roll, Round, ServerPlan, SliceId, SliceMeta, Snapshot,
    StateId, StepBudget, Tag, Time, Topology, TrainSummary, WorkError,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::ops::Range;

/// The roll of a grid or of cells that six peers have founded; none where they have not.
fn roll_of_six(plan: &Plan, row: u16, founded: bool) -> Vec<u8> {
    let founder = |id| {
        PeerRecord::from(RecordFields {
            run: plan.run,
            sequence: 0,
            ..record(id, Time::NEVER)
        })
    };
    match founded {
        true => Roll::found((0..6).map(founder), row, Round(0)).to_bytes(),
        false => Vec::new(),
    }
}

proptest! {
    #[test]
    fn what_is_encoded_decodes_to_the_same(message in any_message()) {
        prop_assert!(message.check().is_ok());
        let frame = encode(&message);
        prop_assert!(frame.len() <= FRAME_BYTES_MAX);
        prop_assert_eq!(decode(&frame), Ok(message));
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(mut bytes in vec(any::<u8>(), 0..400)) {
        let _ = decode(&bytes);
        let _ = decode_value::<SliceMeta>(&bytes);
        let _ = decode_value::<(SliceId, SliceMeta)>(&bytes);
        let _ = decode_value::<StateId>(&bytes);
        let _ = decode_value::<PeerRecord>(&bytes);
        // With the right version byte and a variant that exists they get further.
        if bytes.len() > 4 {
            bytes[0] = murmurate_protocol::wire::WIRE_VERSION;
            bytes[1] %= 19;
            bytes[2..5].fill(0);
            if let Ok(message) = decode(&bytes) {
                prop_assert_eq!(encode(&message), bytes);
            }
        }
    }

    #[test]
    fn a_damaged_frame_is_refused_or_another_message(
        message in any_message(), at in any::<prop::sample::Index>(), to in any::<u8>(),
    ) {
        let mut frame = encode(&message);
        let at = at.index(frame.len());
        frame[at] = to;
        if let Ok(other) = decode(&frame) {
            // Older versions say most messages with the same bytes after their own number.
            prop_assert!(WireVersions::OURS.has(frame[0]));
            prop_assert_eq!(&encode(&other)[1..], &frame[1..]);
        }
    }
}

#[test]
fn a_claimed_length_beyond_the_frame_is_refused_before_it_is_believed() {
    let records = encode(&MembershipMessage::Records(Vec::new()).into());
    // Version, kind of frame, family, variant, then the count of records as eight bytes.
    assert_eq!(records.len(), 1 + 1 + 4 + 4 + 8);
    for claimed in [33u64, 1 << 20, 1 << 40, u64::MAX] {
        let mut frame = records.clone();
        frame[10..18].copy_from_slice(&claimed.to_le_bytes());
        assert!(
            matches!(decode(&frame), Err(WireError::Undecodable(_))),
            "{claimed}"
        );
    }
    let long = vec![1u8; FRAME_BYTES_MAX + 1];
    assert!(matches!(decode(&long), Err(WireError::TooLong { .. })));
}

#[test]
fn a_peer_of_another_wire_version_is_told_and_cut_off() {
    let mut frame = encode(&MembershipMessage::Records(Vec::new()).into());
    frame[0] = WIRE_VERSION + 1;
    let error = decode(&frame).unwrap_err();
    let theirs = WIRE_VERSION + 1;
    assert_eq!(error, WireError::Version { theirs });

    let mut me = Peer::new(config(peer(1)), plan(ExchangeKind::AllReduce, 1), None);
    let started = Input::Start {
        snapshot: None,
        digests: vec![Digest::from_bytes([0; 32])],
        opened: Vec::new(),
    };
    me.handle(Time::ZERO, started).unwrap();
    let from = peer(2);
    me.handle(Time::ZERO, Input::LinkUp(from)).unwrap();
    let refused = me.handle(Time::ZERO, Input::Malformed { from, error });
    assert!(refused.is_err());
    let outputs: Vec<Output> = std::iter::from_fn(|| me.poll_output()).collect();
    let reason = Reason::OtherVersion;
    let told = |o: &Output| matches!(o, Output::Emit(Event::Refused { peer, reason: r }) if *peer == from && *r == reason);
    let cut = |o: &Output| matches!(o, Output::Disconnect { peer, reason: r } if *peer == from && *r == reason);
    assert!(
        outputs.iter().any(told) && outputs.iter().any(cut),
        "{outputs:?}"
    );
    assert!(reason.to_string().contains("upgrade the older of the two"));
}

/// Every rank pushes half to the next.
struct Ring;

impl Topology for Ring {
    fn partners(&self, _round: Round, rank: usize, count: usize) -> Partners {
        let next = (rank + 1) % count;
        let last = (rank + count - 1) % count;
        Partners {
            send: vec![(next, 0.5)],
            receive: vec![last],
        }
    }
}

/// Something that may happen to a peer.
#[derive(Clone, Debug)]
enum Step {
    Message(PeerId, Message),
    Slice(PeerId, SliceId, SliceMeta, Option<Digest>),
    Up(PeerId),
    Down(PeerId),
    /// Waits so long.
    Pass(u64),
    /// Waits for the next deadline.
    Expire,
    /// Answers an order: well, or with a failure.
    Done(prop::sample::Index, bool),
    Pushed(prop::sample::Index, u8),
    Fetched(prop::sample::Index, bool, u8),
    Malformed(PeerId),
    Record(PeerRecord),
    Unasked(FetchId),
    Directed(Directive),
    Leave,
}

fn any_directive() -> impl Strategy<Value = Directive> {
    let change = prop_oneof![
        Just(Change::Pause),
        Just(Change::Resume),
        (0u64..6).prop_map(Change::Rounds),
        any::<u32>().prop_map(Change::InnerSteps),
        (1u32..4).prop_map(|n| Change::LearningRate(RateFactor::new(n.into()).expect("a factor"))),
    ];
    (0u32..9, 0u64..4, change).prop_map(|(number, from, change)| Directive {
        number,
        at_s: 0,
        from: Round(from),
        change,
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    let slice = any_peer().prop_flat_map(|from| {
        (
            Just(from),
            prop_oneof![
                any_slice(from),
                any_half(from),
                any_relayed(from),
                any_pulled(from)
            ],
        )
    });
    let slice = slice.boxed();
    let digest = prop::option::of((0u8..4).prop_map(|b| Digest::from_bytes([b; 32])));
    prop_oneof![
        12 => (any_peer(), any_message()).prop_map(|(from, m)| Step::Message(from, m)),
        4 => (slice, digest).prop_map(|((from, (s, m)), d)| Step::Slice(from, s, m, d)),
        4 => any_peer().prop_map(Step::Up),
        1 => any_peer().prop_map(Step::Down),
        2 => (0u64..3000).prop_map(Step::Pass),
        3 => Just(Step::Expire),
        12 => (any::<prop::sample::Index>(), prop::bool::weighted(0.1))
            .prop_map(|(at, fails)| Step::Done(at, fails)),
        3 => (any::<prop::sample::Index>(), 0u8..4).prop_map(|(at, how)| Step::Pushed(at, how)),
        3 => (any::<prop::sample::Index>(), any::<bool>(), 0u8..4)
            .prop_map(|(at, fails, digest)| Step::Fetched(at, fails, digest)),
        1 => any_directive().prop_map(Step::Directed),
        1 => any_peer().prop_map(Step::Malformed),
        1 => any_record().prop_map(Step::Record),
        1 => any_state().prop_map(|state| Step::Unasked(FetchId::State(state))),
        1 => prop::bool::weighted(0.02).prop_map(|leave| match leave {
            true => Step::Leave,
            false => Step::Expire,
        }),
    ]
}

/// A peer with its open requests and the outputs seen so far.
struct Driven {
    peer: Peer,
    now: Time,
    orders: VecDeque<(OrderId, Order)>,
    pushes: VecDeque<(PeerId, SliceId)>,
    fetches: VecDeque<FetchId>,
    phase: Phase,
    round: Round,
    /// The tags of this peer's row and column in the present round, in a grid.
    tags: Option<[GroupTag; 2]>,
}

impl Driven {
    /// A peer of a plan, which has this roll from a checkpoint.
    fn following(plan: Plan, roll: Vec<u8>) -> Self {
        let snapshot = (!roll.is_empty()).then(|| Snapshot {
            roll,
            ..snapshot(&plan, Round(0))
        });
        Self::resuming(plan, snapshot)
    }

    /// A peer that begins with what its checkpoint says.
    fn resuming(plan: Plan, snapshot: Option<Snapshot>) -> Self {
        let topology = plan.exchange.has_neighbours().then(|| Box::new(Ring) as _);
        let mut driven = Self {
            peer: Peer::new(config(peer(0)), plan, topology),
            now: Time::from_nanos(1),
            orders: VecDeque::new(),
            pushes: VecDeque::new(),
            fetches: VecDeque::new(),
            phase: Phase::New,
            round: Round(0),
            tags: None,
        };
        driven.feed(Input::Start {
            snapshot,
            digests: vec![Digest::from_bytes([0; 32])],
            opened: Vec::new(),
        });
        driven
    }

    fn feed(&mut self, input: Input) {
        let _ = self.peer.handle(self.now, input);
        let mut count = 0;
        while let Some(output) = self.peer.poll_output() {
            count += 1;
            match output {
                Output::Order { id, order } => match order {
                    Order::Settle { .. } | Order::Release { .. } | Order::Forget(_) => {}
                    order => self.orders.push_back((id, order)),
                },
                Output::Push {
                    to,
                    slice,
                    deadline,
                    ..
                } => {
                    assert!(deadline > self.now, "a push that is late at once");
                    assert_ne!(to, peer(0), "a push to oneself");
                    self.pushes.push_back((to, slice));
                }
                Output::Fetch {
                    what,
                    deadline,
                    from,
                } => {
                    assert!(deadline > self.now && !from.is_empty());
                    self.fetches.push_back(what);
                }
                Output::Send { to, message } => {
                    assert_ne!(to, peer(0), "a message to oneself");
                    assert_eq!(message.check(), Ok(()), "{message:?}");
                    assert!(encode(&message).len() <= FRAME_BYTES_MAX);
                }
                Output::Emit(Event::Seated {
                    columns,
                    place,
                    state,
                    ..
                }) => {
                    let column = Digest::of(&canonical(&(state, u64::from(place % columns))));
                    let tags = [state, column];
                    self.tags = Some(tags.map(|digest| GroupTag::of_digest(&digest)));
                }
                Output::Emit(Event::Phase { phase, .. }) => {
                    assert!(self.phase.may_become(phase), "{} to {phase}", self.phase);
                    self.phase = phase;
                }
                _ => {}
            }
        }
        assert!(count < OUTPUTS_MAX / 100, "{count} outputs of one input");
        assert!(self.peer.round() >= self.round, "rounds go back");
        self.round = self.peer.round();
    }

    /// Peers come and greet this one.
    fn meets(&mut self, ids: Range<u8>) {
        for id in ids {
            self.feed(Input::LinkUp(peer(id)));
            let message = self.hello();
            self.feed(Input::Received {
                from: peer(id),
                message,
            });
        }
    }

    /// What a peer of the same plan says first.
    fn hello(&self) -> Message {
        let plan = self.peer.plan();
        Message::Membership(MembershipMessage::Hello(Hello {
            run: plan.run,
            layout: plan.layout,
            plan: plan.hash(),
            round: Round(0),
            anchor: Digest::from_bytes([0; 32]),
            ready: true,
            muster: Muster::Begun,
            branch: None,
        }))
    }

    /// What an honest Executor would say.
    fn answer(order: &Order, fails: bool) -> Done {
        let digest = Digest::from_bytes([2; 32]);
        if fails {
            let reason = "made up".to_owned();
            return Done::Failed(match order.inputs().first() {
                Some(slice) => WorkError::BadSlice {
                    slice: *slice,
                    origin: slice.origin,
                    reason,
                },
                None => WorkError::Storage { reason },
            });
        }
        match order {
            Order::Train { .. } => Done::Trained(TrainSummary {
                steps: 1,
                samples: 8,
                ..TrainSummary::default()
            }),
            Order::Encode { .. } => Done::Encoded {
                bytes: 48,
                digest: Some(digest),
            },
            Order::Combine { .. } => Done::Combined,
            Order::Evaluate { .. } => Done::Evaluated(Evaluation::default()),
            Order::Save { .. } => Done::Saved,
            Order::Pin { round, .. } => Done::Pinned(StateId {
                round: *round,
                root: digest,
                bytes: 9,
            }),
            Order::Load { .. } => Done::Loaded {
                digests: vec![digest],
                note: Vec::new(),
            },
            _ => Done::Applied {
                digest,
                note: Vec::new(),
            },
        }
    }

    /// Most slices and messages of a grid are for the round that is open here.
    fn seat(&self, step: Step) -> Step {
        let Some([row, column]) = self.tags else {
            return step;
        };
        match step {
            Step::Slice(from, mut slice, mut meta, digest) if slice.shard != 3 => {
                (slice.round, slice.fragment) = (self.round, FragmentId(0));
                match &mut meta.tag {
                    Tag::Share { group, .. } | Tag::Result { group, .. } => {
                        (*group, meta.of) = (row, 2);
                    }
                    Tag::RowMean { group, .. } | Tag::Mean { group, .. } => *group = column,
                    _ => {}
                }
                Step::Slice(from, slice, meta, digest)
            }
            Step::Message(from, mut message) => {
                if let Message::Exchange(ExchangeMessage::Agreed(AgreedMessage::Fragment(said))) =
                    &mut message
                    && said.round.0 < 4
                {
                    (said.round, said.fragment) = (self.round, FragmentId(0));
                    said.group = match said.body {
                        FragmentMessage::Collected { .. } => row,
                        _ => column,
                    };
                }
                Step::Message(from, message)
            }
            other => other,
        }
    }

    fn step(&mut self, step: Step) {
        let step = self.seat(step);
        let take = |at: prop::sample::Index, len: usize| (len > 0).then(|| at.index(len));
        let input = match step {
            Step::Message(from, message) => Input::Received {
                from,
                message: match message {
                    Message::Membership(MembershipMessage::Hello(hello))
                        if hello.plan != PlanHash::from_bytes([9; 32]) =>
                    {
                        self.hello()
                    }
                    other => other,
                },
            },
            Step::Slice(from, slice, meta, digest) => Input::Arrived {
                from,
                slice,
                meta,
                digest,
            },
            Step::Up(who) => Input::LinkUp(who),
            Step::Down(who) => Input::LinkDown(who),
            Step::Pass(ms) => {
                self.now = self.now + Duration::from_millis(ms);
                Input::Timeout
            }
            Step::Expire => {
                let Some(at) = self.peer.poll_timeout() else {
                    return;
                };
                self.now = self.now.max(at);
                if self.now == Time::NEVER {
                    return;
                }
                Input::Timeout
            }
            Step::Done(at, fails) => {
                // Orders of one lane are answered in order, but the lanes go their own ways.
                let Some(at) = take(at, self.orders.len().min(3)) else {
                    return;
                };
                let Some((order, what)) = self.orders.remove(at) else {
                    return;
                };
                let done = Self::answer(&what, fails);
                Input::Done { order, done }
            }
            Step::Pushed(at, how) => {
                let Some(at) = take(at, self.pushes.len()) else {
                    return;
                };
                let Some((to, slice)) = self.pushes.remove(at) else {
                    return;
                };
                let outcome = [
                    PushOutcome::Delivered,
                    PushOutcome::Lost,
                    PushOutcome::Refused,
                    PushOutcome::Unknown,
                ][usize::from(how)];
                Input::Pushed { to, slice, outcome }
            }
            Step::Fetched(at, fails, digest) => {
                let Some(at) = take(at, self.fetches.len()) else {
                    return;
                };
                let Some(what) = self.fetches.remove(at) else {
                    return;
                };
                match fails {
                    true => Input::FetchFailed { what },
                    false => Input::Fetched {
                        what,
                        meta: None,
                        digest: Some(Digest::from_bytes([digest; 32])),
                    },
                }
            }
            Step::Malformed(from) => Input::Malformed {
                from,
                error: WireError::Empty,
            },
            Step::Record(record) => Input::Record(record),
            Step::Unasked(what) => Input::FetchFailed { what },
            Step::Directed(directive) => Input::Directives(vec![directive]),
            Step::Leave => Input::Leave,
        };
        self.feed(input);
    }

    /// Whatever was said, timeouts alone come to an end at every instant.
    fn settle_timers(&mut self) {
        for _ in 0..16 {
            match self.peer.poll_timeout() {
                Some(at) if at <= self.now => self.feed(Input::Timeout),
                _ => return,
            }
        }
        panic!(
            "at {} a deadline of {:?} stays in the past",
            self.now,
            self.peer.poll_timeout()
        );
    }
}

fn survives(exchange: ExchangeKind, steps: Vec<Step>) {
    follows(plan(exchange, 1), steps);
}

fn follows(plan: Plan, steps: Vec<Step>) {
    endures(Driven::following(plan, Vec::new()), steps);
}

fn endures(mut driven: Driven, steps: Vec<Step>) {
    driven.meets(1..4);
    for step in steps {
        driven.step(step);
        driven.settle_timers();
    }
    assert!(driven.peer.inbox_len() < 2000);
    assert!(driven.peer.view().len() <= murmurate_protocol::limits::VIEW_PEERS_MAX);
}

proptest! {
    #![proptest_config(ProptestConfig {
        // More with PROPTEST_CASES; four hundred cases a peer take a second.
        cases: std::env::var("PROPTEST_CASES").map_or(400, |n| n.parse().expect("a number")),
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_inputs_break_a_peer_of_an_all_reduce(steps in vec(any_step(), 0..160)) {
        survives(ExchangeKind::AllReduce, steps);
    }

    #[test]
    fn no_inputs_break_a_peer_that_gathers(steps in vec(any_step(), 0..160)) {
        survives(ExchangeKind::Gathered, steps);
    }

    #[test]
    fn no_inputs_break_a_peer_of_a_parameter_server(
        steps in vec(any_step(), 0..160),
        lead in proptest::option::of((1u32..3, 0u32..2)),
    ) {
        let lead = lead.map(|(least, more)| LeadPlan { least, most: least + more });
        let (owners, buffer) = (2, 2);
        survives(ExchangeKind::Center(CenterPlan { owners, lead, buffer }), steps.clone());
        survives(ExchangeKind::Server(ServerPlan { owners }), steps);
    }

    #[test]
    fn no_inputs_break_a_peer_that_goes_on_with_enough(
        steps in vec(any_step(), 0..160),
        fixed in any::<bool>(),
    ) {
        let mut plan = plan(ExchangeKind::AllReduce, 1);
        plan.synchronization.quorum = Quorum {
            enough: 3,
            grace: match fixed {
                true => Grace::Fixed(Duration::from_millis(500)),
                false => Grace::Adaptive,
            },
        };
        plan.synchronization.pace = Pace::Switch { round: 1, steps: 3 };
        follows(plan, steps);
    }

    #[test]
    fn no_inputs_break_a_peer_of_balanced_rounds(
        steps in vec(any_step(), 0..160),
        most in 1u32..9,
    ) {
        let mut plan = plan(ExchangeKind::AllReduce, 1);
        plan.budget = StepBudget::Steps(most);
        plan.synchronization.pace = Pace::Balanced;
        follows(plan, steps);
    }

    #[test]
    fn no_inputs_break_a_peer_that_follows_losses(
        steps in vec(any_step(), 0..160),
        most in 1u32..99,
        every in 1u64..3,
    ) {
        let mut plan = plan(ExchangeKind::AllReduce, 1);
        plan.budget = StepBudget::Steps(most);
        plan.synchronization.pace = Pace::Loss { every, factor: 500 };
        follows(plan, steps);
    }

    #[test]
    fn no_inputs_break_a_peer_of_a_grid(
        steps in vec(any_step(), 0..160),
        founded in any::<bool>(),
    ) {
        let mut plan = plan(ExchangeKind::AllReduce, 1);
        plan.agreement.grouping = Grouping::Grid { row: 2 };
        let roll = roll_of_six(&plan, 2, founded);
        let mut driven = Driven::following(plan, roll);
        if founded {
            // Every peer of the roll is here, so the round opens.
            driven.meets(1..6);
            driven.step(Step::Expire);
            prop_assert!(driven.tags.is_some(), "{} at {}", driven.phase, driven.now);
        }
        endures(driven, steps);
    }

    #[test]
    fn no_inputs_break_a_peer_of_cells(
        steps in vec(any_step(), 0..160),
        founded in any::<bool>(),
        random in any::<bool>(),
    ) {
        let mut plan = plan(ExchangeKind::AllReduce, 1);
        plan.exchange = ExchangeKind::Cells;
        plan.contribution = Contribution::Parameters;
        plan.agreement.grouping = match random {
            true => Grouping::RandomCells { cell: 4 },
            false => Grouping::Cells { cell: 4 },
        };
        let roll = roll_of_six(&plan, 4, founded);
        let mut driven = Driven::following(plan, roll);
        if founded {
            // Every peer of the roll is here, so the peer trains.
            driven.meets(1..6);
            driven.step(Step::Expire);
            prop_assert!(driven.phase == Phase::Train, "{} at {}", driven.phase, driven.now);
        }
        endures(driven, steps);
    }

    #[test]
    fn no_inputs_break_a_peer_in_its_last_rounds(
        steps in vec(any_step(), 0..160),
        kind in prop::sample::select(vec![
            ExchangeKind::AllReduce,
            ExchangeKind::Gathered,
            ExchangeKind::Cells,
            ExchangeKind::Gossip,
            ExchangeKind::Pairs,
            ExchangeKind::Push,
            ExchangeKind::Pull(PullPlan::FREE),
            ExchangeKind::Center(CenterPlan { owners: 2, lead: None, buffer: 2 }),
        ]),
        left in 0u64..12,
    ) {
        let mut plan = plan(kind, 1);
        if kind == ExchangeKind::Cells {
            plan.contribution = Contribution::Parameters;
            plan.agreement.grouping = Grouping::Cells { cell: 4 };
        }
        let roll = roll_of_six(&plan, 4, kind == ExchangeKind::Cells);
        let snapshot = Snapshot { roll, ..snapshot(&plan, Round(u64::MAX - left)) };
        let mut driven = Driven::resuming(plan, Some(snapshot));
        driven.meets(1..6);
        driven.step(Step::Expire);
        endures(driven, steps);
    }

    #[test]
    fn no_inputs_break_a_peer_that_gossips(steps in vec(any_step(), 0..160)) {
        survives(ExchangeKind::Gossip, steps);
    }

    #[test]
    fn no_inputs_break_a_peer_with_replicas(steps in vec(any_step(), 0..160)) {
        survives(ExchangeKind::Replicas, steps);
    }

    #[test]
    fn no_inputs_break_a_peer_of_pairs(steps in vec(any_step(), 0..160)) {
        survives(ExchangeKind::Pairs, steps);
    }

    #[test]
    fn no_inputs_break_a_peer_that_relays(steps in vec(any_step(), 0..160)) {
        survives(ExchangeKind::RelaySum, steps);
    }

    #[test]
    fn no_inputs_break_a_peer_that_sends_differences(steps in vec(any_step(), 0..160)) {
        survives(ExchangeKind::Differences(CopyPlan::Parameters), steps);
    }

    #[test]
    fn no_inputs_break_a_peer_that_never_waits(steps in vec(any_step(), 0..160)) {
        survives(ExchangeKind::Push, steps.clone());
        survives(ExchangeKind::Pull(PullPlan::FREE), steps.clone());
        let bounds = PullPlan { staleness: 1, backup: 1, lead: 3, skip: 2, sync_every: 3 };
        survives(ExchangeKind::Pull(bounds), steps.clone());
        survives(ExchangeKind::PullBy(bounds, PullAnswers::OfTheRound), steps);
    }

    #[test]
    fn no_inputs_break_a_peer_of_groups(steps in vec(any_step(), 0..160)) {
        let bounds = PullPlan { staleness: 2, sync_every: 3, ..PullPlan::FREE };
        survives(ExchangeKind::PullBy(bounds, PullAnswers::GroupMean), steps);
    }

    #[test]
    fn no_inputs_break_a_peer_that_exchanges_nothing(steps in vec(any_step(), 0..80)) {
        survives(ExchangeKind::None, steps);
    }
}
