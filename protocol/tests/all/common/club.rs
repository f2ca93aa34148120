//! A club of peers on a perfect network. Their Executors keep the names of what is encoded, pushed,
//! fetched, applied and released, but no tensors.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::type_complexity,
    reason = "every test file uses its own part of it"
)]

use super::{BinaryTree, config, peer, plan, record};
use core::time::Duration;
use murmurate_protocol::record::{Framer, RecordHeader, Recorder};
use murmurate_protocol::wire::{Message, PeerRecord, RecordFields};
use murmurate_protocol::{
    Combination, Digest, Done, Ending, Evaluation, Event, ExchangeKind, FetchId, FragmentId, Input,
    Locality, Order, Output, Part, Passes, Peer, PeerError, PeerId, Phase, Piece, Plan,
    PushOutcome, Round, Schedule, ServerPlan, SliceId, Source, StateId, StepBudget, StoreId, Time,
    TrainSummary, WorkError,
};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// What the network does with a push, decided by sender, receiver and slice.
pub(crate) type Fate = Box<dyn FnMut(PeerId, PeerId, &SliceId) -> Option<PushOutcome>>;

/// One member: its peer, and what its Executor would hold.
pub(crate) struct Member {
    pub(crate) peer: Peer,
    pub(crate) anchor: Digest,
    pub(crate) store: BTreeMap<SliceId, Digest>,
    pub(crate) events: Vec<Event>,
    pub(crate) broken: Vec<PeerError>,
    /// The inputs of its reductions.
    shards: BTreeMap<(FragmentId, u16), Value>,
    /// Whose contribution is measured next.
    staged: Option<PeerId>,
}

/// The mean of contributions, by whose they are and with what share.
pub(crate) type Value = BTreeMap<PeerId, f64>;

/// A member's record, as its driver would keep it.
pub(crate) struct Tape {
    recorder: Recorder,
    framer: Framer,
    pub(crate) bytes: Vec<u8>,
}

impl Tape {
    /// Begins a record of a peer made from these.
    pub(crate) fn new(binary: &str, header: &RecordHeader) -> Self {
        let (framer, bytes) = Framer::start(binary, header).unwrap();
        Self {
            recorder: Recorder::new(),
            framer,
            bytes,
        }
    }

    pub(crate) fn input(&mut self, at: Time, input: &Input) {
        let entry = self.recorder.input(at, input).unwrap();
        self.framer.frame(&entry, &mut self.bytes);
    }

    /// The record with its end.
    pub(crate) fn end(mut self) -> Vec<u8> {
        let entry = self.recorder.end().unwrap();
        self.framer.frame(&entry, &mut self.bytes);
        self.bytes
    }

    /// The record with the marker that it was cut.
    pub(crate) fn cut(mut self, reason: &str) -> Vec<u8> {
        self.framer.cut(reason, &mut self.bytes);
        self.bytes
    }
}

