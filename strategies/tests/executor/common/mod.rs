//! Real peers and real Executors joined by a tiny network in memory: messages and bytes move at
//! once, in an order drawn from a seed. What crosses the seam is written down for the tests.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    unused_imports,
    clippy::unwrap_used,
    reason = "helpers of tests; every test file uses its own part of them"
)]

pub mod check;
pub mod decode;
pub mod orders;
mod resting;
pub mod store;

pub use crate::numbers::spectrum::mixing_matrix;
pub use crate::numbers::{gradient, near, quadratics, relative, wide};
use bytes::Bytes;
pub use check::{ended_alike, off_optimum, refused_key, same_bits};
use murmurate_protocol::limits::RECORD_LIFETIME;
use murmurate_protocol::wire::{PeerRecord, RecordFields};
use murmurate_protocol::{
    Digest, Done, Ending, Event, FetchId, FragmentId, Input, Order, OrderId, Output, Part, Peer,
    PeerConfig, PeerError, PeerId, Plan, PushOutcome, Round, RunId, SliceId, SliceMeta, Source,
    Tag, Time, Unneeded,
};
use murmurate_strategies::executor::{Executor, Parts, Secrets};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::slices::SliceStore;
use murmurate_strategies::state::{MemoryState, StateSource};
use murmurate_strategies::toy::ToyTask;
use murmurate_strategies::{Gate, Layout, StepControl, TrainError, TrainReport, Trainer, Visit};
pub use resting::Resting;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{Still, Store};

/// What a trainer leaves to the one in its field: all but its layout, its training and what it has of its own.
/// `at hand` adds the gradients, and whether its parameters are at hand.
macro_rules! forward_trainer {
    ($field:tt at hand) => {
        crate::common::forward_trainer!($field);

        fn gradients(
            &mut self,
            on_ready: murmurate_strategies::Visit<'_>,
        ) -> Result<murmurate_strategies::TrainReport, murmurate_strategies::TrainError> {
            self.$field.gradients(on_ready)
        }

        fn is_at_hand(&self) -> bool {
            self.$field.is_at_hand()
        }
    };
    ($field:tt) => {
        fn batch(&self) -> u64 {
            self.$field.batch()
        }

        fn visit(&mut self, range: std::ops::Range<usize>, f: murmurate_strategies::Visit<'_>) {
            self.$field.visit(range, f);
        }

        fn evaluate(
            &mut self,
        ) -> Result<murmurate_protocol::Evaluation, murmurate_strategies::TrainError> {
            self.$field.evaluate()
        }

        fn save(
            &mut self,
            sink: &mut dyn murmurate_strategies::state::StateSink,
        ) -> Result<(), murmurate_strategies::state::StateError> {
            self.$field.save(sink)
        }

        fn load(
            &mut self,
            source: &dyn murmurate_strategies::state::StateSource,
        ) -> Result<(), murmurate_strategies::state::StateError> {
            self.$field.load(source)
        }
    };
}
pub(crate) use forward_trainer;

/// A trainer of the values in its field that has nothing to evaluate or to save.
macro_rules! bare_trainer {
    ($field:ident) => {
        fn layout(&self) -> &murmurate_strategies::Layout {
            &self.layout
        }

        fn batch(&self) -> u64 {
            1
        }

        fn visit(&mut self, range: std::ops::Range<usize>, f: murmurate_strategies::Visit<'_>) {
            f(range.start, &mut self.$field[range]);
        }

        fn evaluate(
            &mut self,
        ) -> Result<murmurate_protocol::Evaluation, murmurate_strategies::TrainError> {
            Ok(murmurate_protocol::Evaluation::default())
        }

        fn save(
            &mut self,
            _: &mut dyn murmurate_strategies::state::StateSink,
        ) -> Result<(), murmurate_strategies::state::StateError> {
            Ok(())
        }

        fn load(
            &mut self,
            _: &dyn murmurate_strategies::state::StateSource,
        ) -> Result<(), murmurate_strategies::state::StateError> {
            Ok(())
        }
    };
}
pub(crate) use bare_trainer;

