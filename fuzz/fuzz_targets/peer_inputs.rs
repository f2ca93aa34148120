//! A peer with arbitrary inputs from a driver: remotes send any message, orders succeed or fail,
//! links go up and down. The peer never panics, and the number of outputs per input is bounded.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use murmurate_protocol::limits::OUTPUTS_MAX;
use murmurate_protocol::{
    Attempt, BytesBound, CenterPlan, Contribution, CopyPlan, DeadlinePlan, Digest, Done, ExchangeKind, FetchId, FragmentId,
    FragmentPlan, GroupTag, Grouping, Input, LayoutHash, LeadPlan, Members, Order, OrderId, Output, Part, Peer, PeerConfig, PeerId, Plan,
    PullAnswers, PullPlan, PushOutcome, Roll, Round, RunId, SNAPSHOT_VERSION, Schedule, ServerPlan, SliceId, SliceMeta, Snapshot, Source, StateId, StepBudget, Synchronization, Tag, Time,
    TrainSummary,
    WorkError, wire,
};
use murmurate_strategies::topology::TopologyKind;
use std::time::Duration;

/// Inputs of one case, so that every case ends.
const INPUTS_MAX: usize = 400;

#[derive(Arbitrary, Debug)]
struct Case<'a> {
    exchange: u8,
    join: bool,
    start_with: u8,
    fragments: u8,
    steps: Vec<Step<'a>>,
}

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    LinkUp(u8),
    LinkDown(u8),
    /// A frame from the network. If it does not decode, the peer is told of a malformed frame.
    Frame { from: u8, bytes: &'a [u8] },
    Arrived { from: u8, slice: Slice, of: u16, tag: AnyTag },
    /// The oldest open order, push or fetch ends, with success or failure.
    End { which: u8, well: bool },
    Measured { peer: u8, rtt_ms: u16, rate: u64 },
    /// Time passes, and the peer checks its deadlines.
    Pass { ms: u16 },
    Leave,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum AnyTag {
    Contribution { group: u64 },
    Mean { group: u64, members: u64 },
    Share { group: u64, weight: f64 },
    RowMean { group: u64, weight: f64 },
    Result { group: u64, rows: u64, counted: bool },
    Mass { weight: f64 },
    Half { session: u32, exchange: u32, share: f64 },
    Relayed { up: bool, peers: u32 },
    Answer { round: u8 },
    Update { base: u64, round: u8 },
    Version { version: u64, round: u8 },
    Copy { version: u64 },
    GroupMean { round: u8, parts: u32, own: Option<u8> },
}

impl AnyTag {
    fn tag(self) -> Tag {
        let round = |round: u8| Round(u64::from(round));
        match self {
            Self::Contribution { group } => Tag::Contribution { group: GroupTag::from_bits(group) },
            Self::Mean { group, members } => {
                let (group, members) = (GroupTag::from_bits(group), Members::from_bits(members));
                Tag::Mean { group, members }
            }
            Self::Share { group, weight } => Tag::Share { taken: None, group: GroupTag::from_bits(group), weight },
            Self::RowMean { group, weight } => Tag::RowMean { group: GroupTag::from_bits(group), weight },
            Self::Result { group, rows, counted } => {
                let (group, rows) = (GroupTag::from_bits(group), Members::from_bits(rows));
                Tag::Result { group, rows, counted }
            }
            Self::Mass { weight } => Tag::Mass { weight },
            Self::Half { session, exchange, share } => Tag::Half { session, exchange, share },
            Self::Relayed { up, peers } => Tag::Relayed { up, peers },
            Self::Answer { round: at } => Tag::Answer { round: round(at) },
            Self::Update { base, round: at } => Tag::Update { base, round: round(at) },
            Self::Version { version, round: at } => Tag::Version { version, round: round(at) },
            Self::Copy { version } => Tag::Copy { version },
            Self::GroupMean { round: at, parts, own } => {
                Tag::GroupMean { round: round(at), parts, own: own.map(round) }
            }
        }
    }
}

#[derive(Arbitrary, Debug)]
struct Slice {
    round: u8,
    fragment: u16,
    shard: u16,
    aggregate: bool,
    origin: u8,
    attempt: u8,
}

/// Work that the peer waits for.
enum Open {
    Order(OrderId, Order),
    Push(PeerId, SliceId),
    Fetch(FetchId),
}

fn peer(id: u8) -> PeerId {
    PeerId::from_bytes([id % 8 + 1; 32])
}

fn exchange(which: u8) -> ExchangeKind {
    let owners = u16::from(which / 12 % 3) + 1;
    match which % 12 {
        0 => ExchangeKind::None,
        1 => ExchangeKind::Gossip,
        2 => ExchangeKind::Push,
        3 => ExchangeKind::Replicas,
        4 => ExchangeKind::Pairs,
        5 => ExchangeKind::Gathered,
        6 => ExchangeKind::Server(ServerPlan { owners }),
        7 => ExchangeKind::Center(CenterPlan { owners, lead: (owners > 1).then_some(LeadPlan { least: 2, most: 5 }), buffer: owners }),
        8 => {
            let bounds = PullPlan { staleness: u32::from(owners), sync_every: 3, ..PullPlan::FREE };
            match owners {
                1 => ExchangeKind::Pull(bounds),
                2 => ExchangeKind::PullBy(bounds, PullAnswers::OfTheRound),
                _ => ExchangeKind::PullBy(bounds, PullAnswers::GroupMean),
            }
        }
        9 => ExchangeKind::RelaySum,
        10 => ExchangeKind::Differences(CopyPlan::Parameters),
        _ => ExchangeKind::AllReduce,
    }
}

/// The exchange of a grid, whose peer opens with a roll of all peers.
fn is_grid(which: u8) -> bool {
    which % 12 == 11 && which >= 128
}

fn plan(exchange: ExchangeKind, fragments: u8) -> Plan {
    let bound = BytesBound { fixed: 8, per_1024: 4096 };
    let fragment = FragmentPlan { len: 10, contribution: bound, aggregate: bound };
    Plan {
        run: RunId::from_bytes([1; 32]),
        layout: LayoutHash::from_bytes([2; 32]),
        recipe: Digest::from_bytes([3; 32]),
        exchange,
        schedule: match fragments / 4 % 8 {
            _ if exchange != ExchangeKind::AllReduce => Schedule::Butterfly,
            1 => Schedule::Ring,
            2 => Schedule::RecursiveDoubling,
            3 => Schedule::HalvingDoubling,
            4 => Schedule::BinaryTree,
            5 => Schedule::DoubleTree,
            6 => Schedule::Torus,
            7 => Schedule::Hierarchical { island: 2 },
            _ => Schedule::Butterfly,
        },
        contribution: match exchange.has_neighbours() {
            true => Contribution::Parameters,
            false => Contribution::Delta,
        },
        budget: StepBudget::Steps(1),
        synchronization: Synchronization::default(),
        rounds: 0,
        fragments: vec![fragment; usize::from(fragments % 4) + 1],
        overlap: murmurate_protocol::OverlapPlan::NONE,
        deadlines: DeadlinePlan::default(),
        state_bytes: 1000,
        agreement: murmurate_protocol::AgreementPlan::default(),
    }
}

/// A roll of this peer and the seven others.
fn roll(plan: &Plan) -> Roll {
    let record = |id| wire::PeerRecord::from(wire::RecordFields {
        peer: id,
        run: plan.run,
        sequence: 0,
        expires: Time::NEVER,
        addresses: Vec::new(),
        locality: murmurate_protocol::Locality::default(),
        signature: vec![7; 64],
    });
    Roll::found([PeerId::from_bytes([200; 32])].into_iter().chain((0..7).map(peer)).map(record), 2, Round(0))
}

/// An Executor's answer; `None` if the order has no answer.
fn answer(order: &Order, well: bool, fragments: usize) -> Option<Done> {
    let digest = Digest::of(b"some bits");
    if matches!(order, Order::Settle { .. } | Order::Release { .. } | Order::Forget(_)) {
        return None;
    }
    if !well {
        let reason = "no".to_owned();
        return Some(Done::Failed(match (order, order.inputs().first()) {
            (_, Some(slice)) => WorkError::BadSlice { slice: *slice, origin: slice.origin, reason },
            (Order::Load { .. }, _) => WorkError::BadState { reason },
            (Order::Save { .. }, _) => WorkError::Storage { reason },
            _ => WorkError::Training { reason },
        }));
    }
    Some(match order {
        Order::Train { .. } => {
            Done::Trained(TrainSummary { steps: 1, samples: 8, ..TrainSummary::default() })
        }
        Order::Encode { slice, from, .. } => {
            let voted = match from {
                Source::Joined { .. } | Source::Bundle { .. } | Source::Bytes(_) => true,
                Source::Basis(_) | Source::Second { .. } => false,
                _ => slice.part == Part::Aggregate,
            };
            Done::Encoded { bytes: 48, digest: voted.then_some(digest) }
        }
        Order::Combine { .. } | Order::Stage { .. } => Done::Combined,
        Order::Measure { .. } => Done::Measured { loss: 1.0 },
        Order::Read { .. } => Done::Read { bytes: Vec::new() },
        Order::Evaluate { .. } => Done::Evaluated(murmurate_protocol::Evaluation::default()),
        Order::Save { .. } => Done::Saved,
        Order::Pin { round, .. } => {
            Done::Pinned(StateId { round: *round, root: digest, bytes: 9 })
        }
        Order::Load { .. } => Done::Loaded { digests: vec![digest; fragments], note: Vec::new() },
        _ => Done::Applied { digest, note: Vec::new() },
    })
}

/// The input that ends an open piece of work.
fn end(open: Open, well: bool, fragments: usize) -> Option<Input> {
    let digest = Some(Digest::of(b"some bits"));
    Some(match open {
        Open::Order(order, what) => Input::Done { order, done: answer(&what, well, fragments)? },
        Open::Push(to, slice) => {
            let outcome = if well { PushOutcome::Delivered } else { PushOutcome::Unknown };
            Input::Pushed { to, slice, outcome }
        }
        Open::Fetch(what) if well => Input::Fetched { what, meta: None, digest },
        Open::Fetch(what) => Input::FetchFailed { what },
    })
}

fn input(step: Step<'_>, open: &mut Vec<Open>, fragments: usize) -> Option<Input> {
    Some(match step {
        Step::LinkUp(id) => Input::LinkUp(peer(id)),
        // The ids above name the same peers once more.
        Step::LinkDown(id @ 192..) => Input::Observes(peer(id)),
        Step::LinkDown(id) => Input::LinkDown(peer(id)),
        Step::Frame { from, bytes } => match wire::decode(bytes) {
            Ok(message) => Input::Received { from: peer(from), message },
            Err(error) => Input::Malformed { from: peer(from), error },
        },
        Step::Arrived { from, slice, of, tag } => {
            let part = match (slice.aggregate, slice.attempt % 4) {
                _ if matches!(tag, AnyTag::RowMean { .. }) => Part::RowMean,
                _ if matches!(tag, AnyTag::Result { .. }) => Part::Bundle,
                (true, 0..2) => Part::Aggregate,
                (true, 2) => Part::Basis,
                (true, _) => Part::Scores,
                (false, 0) => Part::Contribution,
                (false, 2) => Part::Second,
                (false, _) => Part::Partial,
            };
            let name = SliceId {
                round: Round(u64::from(slice.round)),
                fragment: FragmentId(slice.fragment % 8),
                shard: slice.shard,
                part,
                origin: peer(slice.origin),
                attempt: Attempt(slice.attempt),
            };
            let tag = tag.tag();
            let digest = part.is_decided().then(|| Digest::of(format!("{tag:?}").as_bytes()));
            let meta = SliceMeta { of, bytes: 48, tag };
            Input::Arrived { from: peer(from), slice: name, meta, digest }
        }
        Step::End { which, well } if !open.is_empty() => {
            let which = usize::from(which) % open.len();
            end(open.remove(which), well, fragments)?
        }
        Step::Measured { peer: id, rtt_ms, rate } => {
            let rtt = Duration::from_millis(u64::from(rtt_ms));
            Input::Measured { peer: peer(id), rtt, rate }
        }
        Step::Pass { .. } | Step::End { .. } => Input::Timeout,
        Step::Leave => Input::Leave,
    })
}

fuzz_target!(|case: Case<'_>| {
    let exchange = exchange(case.exchange);
    let mut plan = plan(exchange, case.fragments);
    if is_grid(case.exchange) {
        plan.schedule = Schedule::Butterfly;
        plan.agreement.grouping = Grouping::Grid { row: 2 };
    }
    let snapshot = is_grid(case.exchange).then(|| Snapshot {
        version: SNAPSHOT_VERSION,
        plan: plan.hash(),
        round: Round(0),
        weights: vec![1.0; plan.fragments.len()],
        ahead: None,
        ledger: Vec::new(),
        roll: roll(&plan).to_bytes(),
        split: None,
        seats: Vec::new(),
    });
    let fragments = plan.fragments.len();
    let config = PeerConfig {
        me: PeerId::from_bytes([200; 32]),
        seed: 7,
        start_with: usize::from(case.start_with % 4) + 1,
        companions: usize::from(case.start_with / 4 % 4),
        start_wait: Duration::from_secs(5),
        join: case.join,
        save_every: Some(Duration::from_secs(10)),
        evaluate_every: 2,
        evaluate_percent: 0,
        leave_when_finished: false,
        pool: None,
        masked: None,
    };
    let topology = exchange.has_neighbours().then(|| TopologyKind::all()[0].build(7));
    let mut subject = Peer::new(config, plan, topology);
    let mut now = Time::from_nanos(1);
    let mut open = Vec::new();
    let start = Input::Start { snapshot, digests: vec![Digest::of(b"anchor"); fragments], opened: Vec::new() };
    let mut next = Some(start);
    for step in case.steps.into_iter().take(INPUTS_MAX) {
        if let Some(input) = next.take() {
            // An error means that a remote violated the protocol; the peer continues.
            let _ = subject.handle(now, input);
        }
        let mut outputs = 0;
        while let Some(output) = subject.poll_output() {
            outputs += 1;
            assert!(outputs <= OUTPUTS_MAX, "one input brings out too much");
            match output {
                Output::Order { id, order } => open.push(Open::Order(id, order)),
                Output::Push { to, slice, .. } => open.push(Open::Push(to, slice)),
                Output::Fetch { what, .. } => open.push(Open::Fetch(what)),
                Output::Left => return,
                _ => {}
            }
        }
        if let Step::Pass { ms } = step {
            now = now + Duration::from_millis(u64::from(ms));
        }
        next = input(step, &mut open, fragments);
    }
});