pub(crate) struct Club {
    pub(crate) members: BTreeMap<PeerId, Member>,
    /// Records of the members that have one; those of the dead stay.
    pub(crate) tapes: BTreeMap<PeerId, Tape>,
    pub(crate) now: Time,
    pub(crate) fate: Fate,
    /// A contribution of this peer does not decode.
    pub(crate) bad: Option<PeerId>,
    /// The content of encoded bytes, by their hash. Bytes without an entry do not decode.
    pub(crate) values: BTreeMap<Digest, Value>,
    /// The basis that a second contribution is for, by the hashes of their bytes.
    bases: BTreeMap<Digest, Digest>,
    /// The peer and the bytes that were pushed under a name.
    bodies: BTreeMap<(PeerId, SliceId), Digest>,
    /// Every push: who, what, how many bytes.
    pub(crate) pushes: Vec<(PeerId, SliceId, u64)>,
    /// Every mix of parameters: whose, of which round and fragment, and of what.
    pub(crate) mixes: Vec<(PeerId, Round, FragmentId, Value)>,
    /// From this round on, the bytes that this peer pushes are random.
    pub(crate) garbles: Option<(PeerId, u64)>,
    /// Dies with the output that is being performed.
    pub(crate) doom: Rc<Cell<Option<PeerId>>>,
    queue: VecDeque<(PeerId, Input)>,
    /// Called with every message; false loses it.
    pub(crate) hears: Box<dyn FnMut(PeerId, PeerId, &Message) -> bool>,
    /// Dies at the end of the input that is being handled.
    pub(crate) dying: Vec<PeerId>,
    /// By how much any member's training moves the clock of all. If it is not zero, deadlines also
    /// pass between inputs.
    pub(crate) training: Duration,
    /// The mean training loss of a member in a round, by what it measures.
    pub(crate) loss: Box<dyn FnMut(PeerId, Round) -> f64>,
    /// By how much a member finds that another's contribution lowers the loss: scorer, contributor, round.
    pub(crate) useful: Box<dyn FnMut(PeerId, PeerId, Round) -> f64>,
    /// What peers agree on beside the parameters, by the states that hold it.
    notes: BTreeMap<(Round, Digest), Vec<u8>>,
    /// The bytes of scores, by their hash.
    texts: BTreeMap<Digest, Vec<u8>>,
    /// How much each member was to train in each round, in the order in which it was.
    pub(crate) budgets: Vec<(PeerId, Round, StepBudget)>,
}

impl Club {
    /// No member waited longer than its deadline.
    pub(crate) fn assert_waits(&self) {
        for event in self.members.values().flat_map(|m| &m.events) {
            if let Event::Waited {
                waited, allowed, ..
            } = event
            {
                assert!(waited <= allowed, "{event:?}");
            }
        }
    }

    /// A club of `count` members, linked with one another, that begin together.
    pub(crate) fn new(count: u8) -> Self {
        Self::with_anchors(count, |_| Digest::of(b"anchor"))
    }

    /// As [`Club::new`], each from an anchor of its own.
    pub(crate) fn with_anchors(count: u8, anchor: impl Fn(u8) -> Digest) -> Self {
        Self::exchanging(ExchangeKind::AllReduce, count, anchor)
    }

    /// As [`Club::with_anchors`], with another exchange.
    pub(crate) fn exchanging(
        exchange: ExchangeKind,
        count: u8,
        anchor: impl Fn(u8) -> Digest,
    ) -> Self {
        Self::of(count, &plan(exchange, 1), anchor)
    }

    /// Members that follow a schedule for `rounds` rounds, with a fragment long enough for it.
    pub(crate) fn scheduled(count: u8, schedule: Schedule, rounds: u64) -> Self {
        let shards = schedule.cost(usize::from(count)).shards;
        Self::lasting(count, ExchangeKind::AllReduce, rounds, shards, |plan| {
            plan.schedule = schedule;
        })
    }

    /// Members of `rounds` rounds, whose fragment has 64 values for each of these shards.
    fn lasting(
        count: u8,
        exchange: ExchangeKind,
        rounds: u64,
        shards: u64,
        change: impl FnOnce(&mut Plan),
    ) -> Self {
        let mut plan = plan(exchange, 1);
        plan.rounds = rounds;
        plan.fragments[0].len = 64 * shards;
        change(&mut plan);
        Self::of(count, &plan, |_| Digest::of(b"anchor"))
    }

    /// Members that contribute twice to each of `rounds` rounds.
    pub(crate) fn passing_twice(exchange: ExchangeKind, count: u8, rounds: u64) -> Self {
        Self::lasting(count, exchange, rounds, u64::from(count), |plan| {
            plan.agreement.passes = Passes::Two;
        })
    }

    /// Members whose owners share `parts` of a fragment for `rounds` rounds.
    pub(crate) fn in_parts(count: u8, (owners, parts): (u16, u16), rounds: u64) -> Self {
        let exchange = ExchangeKind::Server(ServerPlan { owners });
        Self::lasting(count, exchange, rounds, u64::from(parts), |plan| {
            plan.agreement.parts = parts;
        })
    }