/// A trainer for one of the members.
pub type Make = Box<dyn Fn(usize) -> Box<dyn Trainer>>;

/// Whether a member dies just before an output of its own takes effect.
pub type Fatal = Box<dyn FnMut(PeerId, Round, &Output) -> bool>;

pub fn peer(index: usize) -> PeerId {
    PeerId::from_bytes([index as u8 + 1; 32])
}

/// A quadratic without noise.
pub fn quadratic(dim: usize, heterogeneity: f64, inner: InnerKind) -> ToyTask {
    ToyTask::Quadratic {
        dim,
        heterogeneity,
        noise: 0.0,
        inner,
    }
}

/// The fate of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Delivered,
    /// It does not arrive, and its sender knows.
    Lost,
    /// It arrives, and its sender never knows.
    Unheard,
    /// It does not arrive, and its sender never knows.
    Vanished,
}

/// What the inner steps of a round take; all else takes no time.
const TRAINING: Duration = Duration::from_secs(1);

/// What is on a link.
enum Item {
    Input(Input),
    Slice {
        slice: SliceId,
        meta: SliceMeta,
        bytes: Bytes,
    },
}

pub struct Member {
    pub peer: Peer,
    pub executor: Executor,
    pub store: Store,
    pub events: Vec<Event>,
    /// Parameters after training, round by round, and the anchor that training began from.
    pub trained: Arc<Mutex<Vec<f32>>>,
    pub deltas: BTreeMap<Round, Vec<f64>>,
    /// Digest at the end of every round that it took part in.
    pub digests: BTreeMap<Round, Digest>,
    /// What error feedback keeps when a round's training begins.
    pub residuals: BTreeMap<Round, Vec<f32>>,
    /// The anchor after every round.
    pub anchors: BTreeMap<Round, Vec<f32>>,
    /// Forward passes that began before their round.
    pub forwards: Arc<Mutex<Forwards>>,
    /// One that waits for fragments.
    waiting: Option<(OrderId, Order)>,
}

/// How many forward passes were computed ahead, and how many of them were dropped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forwards {
    pub computed: u64,
    pub dropped: u64,
}

/// Keeps a copy of what training left.
struct Watched {
    inner: Box<dyn Trainer>,
    last: Arc<Mutex<Vec<f32>>>,
    forwards: Arc<Mutex<Forwards>>,
    begun: bool,
}

impl Trainer for Watched {
    fn layout(&self) -> &Layout {
        self.inner.layout()
    }

    fn holds_a_sample(&self) -> bool {
        self.inner.holds_a_sample()
    }

    fn held_loss(&mut self, round: Round, batches: u16) -> Result<f64, TrainError> {
        self.inner.held_loss(round, batches)
    }

    fn steps(&mut self, control: &mut dyn StepControl) -> Result<TrainReport, TrainError> {
        let report = self.inner.steps(control)?;
        let mut all = Vec::new();
        let len = self.inner.layout().len();
        self.inner
            .visit(0..len, &mut |_, piece| all.extend_from_slice(piece));
        *self.last.lock().unwrap() = all;
        Ok(report)
    }

    forward_trainer!(inner);

    fn gradients(&mut self, on_ready: Visit<'_>) -> Result<TrainReport, TrainError> {
        self.begun = false;
        self.inner.gradients(on_ready)
    }

    fn forward(&mut self, gate: &Arc<dyn Gate>) -> Result<bool, TrainError> {
        self.begun = self.inner.forward(gate)?;
        self.forwards.lock().unwrap().computed += u64::from(self.begun);
        Ok(self.begun)
    }

    fn drop_forward(&mut self) {
        self.forwards.lock().unwrap().dropped += u64::from(std::mem::take(&mut self.begun));
        self.inner.drop_forward();
    }

    fn is_at_hand(&self) -> bool {
        self.inner.is_at_hand()
    }
}

/// Secrets of the peer with this id: those of a pair follow from their ids.
pub fn secrets(noise: u8, me: PeerId) -> Secrets {
    let named = move |other: PeerId| [me.min(other), me.max(other)].map(|id| *id.as_bytes());
    Secrets {
        noise: [noise; 32],
        pairs: Box::new(move |other| Some(*Digest::of(named(other).as_flattened()).as_bytes())),
        masked: None,
    }
}

