//! A club of peers on a perfect network. Their Executors keep the names of what is encoded, pushed,
//! fetched, applied and released, but no tensors.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::type_complexity,
    clippy::too_many_lines,
    clippy::collapsible_match,
    reason = "every test file uses its own part of it"
)]

use super::{BinaryTree, config, peer, plan};
use core::time::Duration;
use murmurate_protocol::record::{Framer, RecordHeader, Recorder};
use murmurate_protocol::wire::{Message, PeerRecord, RecordFields};
use murmurate_protocol::{
    Combination, Digest, Done, Ending, Evaluation, Event, ExchangeKind, FetchId, FragmentId, Input,
    Locality, Order, Output, Part, Passes, Peer, PeerError, PeerId, Piece, Plan, PushOutcome,
    Round, RunId, Schedule, ServerPlan, SliceId, Source, StateId, StepBudget, StoreId, Time,
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
        let mut plan = plan(ExchangeKind::AllReduce, 1);
        (plan.schedule, plan.rounds) = (schedule, rounds);
        let len = 64 * schedule.cost(usize::from(count)).shards;
        plan.fragments.iter_mut().for_each(|f| f.len = len);
        Self::of(count, &plan, |_| Digest::of(b"anchor"))
    }

    /// Members that contribute twice to each of `rounds` rounds.
    pub(crate) fn passing_twice(exchange: ExchangeKind, count: u8, rounds: u64) -> Self {
        let mut plan = plan(exchange, 1);
        (plan.agreement.passes, plan.rounds) = (Passes::Two, rounds);
        plan.fragments
            .iter_mut()
            .for_each(|f| f.len = 64 * u64::from(count));
        Self::of(count, &plan, |_| Digest::of(b"anchor"))
    }

    /// Members whose owners share `parts` of a fragment for `rounds` rounds.
    pub(crate) fn in_parts(count: u8, (owners, parts): (u16, u16), rounds: u64) -> Self {
        let mut plan = plan(ExchangeKind::Server(ServerPlan { owners }), 1);
        (plan.agreement.parts, plan.rounds) = (parts, rounds);
        plan.fragments
            .iter_mut()
            .for_each(|f| f.len = 64 * u64::from(parts));
        Self::of(count, &plan, |_| Digest::of(b"anchor"))
    }

    /// Gives the members records that say where they are. In the first rounds others may not have them.
    pub(crate) fn locate(&mut self, locality: impl Fn(u8) -> Locality) {
        for id in 1..=self.members.len() as u8 {
            let record = PeerRecord::from(RecordFields {
                peer: peer(id),
                run: RunId::from_bytes([1; 32]),
                sequence: 1,
                expires: self.now + Duration::from_secs(3_000),
                addresses: Vec::new(),
                locality: locality(id),
                signature: Vec::new(),
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
            Output::Send { to, message } => {
                if (self.hears)(who, to, &message) {
                    self.tell(to, Input::Received { from: who, message });
                }
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

    fn answer(&mut self, who: PeerId, order: &Order) -> Option<Done> {
        let bad = self.bad;
        let mut loss = 0.0;
        if let Order::Train { round, budget, .. } = order {
            self.now = self.now + self.training;
            self.budgets.push((who, *round, *budget));
            loss = (self.loss)(who, *round);
        }
        let member = self.members.get_mut(&who)?;
        Some(match order {
            Order::Train { .. } => Done::Trained(TrainSummary {
                steps: 1,
                samples: 8 + u64::from(who.as_bytes()[0]),
                loss,
                ..TrainSummary::default()
            }),
            Order::Encode {
                slice,
                of,
                from: from @ (Source::Store(_) | Source::Masked(_)),
            } => {
                let value = match from {
                    Source::Store(StoreId::Shard(shard)) => {
                        member.shards[&(slice.fragment, *shard)].clone()
                    }
                    _ => Value::from([(who, 1.0)]),
                };
                let place = (slice.round, slice.fragment, slice.shard, of);
                let digest = Digest::of(format!("{place:?} {value:?}").as_bytes());
                self.values.insert(digest, value);
                member.store.insert(*slice, digest);
                let plan = member.peer.plan();
                let len = plan.fragment(slice.fragment).map_or(0, |f| f.len);
                let at = |shard: u16| len * u64::from(shard) / u64::from(*of);
                let bytes = 4 * (at(slice.shard + 1) - at(slice.shard));
                let digest = (slice.part == Part::Aggregate).then_some(digest);
                Done::Encoded { bytes, digest }
            }
            Order::Combine {
                piece: Piece {
                    fragment, shard, ..
                },
                how: Combination::Reduce(inputs),
            } => match mean(&self.values, &member.store, bad, (who, 0.0), inputs) {
                Ok(value) => {
                    member.shards.insert((*fragment, *shard), value);
                    Done::Combined
                }
                Err(error) => Done::Failed(error),
            },
            Order::Encode {
                slice,
                from: Source::Basis(inputs),
                ..
            } => match mean(&self.values, &member.store, bad, (who, 0.0), inputs) {
                Ok(value) => self.keep(who, *slice, value),
                Err(error) => Done::Failed(error),
            },
            Order::Encode {
                slice,
                from: Source::Second { basis },
                ..
            } => {
                let basis = member.store[basis];
                let value = Value::from([(who, 1.0)]);
                let done = self.keep(who, *slice, value);
                let second = self.members[&who].store[slice];
                self.bases.insert(second, basis);
                done
            }
            Order::Encode {
                slice,
                from: Source::Joined { basis, inputs },
                ..
            } => {
                let basis = member.store[basis];
                let fits = |slice: &SliceId| self.bases.get(&member.store[slice]) == Some(&basis);
                if let Some((slice, _)) = inputs.iter().find(|(slice, _)| !fits(slice)) {
                    return Some(Done::Failed(WorkError::BadSlice {
                        slice: *slice,
                        origin: slice.origin,
                        reason: "for another basis".to_owned(),
                    }));
                }
                match mean(&self.values, &member.store, bad, (who, 0.0), inputs) {
                    Ok(value) => self.keep(who, *slice, value),
                    Err(error) => Done::Failed(error),
                }
            }
            Order::Combine {
                piece: Piece { fragment, .. },
                how:
                    Combination::Mix {
                        round,
                        keep,
                        inputs,
                    },
            } => match mean(&self.values, &member.store, bad, (who, *keep), inputs) {
                Ok(value) => {
                    self.mixes.push((who, *round, *fragment, value));
                    Done::Combined
                }
                Err(error) => Done::Failed(error),
            },
            // What replicas hold is tested with tensors.
            Order::Combine {
                piece: Piece { fragment, .. },
                how: Combination::MixReplicas { round, inputs },
            } => match mean(&self.values, &member.store, bad, (who, 1.0), inputs) {
                Ok(value) => {
                    self.mixes.push((who, *round, *fragment, value));
                    Done::Combined
                }
                Err(error) => Done::Failed(error),
            },
            Order::Encode {
                slice,
                from: Source::Relayed(inputs),
                ..
            } => {
                let value = match mean(&self.values, &member.store, bad, (who, 1.0), inputs) {
                    Ok(value) => value,
                    Err(error) => return Some(Done::Failed(error)),
                };
                let digest = Digest::of(format!("{slice:?} {value:?}").as_bytes());
                self.values.insert(digest, value);
                member.store.insert(*slice, digest);
                let fragment = member.peer.plan().fragment(slice.fragment);
                let bytes = 4 * fragment.map_or(0, |f| f.len);
                let digest = None;
                Done::Encoded { bytes, digest }
            }
            Order::Apply {
                ending: Ending::Apply(aggregates),
                round,
                fragment,
                ..
            } => {
                for slice in aggregates {
                    let digest = member.store.get(slice).expect("what is applied is here");
                    let Some(value) = self.values.get(digest) else {
                        return Some(Done::Failed(WorkError::BadSlice {
                            slice: *slice,
                            origin: slice.origin,
                            reason: "garbage".to_owned(),
                        }));
                    };
                    let stated = stated(&member.events, *round, *fragment, slice.shard);
                    if let Some(stated) = stated {
                        assert_mean(value, &stated);
                    }
                }
                let bytes: Vec<u8> = aggregates
                    .iter()
                    .flat_map(|s| {
                        *member
                            .store
                            .get(s)
                            .expect("what is applied is here")
                            .as_bytes()
                    })
                    .chain(*member.anchor.as_bytes())
                    .collect();
                member.anchor = Digest::of(&bytes);
                Done::Applied {
                    digest: member.anchor,
                    note: Vec::new(),
                }
            }
            Order::Combine {
                how: Combination::ResetCenter(_),
                ..
            }
            | Order::Combine {
                how: Combination::MoveCenter(_),
                ..
            } => Done::Combined,
            Order::Combine {
                how: Combination::SumRow(_),
                ..
            }
            | Order::Encode {
                from: Source::Noted(_) | Source::Bundle { .. },
                ..
            } => Done::Combined,
            Order::Apply {
                ending: Ending::Gather(inputs),
                ..
            } => {
                if let Some((slice, _)) = inputs.iter().find(|(s, _)| Some(s.origin) == bad) {
                    return Some(Done::Failed(WorkError::BadSlice {
                        slice: *slice,
                        origin: slice.origin,
                        reason: "NaN".to_owned(),
                    }));
                }
                if inputs.is_empty() {
                    return Some(Done::Applied {
                        digest: member.anchor,
                        note: Vec::new(),
                    });
                }
                let mut bytes = member.anchor.as_bytes().to_vec();
                for (slice, weight) in inputs {
                    let digest = member.store.get(slice).expect("what is gathered is here");
                    bytes.extend_from_slice(digest.as_bytes());
                    bytes.extend_from_slice(&weight.to_le_bytes());
                }
                member.anchor = Digest::of(&bytes);
                Done::Applied {
                    digest: member.anchor,
                    note: Vec::new(),
                }
            }
            Order::Stage { slice } => {
                if let Some(slice) = slice.filter(|slice| Some(slice.origin) == bad) {
                    return Some(Done::Failed(WorkError::BadSlice {
                        slice,
                        origin: slice.origin,
                        reason: "NaN".to_owned(),
                    }));
                }
                member.staged = slice.map(|slice| slice.origin);
                Done::Combined
            }
            Order::Measure { round, .. } => {
                let (about, now) = (member.staged, *round);
                Done::Measured {
                    loss: about.map_or(0.0, |about| -(self.useful)(who, about, now)),
                }
            }
            Order::Encode {
                slice,
                from: Source::Bytes(bytes),
                ..
            } => {
                let digest = Digest::of(bytes);
                self.texts.insert(digest, bytes.clone());
                member.store.insert(*slice, digest);
                let bytes = bytes.len() as u64;
                let digest = Some(digest);
                Done::Encoded { bytes, digest }
            }
            Order::Read { slice } => match member.store.get(slice) {
                Some(digest) => Done::Read {
                    bytes: self.texts.get(digest).cloned().unwrap_or(vec![7; 3]),
                },
                None => Done::Failed(WorkError::Gone { slice: *slice }),
            },
            Order::Release { slice } => {
                member.store.remove(slice);
                return None;
            }
            Order::Settle { .. } | Order::Forget(_) => {
                return None;
            }
            Order::Evaluate { .. } => Done::Evaluated(Evaluation::default()),
            // No club is split: what a merge does is tested in the simulator.
            Order::Combine {
                how: Combination::Average(_),
                ..
            } => Done::Combined,
            Order::Apply {
                ending: Ending::Merge(_) | Ending::Void,
                ..
            } => Done::Applied {
                digest: member.anchor,
                note: Vec::new(),
            },
            Order::Save { .. } => Done::Saved,
            Order::Pin { round, note } => {
                self.notes.insert((*round, member.anchor), note.clone());
                Done::Pinned(StateId {
                    round: *round,
                    root: member.anchor,
                    bytes: 9,
                })
            }
            Order::Load { state } => {
                member.anchor = state.root;
                Done::Loaded {
                    digests: vec![member.anchor; member.peer.plan().fragments.len()],
                    note: self
                        .notes
                        .get(&(state.round, state.root))
                        .cloned()
                        .unwrap_or_default(),
                }
            }
        })
    }

    /// Keeps encoded bytes of this content under the slice's name.
    fn keep(&mut self, who: PeerId, slice: SliceId, value: Value) -> Done {
        let digest = Digest::of(format!("{slice:?} {value:?}").as_bytes());
        self.values.insert(digest, value);
        let member = self.members.get_mut(&who).unwrap();
        member.store.insert(slice, digest);
        let digest = (slice.part == Part::Aggregate).then_some(digest);
        Done::Encoded { bytes: 64, digest }
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

/// The mean of the slices and of a member's own part, each with its weight.
fn mean(
    values: &BTreeMap<Digest, Value>,
    store: &BTreeMap<SliceId, Digest>,
    bad: Option<PeerId>,
    (who, own): (PeerId, f64),
    inputs: &[(SliceId, f64)],
) -> Result<Value, WorkError> {
    let total: f64 = own + inputs.iter().map(|(_, weight)| weight).sum::<f64>();
    let mut value = Value::new();
    if own > 0.0 {
        value.insert(who, own / total);
    }
    for (slice, weight) in inputs {
        let liar = Some(slice.origin) == bad && slice.origin != who;
        let found = values.get(&store[slice]).filter(|_| !liar);
        let found = found.ok_or_else(|| WorkError::BadSlice {
            slice: *slice,
            origin: slice.origin,
            reason: "NaN".to_owned(),
        })?;
        for (peer, share) in found {
            *value.entry(*peer).or_default() += share * weight / total;
        }
    }
    Ok(value)
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