    /// Gives the members records that say where they are. In the first rounds others may not have them.
    pub(crate) fn locate(&mut self, locality: impl Fn(u8) -> Locality) {
        for id in 1..=self.members.len() as u8 {
            let record = PeerRecord::from(RecordFields {
                locality: locality(id),
                ..record(id, self.now + Duration::from_secs(3_000))
            });
            self.tell(peer(id), Input::Record(record));
        }
    }

    /// A club of `count` members that follow a plan.
    pub(crate) fn of(count: u8, plan: &Plan, anchor: impl Fn(u8) -> Digest) -> Self {
        Self::observed((count, 0), plan, anchor)
    }

    /// A club of members, and after them peers that only observe.
    pub(crate) fn observed(
        (members, observers): (u8, u8),
        plan: &Plan,
        anchor: impl Fn(u8) -> Digest,
    ) -> Self {
        let count = members + observers;
        let mut club = Self {
            members: BTreeMap::new(),
            tapes: BTreeMap::new(),
            now: Time::from_nanos(1),
            fate: Box::new(|_, _, _| Some(PushOutcome::Delivered)),
            bad: None,
            values: BTreeMap::new(),
            bases: BTreeMap::new(),
            bodies: BTreeMap::new(),
            pushes: Vec::new(),
            mixes: Vec::new(),
            garbles: None,
            doom: Rc::default(),
            queue: VecDeque::new(),
            hears: Box::new(|_, _, _| true),
            dying: Vec::new(),
            training: Duration::ZERO,
            loss: Box::new(|_, _| 0.0),
            useful: Box::new(|_, _, _| 1.0),
            texts: BTreeMap::new(),
            notes: BTreeMap::new(),
            budgets: Vec::new(),
        };
        for id in 1..=count {
            let mut settings = config(peer(id));
            settings.start_with = usize::from(members);
            let member = Member {
                peer: {
                    let neighbours = plan.exchange.has_neighbours();
                    let topology = neighbours.then(|| Box::new(BinaryTree) as _);
                    Peer::new(settings, plan.clone(), topology)
                },
                anchor: anchor(id),
                store: BTreeMap::new(),
                events: Vec::new(),
                broken: Vec::new(),
                shards: BTreeMap::new(),
                staged: None,
            };
            let digests = vec![member.anchor; plan.fragments.len()];
            club.members.insert(peer(id), member);
            if id > members {
                club.tell(peer(id), Input::Observes(peer(id)));
            }
            club.tell(
                peer(id),
                Input::Start {
                    snapshot: None,
                    digests,
                    opened: Vec::new(),
                },
            );
        }
        for a in 1..=count {
            for b in (1..=count).filter(|b| *b != a) {
                club.tell(peer(a), Input::LinkUp(peer(b)));
                if b > members {
                    club.tell(peer(a), Input::Observes(peer(b)));
                }
            }
        }
        club
    }

    /// Records every member from here on: before anything has happened, or it cannot be repeated.
    pub(crate) fn record(&mut self, binary: &str) {
        let count = self.members.len();
        for (id, member) in &self.members {
            let mut settings = config(*id);
            settings.start_with = count;
            let header = RecordHeader {
                plan: member.peer.plan().clone(),
                config: settings,
                topology: None,
            };
            self.tapes.insert(*id, Tape::new(binary, &header));
        }
    }

    pub(crate) fn tell(&mut self, to: PeerId, input: Input) {
        self.queue.push_back((to, input));
    }

    /// Ends a member at once; the others' links go down.
    pub(crate) fn kill(&mut self, victim: PeerId) {
        self.members.remove(&victim);
        let others: Vec<PeerId> = self.members.keys().copied().collect();
        others
            .into_iter()
            .for_each(|to| self.tell(to, Input::LinkDown(victim)));
    }