/// A draw from a seed: the splitmix64 sequence.
pub struct Draw(pub u64);

impl Draw {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// What a decided fragment of a round was made of, as the members stated it: for every shard who
/// contributed and with which weight.
pub type Stated = Vec<Vec<(PeerId, f64)>>;

pub struct Swarm {
    pub strategy: Strategy,
    pub plan: Plan,
    pub members: BTreeMap<PeerId, Member>,
    pub now: Time,
    pub fatal: Fatal,
    /// The fate of a slice's push.
    pub fate: Box<dyn FnMut(&SliceId) -> Fate>,
    pub dead: Vec<PeerId>,
    /// The last push of each exchange between two: sender, receiver, session, number.
    pub pushes: BTreeMap<(PeerId, PeerId, u64, u64), (SliceId, SliceMeta)>,
    /// Every slice that was ever encoded.
    pub encoded: BTreeMap<SliceId, Bytes>,
    pub stated: BTreeMap<(Round, FragmentId), Stated>,
    pub applied: BTreeMap<(Round, FragmentId), Vec<SliceId>>,
    pub initial: Vec<f32>,
    layout: Layout,
    make: Make,
    start_with: usize,
    links: BTreeMap<(PeerId, PeerId), VecDeque<(u64, Item)>>,
    sent: u64,
    /// A member whose training takes three times as long.
    pub slow: Option<PeerId>,
    /// Training that ends later.
    training: BTreeMap<(Time, u64), (PeerId, Input)>,
    /// Draws the link that moves next; without it everything moves in the order it was sent.
    pub shuffle: Option<Draw>,
    /// Slices may be read once by each order that applies a round.
    pub once: bool,
}

impl Swarm {
    /// Members that train a task, whose data are drawn by the last seed.
    pub fn training(text: &str, task: ToyTask, count: usize, [seed, data]: [u64; 2]) -> Self {
        let make = Box::new(move |index| task.build(index, count, data));
        Self::new(text, count, seed, make)
    }

    /// Members that begin together, all linked with each other. With seed 0 everything moves in
    /// the order it was sent, else links take turns as drawn.
    pub fn new(strategy: &str, count: usize, seed: u64, make: Make) -> Self {
        let strategy: Strategy = strategy.parse().unwrap();
        let mut first = make(0);
        let layout = first.layout().clone();
        let mut initial = Vec::new();
        first.visit(0..layout.len(), &mut |_, piece| {
            initial.extend_from_slice(piece)
        });
        // Some schedules of the learning rate need an end.
        let plan = strategy
            .plan(RunId::from_bytes([9; 32]), &layout, 1 << 20)
            .unwrap();
        let mut swarm = Self {
            strategy,
            plan,
            members: BTreeMap::new(),
            now: Time::from_nanos(1),
            fatal: Box::new(|_, _, _| false),
            fate: Box::new(|_| Fate::Delivered),
            dead: Vec::new(),
            pushes: BTreeMap::new(),
            encoded: BTreeMap::new(),
            stated: BTreeMap::new(),
            applied: BTreeMap::new(),
            initial,
            layout,
            make,
            start_with: count,
            links: BTreeMap::new(),
            sent: 0,
            slow: None,
            training: BTreeMap::new(),
            shuffle: (seed != 0).then_some(Draw(seed)),
            once: false,
        };
        (0..count).for_each(|index| swarm.add(index, false));
        swarm
    }

    /// Starts a member and links it with all others.
    pub fn add(&mut self, index: usize, join: bool) {
        let me = peer(index);
        let trained = Arc::new(Mutex::new(Vec::new()));
        let forwards = Arc::new(Mutex::new(Forwards::default()));
        let trainer = Box::new(Watched {
            inner: (self.make)(index),
            last: Arc::clone(&trained),
            forwards: Arc::clone(&forwards),
            begun: false,
        });
        let len = self.initial.len();
        let mut parts = Parts::new(&self.strategy, &self.plan, len);
        parts.hidden.secrets = Some(secrets(index as u8, me));
        let executor = Executor::new(trainer, parts, Box::new(Still));
        let config = PeerConfig {
            me,
            seed: 7,
            start_with: self.start_with,
            companions: 0,
            start_wait: Duration::from_secs(30),
            join,
            save_every: None,
            evaluate_every: 0,
            evaluate_percent: 0,
            leave_when_finished: false,
            pool: None,
            masked: None,
        };
        let digests = executor.digests();
        let member = Member {
            peer: Peer::new(config, self.plan.clone(), self.strategy.topology(7)),
            executor,
            store: Store::default(),
            events: Vec::new(),
            trained,
            deltas: BTreeMap::new(),
            digests: BTreeMap::new(),
            residuals: BTreeMap::new(),
            anchors: BTreeMap::new(),
            forwards,
            waiting: None,
        };
        let others: Vec<PeerId> = self.members.keys().copied().collect();
        self.members.insert(me, member);
        let snapshot = None;
        self.feed(
            me,
            Input::Start {
                snapshot,
                digests,
                opened: Vec::new(),
            },
        );
        if self.plan.agreement.grouping.has_roll() {
            // The peers of the first roll are known by their records.
            let record = PeerRecord::from(RecordFields {
                peer: me,
                run: self.plan.run,
                sequence: 0,
                expires: Time::ZERO + RECORD_LIFETIME,
                addresses: Vec::new(),
                signature: Vec::new(),
                locality: murmurate_protocol::Locality::default(),
            });
            self.tell(me, me, Input::Record(record));
        }
        for other in others {
            self.tell(other, me, Input::LinkUp(other));
            self.tell(me, other, Input::LinkUp(me));
        }
    }

    fn tell(&mut self, from: PeerId, to: PeerId, input: Input) {
        self.put(from, to, Item::Input(input));
    }

    fn put(&mut self, from: PeerId, to: PeerId, item: Item) {
        self.sent += 1;
        let link = self.links.entry((from, to)).or_default();
        link.push_back((self.sent, item));
    }

    /// Ends a member at once; pushes on their way to it have an unknown fate.
    pub fn kill(&mut self, victim: PeerId) {
        self.members.remove(&victim);
        self.dead.push(victim);
        let mut lost = Vec::new();
        for ((from, to), items) in &mut self.links {
            if *to != victim {
                continue;
            }
            for (_, item) in items.drain(..) {
                if let Item::Slice { slice, .. } = item {
                    lost.push((*from, slice));
                }
            }
        }
        for (from, slice) in lost {
            let outcome = PushOutcome::Unknown;
            self.tell(
                from,
                from,
                Input::Pushed {
                    to: victim,
                    slice,
                    outcome,
                },
            );
        }
        let others: Vec<PeerId> = self.members.keys().copied().collect();
        for to in others {
            self.tell(victim, to, Input::LinkDown(victim));
        }
    }

    /// Runs until every member has ended this many rounds.
    pub fn run(&mut self, rounds: u64) {
        self.run_until(|swarm| swarm.members.values().all(|m| m.peer.round().0 >= rounds));
    }

    /// The same for many rounds, in stretches: what happens in one is bounded.
    pub fn run_long(&mut self, rounds: u64) {
        let from = self.rounds().into_iter().max().unwrap_or(0);
        let stops = (from..from + rounds).step_by(40).skip(1);
        stops.for_each(|at| self.run(at));
        self.run(from + rounds);
    }

    /// Runs until `done`, for ten minutes of virtual time at most.
    pub fn run_until(&mut self, mut done: impl FnMut(&Self) -> bool) {
        let limit = self.now + Duration::from_secs(600);
        while !done(self) {
            assert!(self.now < limit, "stuck: {:?}", self.rounds());
            let heads = self.links.iter().filter_map(|(link, items)| {
                let (sent, _) = items.front()?;
                Some((*sent, *link))
            });
            let mut heads: Vec<_> = heads.collect();
            heads.sort_unstable();
            if heads.is_empty() {
                self.let_time_pass();
                continue;
            }
            let next = self
                .shuffle
                .as_mut()
                .map_or(0, |draw| draw.below(heads.len()));
            let link = heads[next].1;
            let item = self.links.get_mut(&link).and_then(VecDeque::pop_front);
            self.deliver(link.0, link.1, item.expect("a busy link").1);
        }
    }