    /// Runs until `done`, at most for `seconds` of virtual time.
    pub(crate) fn run_until(&mut self, seconds: u64, mut done: impl FnMut(&Self) -> bool) {
        let end = self.now + Duration::from_secs(seconds);
        while self.now < end && !done(self) {
            if !self.training.is_zero() {
                let now = self.now;
                let due = |m: &Member| m.peer.poll_timeout().is_some_and(|at| at <= now);
                let due = self.members.iter().find(|(_, m)| due(m));
                if let Some(late) = due.map(|(id, _)| *id) {
                    self.feed(late, Input::Timeout);
                    continue;
                }
            }
            if let Some((to, input)) = self.queue.pop_front() {
                self.feed(to, input);
                continue;
            }
            let next = self
                .members
                .values()
                .filter_map(|m| m.peer.poll_timeout())
                .min();
            // Nothing is left to wait for only when all members have left.
            let Some(next) = next else {
                return;
            };
            self.now = self.now.max(next);
            let due: Vec<PeerId> = self.members.keys().copied().collect();
            due.into_iter().for_each(|to| self.tell(to, Input::Timeout));
        }
    }

    /// Runs until every member is in this round or beyond.
    pub(crate) fn run_to(&mut self, round: u64) {
        self.run_until(600, |club| {
            club.members.values().all(|m| m.peer.round().0 >= round)
        });
        let rounds: Vec<u64> = self.members.values().map(|m| m.peer.round().0).collect();
        assert!(
            rounds.iter().all(|r| *r >= round),
            "{rounds:?} at {}",
            self.now
        );
    }

    /// Whether all members exchange.
    pub(crate) fn exchanges(&self) -> bool {
        let mut all = self.members.values();
        all.all(|m| m.peer.phase() == Phase::Exchange)
    }

    /// Whether all members have ended the last round.
    pub(crate) fn has_finished(&self) -> bool {
        let mut all = self.members.values();
        all.all(|m| m.peer.phase() == Phase::Finished)
    }

    /// What this member says and pushes gets to no other while `silent` is set, and nothing gets to it.
    pub(crate) fn isolate(&mut self, who: PeerId, silent: &Rc<Cell<bool>>) {
        let (unheard, unpushed) = (Rc::clone(silent), Rc::clone(silent));
        self.hears = Box::new(move |from, to, _| !unheard.get() || (from != who && to != who));
        self.fate = Box::new(move |from, to, _| {
            let passes = !unpushed.get() || (from != who && to != who);
            passes.then_some(PushOutcome::Delivered)
        });
    }

    /// Checks that no member broke a rule.
    pub(crate) fn assert_rules(&self) {
        let broken = self.members.values().flat_map(|m| &m.broken).next();
        assert_eq!(broken, None);
    }

    /// Checks that all members decided a round in ballot zero, with the contributions of all.
    pub(crate) fn assert_whole(&self, round: u64, what: &str) {
        let (decided, n) = (self.decided(round), self.members.len());
        let whole = |d: &(u8, Vec<Vec<PeerId>>)| d.0 == 0 && d.1.iter().all(|set| set.len() == n);
        let all = decided.len() == n && decided.iter().all(whole);
        assert!(all, "{what}: {decided:?}");
    }

    fn feed(&mut self, to: PeerId, input: Input) {
        let Some(member) = self.members.get_mut(&to) else {
            return;
        };
        if let Input::Arrived { from, slice, .. } = &input {
            let body = self.bodies.get(&(*from, *slice)).copied();
            member
                .store
                .insert(*slice, body.unwrap_or(Digest::of(b"nothing")));
        }
        let mut tape = self.tapes.get_mut(&to);
        if let Some(tape) = &mut tape {
            tape.input(self.now, &input);
        }
        if let Err(error) = member.peer.handle(self.now, input) {
            member.broken.push(error);
        }
        let mut outputs = Vec::new();
        while let Some(output) = member.peer.poll_output() {
            if let Some(tape) = &mut tape {
                tape.recorder.output(&output);
            }
            outputs.push(output);
        }
        for output in outputs {
            if self.doom.get() != Some(to) {
                self.perform(to, output);
            }
        }
        self.dying.extend(self.doom.take());
        for victim in std::mem::take(&mut self.dying) {
            self.kill(victim);
        }
    }

    fn perform(&mut self, who: PeerId, output: Output) {
        match output {
            Output::Send { to, message } if (self.hears)(who, to, &message) => {
                self.tell(to, Input::Received { from: who, message });
            }
            Output::Push {
                to, slice, meta, ..
            } => {
                let Some(outcome) = (self.fate)(who, to, &slice) else {
                    return;
                };
                let Some(member) = self.members.get(&who) else {
                    return;
                };
                let known = *member.store.get(&slice).expect("what is pushed is here");
                assert!(meta.bytes > 0, "a header says how long its slice is");
                self.pushes.push((who, slice, meta.bytes));
                let known = match self
                    .garbles
                    .is_some_and(|(liar, since)| liar == who && slice.round.0 >= since)
                {
                    true => Digest::of(format!("{who:?} {to:?} {slice:?}").as_bytes()),
                    false => known,
                };
                self.bodies.insert((who, slice), known);
                if outcome == PushOutcome::Delivered {
                    let digest = slice.part.is_decided().then_some(known);
                    self.tell(
                        to,
                        Input::Arrived {
                            from: who,
                            slice,
                            meta,
                            digest,
                        },
                    );
                }
                self.tell(who, Input::Pushed { to, slice, outcome });
            }
            Output::Fetch { what, from, .. } => self.fetch(who, what, &from),
            Output::Order { id, order } => {
                if let Some(done) = self.answer(who, &order) {
                    self.tell(who, Input::Done { order: id, done });
                }
            }
            Output::Emit(event) => {
                if let Some(member) = self.members.get_mut(&who) {
                    member.events.push(event);
                }
            }
            _ => {}
        }
    }

    fn fetch(&mut self, who: PeerId, what: FetchId, from: &[PeerId]) {
        let FetchId::Slice(slice) = what else {
            let fetched = Input::Fetched {
                what,
                meta: None,
                digest: None,
            };
            return self.tell(who, fetched);
        };
        let holders = from.iter().filter_map(|id| self.members.get(id));
        let found = holders
            .into_iter()
            .find_map(|m| m.store.get(&slice).copied());
        match (found, self.members.get_mut(&who)) {
            (Some(digest), Some(member)) => {
                member.store.insert(slice, digest);
                let digest = Some(digest);
                self.tell(
                    who,
                    Input::Fetched {
                        what,
                        meta: None,
                        digest,
                    },
                );
            }
            _ => self.tell(who, Input::FetchFailed { what }),
        }
    }

    /// What the Executor answers; nothing to an order that needs no answer.
    fn answer(&mut self, who: PeerId, order: &Order) -> Option<Done> {
        let done = match order {
            Order::Train { round, budget, .. } => {
                self.now = self.now + self.training;
                self.budgets.push((who, *round, *budget));
                Ok(Done::Trained(TrainSummary {
                    steps: 1,
                    samples: 8 + u64::from(who.as_bytes()[0]),
                    loss: (self.loss)(who, *round),
                    ..TrainSummary::default()
                }))
            }
            Order::Encode { slice, of, from } => self.encode(who, *slice, *of, from),
            Order::Combine { piece, how } => self.combine(who, *piece, how),
            Order::Apply {
                round,
                fragment,
                ending,
                ..
            } => self.apply(who, *round, *fragment, ending),
            Order::Stage { slice } => self.stage(who, *slice),
            Order::Measure { round, .. } => {
                let about = self.members[&who].staged;
                let useful = about.map(|about| (self.useful)(who, about, *round));
                let loss = useful.map_or(0.0, |useful| -useful);
                Ok(Done::Measured { loss })
            }
            Order::Read { slice } => match self.members[&who].store.get(slice) {
                Some(digest) => Ok(Done::Read {
                    bytes: self.texts.get(digest).cloned().unwrap_or(vec![7; 3]),
                }),
                None => Err(WorkError::Gone { slice: *slice }),
            },
            Order::Release { slice } => {
                self.members.get_mut(&who)?.store.remove(slice);
                return None;
            }
            Order::Settle { .. } | Order::Forget(_) => return None,
            Order::Evaluate { .. } => Ok(Done::Evaluated(Evaluation::default())),
            Order::Save { .. } => Ok(Done::Saved),
            Order::Pin { round, note } => {
                let root = self.members[&who].anchor;
                self.notes.insert((*round, root), note.clone());
                Ok(Done::Pinned(StateId {
                    round: *round,
                    root,
                    bytes: 9,
                }))
            }
            Order::Load { state } => {
                let member = self.members.get_mut(&who)?;
                member.anchor = state.root;
                let note = self.notes.get(&(state.round, state.root));
                Ok(Done::Loaded {
                    digests: vec![member.anchor; member.peer.plan().fragments.len()],
                    note: note.cloned().unwrap_or_default(),
                })
            }
        };
        Some(done.unwrap_or_else(Done::Failed))
    }