    pub fn rounds(&self) -> Vec<u64> {
        self.members.values().map(|m| m.peer.round().0).collect()
    }

    fn let_time_pass(&mut self) {
        let next = self.members.values().filter_map(|m| m.peer.poll_timeout());
        let next = next.min().expect("a peer always has a deadline");
        let ends = self.training.first_key_value().map(|((end, _), _)| *end);
        self.now = self.now.max(ends.map_or(next, |end| end.min(next)));
        while let Some(first) = self.training.first_entry()
            && first.key().0 <= self.now
        {
            let (who, done) = first.remove();
            self.tell(who, who, done);
        }
        let all: Vec<PeerId> = self.members.keys().copied().collect();
        all.into_iter()
            .for_each(|to| self.tell(to, to, Input::Timeout));
    }

    fn deliver(&mut self, from: PeerId, to: PeerId, item: Item) {
        let input = match item {
            Item::Input(input) => input,
            Item::Slice { slice, meta, bytes } => {
                let fate = (self.fate)(&slice);
                let outcome = match (self.members.get(&to), fate) {
                    (None, _) | (_, Fate::Lost) => PushOutcome::Lost,
                    (_, Fate::Delivered) => PushOutcome::Delivered,
                    (_, Fate::Unheard | Fate::Vanished) => PushOutcome::Unknown,
                };
                self.tell(from, from, Input::Pushed { to, slice, outcome });
                if matches!(fate, Fate::Lost | Fate::Vanished) {
                    return;
                }
                let Some(member) = self.members.get(&to) else {
                    return;
                };
                let digest = slice.part.is_decided().then(|| Digest::of(&bytes));
                member.store.headers.borrow_mut().insert(slice, meta);
                member.store.put(slice, bytes);
                Input::Arrived {
                    from,
                    slice,
                    meta,
                    digest,
                }
            }
        };
        self.feed(to, input);
    }

    fn feed(&mut self, to: PeerId, input: Input) {
        let Some(member) = self.members.get_mut(&to) else {
            return;
        };
        let result: Result<(), PeerError> = member.peer.handle(self.now, input);
        result.unwrap_or_else(|error| panic!("{to:?}: no peer breaks a rule here: {error}"));
        while let Some(member) = self.members.get_mut(&to) {
            let Some(output) = member.peer.poll_output() else {
                break;
            };
            let round = member.peer.round();
            if (self.fatal)(to, round, &output) {
                self.kill(to);
                break;
            }
            self.perform(to, output);
        }
    }

    fn perform(&mut self, who: PeerId, output: Output) {
        match output {
            Output::Send { to, message } => {
                self.tell(who, to, Input::Received { from: who, message });
            }
            Output::Push {
                to, slice, meta, ..
            } => {
                let store = &self.members[&who].store;
                let bytes = store.get(&slice).expect("what is pushed is here");
                assert_eq!(bytes.len() as u64, meta.bytes, "the header says how long");
                store.headers.borrow_mut().insert(slice, meta);
                if let Tag::Half {
                    session, exchange, ..
                } = meta.tag
                {
                    let exchange = (who, to, u64::from(session), u64::from(exchange));
                    self.pushes.insert(exchange, (slice, meta));
                }
                self.put(who, to, Item::Slice { slice, meta, bytes });
            }
            Output::Fetch { what, from, .. } => self.fetch(who, what, &from),
            Output::Order { id, order } if order.begins_forward() => {
                let member = self.members.get_mut(&who).expect("it spoke");
                member.waiting = Some((id, order));
                self.go_forward(who, false);
            }
            Output::Order { id, order } => {
                let (done, cuts) = self.order(who, &order);
                self.cut(who, id, cuts);
                if let Some(done) = done {
                    let input = Input::Done { order: id, done };
                    if matches!(order, Order::Train { .. }) {
                        self.sent += 1;
                        let end = self.now + self.training_of(who);
                        self.training.insert((end, self.sent), (who, input));
                    } else {
                        self.tell(who, who, input);
                    }
                }
                self.go_forward(who, matches!(order, Order::Forget(Unneeded::Forward(_))));
            }
            Output::Emit(event) => self.note(who, event),
            Output::Disconnect { peer, reason } => panic!("{who:?} left {peer:?}: {reason:?}"),
            Output::Cancel { .. }
            | Output::Interrupt
            | Output::Dial(_)
            | Output::Left
            | Output::Opened(_)
            | Output::Prove(_) => {}
        }
    }