    fn encode(
        &mut self,
        who: PeerId,
        slice: SliceId,
        of: u16,
        from: &Source,
    ) -> Result<Done, WorkError> {
        let member = &self.members[&who];
        let fragment = member.peer.plan().fragment(slice.fragment);
        let len = fragment.map_or(0, |f| f.len);
        let own = Value::from([(who, 1.0)]);
        Ok(match from {
            Source::Store(_) | Source::Masked(_) => {
                let value = match from {
                    Source::Store(StoreId::Shard(shard)) => {
                        member.shards[&(slice.fragment, *shard)].clone()
                    }
                    _ => own,
                };
                let at = |shard: u16| len * u64::from(shard) / u64::from(of);
                let bytes = 4 * (at(slice.shard + 1) - at(slice.shard));
                let place = (slice.round, slice.fragment, slice.shard, of);
                self.keep(who, slice, &format!("{place:?}"), value, bytes)
            }
            Source::Basis(inputs) => {
                let value = self.mean(who, 0.0, inputs)?;
                self.keep(who, slice, &format!("{slice:?}"), value, 64)
            }
            Source::Second { basis } => {
                let basis = member.store[basis];
                let done = self.keep(who, slice, &format!("{slice:?}"), own, 64);
                self.bases.insert(self.members[&who].store[&slice], basis);
                done
            }
            Source::Joined { basis, inputs } => {
                let basis = member.store[basis];
                let fits = |slice: &SliceId| self.bases.get(&member.store[slice]) == Some(&basis);
                if let Some((slice, _)) = inputs.iter().find(|(slice, _)| !fits(slice)) {
                    return Err(bad_slice(slice, "for another basis"));
                }
                let value = self.mean(who, 0.0, inputs)?;
                self.keep(who, slice, &format!("{slice:?}"), value, 64)
            }
            Source::Relayed(inputs) => {
                let value = self.mean(who, 1.0, inputs)?;
                self.keep(who, slice, &format!("{slice:?}"), value, 4 * len)
            }
            Source::Bytes(bytes) => {
                let digest = Digest::of(bytes);
                self.texts.insert(digest, bytes.clone());
                self.store_of(who).insert(slice, digest);
                let bytes = bytes.len() as u64;
                let digest = Some(digest);
                Done::Encoded { bytes, digest }
            }
            Source::Noted(_) | Source::Bundle { .. } => Done::Combined,
        })
    }

    fn combine(&mut self, who: PeerId, piece: Piece, how: &Combination) -> Result<Done, WorkError> {
        let fragment = piece.fragment;
        match how {
            Combination::Reduce(inputs) => {
                let value = self.mean(who, 0.0, inputs)?;
                let shards = &mut self.members.get_mut(&who).expect("it ordered").shards;
                shards.insert((fragment, piece.shard), value);
            }
            Combination::Mix {
                round,
                keep,
                inputs,
            } => {
                let value = self.mean(who, *keep, inputs)?;
                self.mixes.push((who, *round, fragment, value));
            }
            // What replicas hold is tested with tensors.
            Combination::MixReplicas { round, inputs } => {
                let value = self.mean(who, 1.0, inputs)?;
                self.mixes.push((who, *round, fragment, value));
            }
            // No club is split: what a merge does is tested in the simulator.
            Combination::ResetCenter(_)
            | Combination::MoveCenter(_)
            | Combination::SumRow(_)
            | Combination::Average(_) => {}
        }
        Ok(Done::Combined)
    }

    fn apply(
        &mut self,
        who: PeerId,
        round: Round,
        fragment: FragmentId,
        ending: &Ending,
    ) -> Result<Done, WorkError> {
        let member = self.members.get_mut(&who).expect("it ordered");
        let bytes_of = |slice: &SliceId| *member.store[slice].as_bytes();
        match ending {
            Ending::Apply(aggregates) => {
                for slice in aggregates {
                    let value = self.values.get(&member.store[slice]);
                    let value = value.ok_or_else(|| bad_slice(slice, "garbage"))?;
                    let stated = stated(&member.events, round, fragment, slice.shard);
                    if let Some(stated) = stated {
                        assert_mean(value, &stated);
                    }
                }
                let mut bytes: Vec<u8> = aggregates.iter().flat_map(bytes_of).collect();
                bytes.extend(member.anchor.as_bytes());
                member.anchor = Digest::of(&bytes);
            }
            Ending::Gather(inputs) => {
                let bad = |slice: &SliceId| Some(slice.origin) == self.bad;
                if let Some((slice, _)) = inputs.iter().find(|(slice, _)| bad(slice)) {
                    return Err(bad_slice(slice, "NaN"));
                }
                let mut bytes = member.anchor.as_bytes().to_vec();
                for (slice, weight) in inputs {
                    bytes.extend(bytes_of(slice));
                    bytes.extend(weight.to_le_bytes());
                }
                if !inputs.is_empty() {
                    member.anchor = Digest::of(&bytes);
                }
            }
            Ending::Merge(_) | Ending::Void => {}
        }
        let note = Vec::new();
        let digest = member.anchor;
        Ok(Done::Applied { digest, note })
    }

    fn stage(&mut self, who: PeerId, slice: Option<SliceId>) -> Result<Done, WorkError> {
        if let Some(slice) = slice.filter(|slice| Some(slice.origin) == self.bad) {
            return Err(bad_slice(&slice, "NaN"));
        }
        let member = self.members.get_mut(&who).expect("it ordered");
        member.staged = slice.map(|slice| slice.origin);
        Ok(Done::Combined)
    }

    /// The mean of the slices and of a member's own part, each with its weight.
    fn mean(&self, who: PeerId, own: f64, inputs: &[(SliceId, f64)]) -> Result<Value, WorkError> {
        let store = &self.members[&who].store;
        let total: f64 = own + inputs.iter().map(|(_, weight)| weight).sum::<f64>();
        let mut value = Value::new();
        if own > 0.0 {
            value.insert(who, own / total);
        }
        for (slice, weight) in inputs {
            let liar = Some(slice.origin) == self.bad && slice.origin != who;
            let found = self.values.get(&store[slice]).filter(|_| !liar);
            for (peer, share) in found.ok_or_else(|| bad_slice(slice, "NaN"))? {
                *value.entry(*peer).or_default() += share * weight / total;
            }
        }
        Ok(value)
    }

    fn store_of(&mut self, who: PeerId) -> &mut BTreeMap<SliceId, Digest> {
        &mut self.members.get_mut(&who).expect("it ordered").store
    }

    /// Keeps encoded bytes of this content and length under the slice's name.
    fn keep(&mut self, who: PeerId, slice: SliceId, name: &str, value: Value, bytes: u64) -> Done {
        let digest = Digest::of(format!("{name} {value:?}").as_bytes());
        self.values.insert(digest, value);
        self.store_of(who).insert(slice, digest);
        let digest = (slice.part == Part::Aggregate).then_some(digest);
        Done::Encoded { bytes, digest }
    }