    fn training_of(&self, who: PeerId) -> Duration {
        TRAINING * if self.slow == Some(who) { 3 } else { 1 }
    }

    /// Whether a member's forward pass waits for fragments.
    pub fn waits_in_forward(&self, who: PeerId) -> bool {
        self.members[&who].waiting.is_some()
    }

    /// Performs a forward pass that waits for fragments, once it has them or is given up.
    fn go_forward(&mut self, who: PeerId, given_up: bool) {
        let member = self.members.get_mut(&who).expect("it spoke");
        if !member.executor.forward_is_ready() && !given_up {
            return;
        }
        let Some((order, forward)) = member.waiting.take() else {
            return;
        };
        let done = member.executor.perform(&forward, &member.store);
        let done = done.expect("training is answered");
        self.sent += 1;
        let input = Input::Done { order, done };
        let end = self.now + TRAINING / 3;
        self.training.insert((end, self.sent), (who, input));
    }

    /// What left under the backward pass, spread over the time that training takes.
    fn cut(&mut self, who: PeerId, order: OrderId, cuts: Vec<(FragmentId, u64)>) {
        let apart = self.training_of(who) / (cuts.len() as u32 + 1);
        for (at, (fragment, samples)) in (1..).zip(cuts) {
            self.sent += 1;
            let input = Input::Cut {
                order,
                fragment,
                samples,
            };
            let when = self.now + apart * at;
            self.training.insert((when, self.sent), (who, input));
        }
    }

    fn order(&mut self, who: PeerId, order: &Order) -> (Option<Done>, Vec<(FragmentId, u64)>) {
        let mut cuts = Vec::new();
        let Some(member) = self.members.get_mut(&who) else {
            return (None, cuts);
        };
        if let Order::Train { round, .. } = order {
            let kept = residual(&mut member.executor);
            member.residuals.insert(*round, kept);
        }
        let mut on_cut = |fragment, samples| cuts.push((fragment, samples));
        let executor = &mut member.executor;
        let once = self.once && matches!(order, Order::Apply { .. });
        member.store.once.set(once);
        let done = executor.perform_cutting(order, &member.store, &mut on_cut);
        member.store.once.set(false);
        member.store.read.borrow_mut().clear();
        if let Some(Done::Failed(error)) = &done {
            panic!("{who:?}: {order:?}: {error}");
        }
        match order {
            Order::Train { round, .. } => {
                let anchor = member.executor.anchor();
                let after = member.trained.lock().unwrap();
                let pairs = after.iter().zip(anchor);
                let delta = pairs.map(|(x, a)| f64::from(*x) - f64::from(*a)).collect();
                member.deltas.insert(*round, delta);
            }
            Order::Encode {
                slice,
                from: Source::Store(_) | Source::Relayed(_) | Source::Masked(_),
                ..
            } => {
                let bytes = member.store.get(slice).expect("it was encoded");
                let before = self.encoded.insert(*slice, bytes);
                assert_eq!(before, None, "{slice:?} is encoded once");
            }
            Order::Apply {
                round,
                fragment,
                ending: Ending::Apply(aggregates),
                ..
            } if self.plan.exchange.agrees() => {
                let name = (*round, *fragment);
                let applied = self
                    .applied
                    .entry(name)
                    .or_insert_with(|| aggregates.clone());
                assert_eq!(applied, aggregates, "all apply the same slices");
            }
            _ => {}
        }
        (done, cuts)
    }