    /// Bytes and pushes of a round, member by member.
    pub(crate) fn sent(&self, round: u64) -> BTreeMap<PeerId, (u64, u64)> {
        let mut sent: BTreeMap<PeerId, (u64, u64)> = BTreeMap::new();
        for (who, _, bytes) in self.pushes.iter().filter(|(_, s, _)| s.round.0 == round) {
            let (pushes, all) = sent.entry(*who).or_default();
            (*pushes, *all) = (*pushes + 1, *all + bytes);
        }
        sent
    }

    /// What the members decided in a round: ballot and contributors of every shard.
    pub(crate) fn decided(&self, round: u64) -> Vec<(u8, Vec<Vec<PeerId>>)> {
        let mut all = Vec::new();
        for event in self.members.values().flat_map(|m| &m.events) {
            if let Event::Decided {
                round: r,
                ballot,
                contributors,
                ..
            } = event
                && r.0 == round
            {
                let names = |shard: &Vec<(PeerId, f64)>| shard.iter().map(|(p, _)| *p).collect();
                all.push((*ballot, contributors.iter().map(names).collect()));
            }
        }
        all
    }

    /// How many members voided a round.
    pub(crate) fn voided(&self, round: u64) -> usize {
        let voided = |e: &&Event| matches!(e, Event::Voided { round: r, .. } if r.0 == round);
        let events = self.members.values().flat_map(|m| &m.events);
        events.filter(voided).count()
    }

    /// The anchor that all members hold.
    pub(crate) fn anchor(&self) -> Digest {
        let mut anchors: Vec<Digest> = self.members.values().map(|m| m.anchor).collect();
        anchors.dedup();
        assert_eq!(anchors.len(), 1, "the members hold different anchors");
        anchors[0]
    }
}

fn bad_slice(slice: &SliceId, reason: &str) -> WorkError {
    WorkError::BadSlice {
        slice: *slice,
        origin: slice.origin,
        reason: reason.to_owned(),
    }
}

/// The contributors of a shard, as a member said it had decided.
fn stated(
    events: &[Event],
    round: Round,
    fragment: FragmentId,
    shard: u16,
) -> Option<Vec<(PeerId, f64)>> {
    events.iter().rev().find_map(|event| match event {
        Event::Decided {
            round: r,
            fragment: f,
            contributors,
            ..
        } if (*r, *f) == (round, fragment) => contributors.get(usize::from(shard)).cloned(),
        _ => None,
    })
}

/// An aggregate is the weighted mean of the stated set.
fn assert_mean(value: &Value, stated: &[(PeerId, f64)]) {
    let total: f64 = stated.iter().map(|(_, weight)| weight).sum();
    let close = |(peer, weight): &(PeerId, f64)| {
        let share = value.get(peer).copied().unwrap_or(0.0);
        (share - weight / total).abs() < 1e-9
    };
    let whole = value.len() == stated.len() && stated.iter().all(close);
    assert!(whole, "{value:?} is not the mean of {stated:?}");
}

/// Loses pushes of round 1 by a seed.
pub(crate) fn lose_slices(club: &mut Club, seed: u64) {
    let mut draw = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    club.fate = Box::new(move |_, _, slice| {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Some(match (slice.round.0, draw >> 60) {
            (1, 0) => PushOutcome::Unknown,
            (1, 1) => PushOutcome::Refused,
            (1, 2..5) => PushOutcome::Lost,
            _ => PushOutcome::Delivered,
        })
    });
}

/// Loses messages of round 1 by a seed.
pub(crate) fn lose_words(club: &mut Club, seed: u64, lossy: fn(&str) -> bool) {
    let mut draw = seed.wrapping_mul(0xd134_2543_de82_ef95) | 1;
    club.hears = Box::new(move |_, _, message| {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let lossy = lossy(message.name()) && message.round() == Some(Round(1));
        !lossy || draw >> 61 != 0
    });
}