    fn note(&mut self, who: PeerId, event: Event) {
        if let Event::Decided {
            round,
            fragment,
            contributors,
            ..
        } = &event
        {
            let name = (*round, *fragment);
            let stated = self
                .stated
                .entry(name)
                .or_insert_with(|| contributors.clone());
            assert_eq!(stated, contributors, "all state the same set");
        }
        let member = self.members.get_mut(&who).expect("it spoke");
        if let Event::RoundEnded { round, digest, .. } = &event {
            member.digests.insert(*round, *digest);
            let anchor = member.executor.anchor().to_vec();
            member.anchors.insert(*round, anchor);
        }
        member.events.push(event);
    }

    fn fetch(&mut self, who: PeerId, what: FetchId, from: &[PeerId]) {
        let holders = || from.iter().filter_map(|id| self.members.get(id));
        let found = match what {
            FetchId::Slice(slice) => holders().find_map(|m| {
                let meta = m.store.headers.borrow().get(&slice).copied();
                Some((meta, m.store.get(&slice)?))
            }),
            FetchId::State(state) => holders()
                .find_map(|m| m.store.states.borrow().get(&state).cloned())
                .map(|bytes| (None, bytes)),
        };
        let Some((meta, bytes)) = found else {
            return self.tell(who, who, Input::FetchFailed { what });
        };
        let digest = match what {
            FetchId::Slice(slice) => {
                let digest = slice.part.is_decided().then(|| Digest::of(&bytes));
                let store = &self.members[&who].store;
                if let Some(meta) = meta {
                    store.headers.borrow_mut().insert(slice, meta);
                }
                store.put(slice, bytes);
                digest
            }
            FetchId::State(state) => {
                let store = &self.members[&who].store;
                store.states.borrow_mut().insert(state, bytes);
                None
            }
        };
        self.tell(who, who, Input::Fetched { what, meta, digest });
    }

    /// Rounds without a result for a member.
    pub fn voided(&self, who: PeerId) -> Vec<Round> {
        let events = self.members[&who].events.iter();
        let round = |e: &Event| match e {
            Event::Voided { round, .. } => Some(*round),
            _ => None,
        };
        events.filter_map(round).collect()
    }

    /// A member's residual after some rounds; zeros without error feedback.
    pub fn residual(&mut self, who: PeerId, rounds: u64) -> Vec<f32> {
        let member = self.members.get_mut(&who).unwrap();
        let kept = member.residuals.get(&Round(rounds)).cloned();
        kept.unwrap_or_else(|| residual(&mut member.executor))
    }

    /// Where a shard lies: `of` cuts of the fragment whose lengths differ by at most one.
    pub fn shard(&self, fragment: FragmentId, shard: usize, of: usize) -> std::ops::Range<usize> {
        let whole = self.strategy.fragments(&self.layout)[usize::from(fragment.0)].clone();
        let at = |i: usize| whole.start + whole.len() * i / of;
        at(shard)..at(shard + 1)
    }

    /// What one member contributed to a shard of a round, decoded.
    pub fn contribution(&self, from: PeerId, aggregate: &SliceId, len: usize) -> Vec<f64> {
        let mut own = self.encoded.iter().filter(|(s, _)| {
            s.part == Part::Contribution
                && s.origin == from
                && (s.round, s.fragment, s.shard)
                    == (aggregate.round, aggregate.fragment, aggregate.shard)
        });
        let (_, bytes) = own
            .next()
            .expect("who is in the stated set has contributed");
        assert!(own.next().is_none(), "one contribution a shard and round");
        decode::decode(bytes, len)
    }
}

/// What an Executor's error feedback keeps; zeros where it has none.
fn residual(executor: &mut Executor) -> Vec<f32> {
    let mut state = MemoryState::default();
    let mut residual = vec![0.0; executor.anchor().len()];
    executor.save(&mut state).unwrap();
    if state.contains("residual") {
        state.tensor("residual", &mut residual).unwrap();
    }
    residual
}
