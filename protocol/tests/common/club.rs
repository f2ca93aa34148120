//! A club of peers on a perfect network, with Executors that only keep names: what is encoded,
//! pushed, fetched, applied and released, without a tensor.
#![allow(
    dead_code,
    missing_docs,
    clippy::unwrap_used,
    clippy::type_complexity,
    clippy::too_many_lines,
    clippy::collapsible_match,
    reason = "every test file uses its own part of it"
)]

use super::{config, peer, plan};
use core::time::Duration;
use murmurate_protocol::record::{Framer, RecordHeader, Recorder};
use murmurate_protocol::wire::Message;
use murmurate_protocol::{
    Digest, Done, Evaluation, Event, ExchangeKind, FetchId, Input, Order, Output, Part, Peer,
    PeerError, PeerId, PushOutcome, SliceId, StateId, Time, TrainSummary, WorkError,
};
use std::collections::{BTreeMap, VecDeque};

/// What the network does with a push, decided by sender, receiver and slice.
pub type Fate = Box<dyn FnMut(PeerId, PeerId, &SliceId) -> Option<PushOutcome>>;

/// One member: its peer, and what its Executor would hold.
pub struct Member {
    pub peer: Peer,
    pub anchor: Digest,
    pub store: BTreeMap<SliceId, Digest>,
    pub events: Vec<Event>,
    pub broken: Vec<PeerError>,
    combined: String,
}

/// A member's record, as its driver would keep it.
pub struct Tape {
    recorder: Recorder,
    framer: Framer,
    pub bytes: Vec<u8>,
}

impl Tape {
    /// Begins a record of a peer made from these.
    pub fn new(binary: &str, header: &RecordHeader) -> Self {
        let (framer, bytes) = Framer::start(binary, header).unwrap();
        Self {
            recorder: Recorder::new(),
            framer,
            bytes,
        }
    }

    pub fn input(&mut self, at: Time, input: &Input) {
        let entry = self.recorder.input(at, input).unwrap();
        self.framer.frame(&entry, &mut self.bytes);
    }

    /// The record with its end.
    pub fn end(mut self) -> Vec<u8> {
        let entry = self.recorder.end().unwrap();
        self.framer.frame(&entry, &mut self.bytes);
        self.bytes
    }

    /// The record with the marker that it was cut.
    pub fn cut(mut self, reason: &str) -> Vec<u8> {
        self.framer.cut(reason, &mut self.bytes);
        self.bytes
    }
}

pub struct Club {
    pub members: BTreeMap<PeerId, Member>,
    /// Records of the members that have one; those of the dead stay.
    pub tapes: BTreeMap<PeerId, Tape>,
    pub now: Time,
    pub fate: Fate,
    /// A contribution of this peer does not decode.
    pub bad: Option<PeerId>,
    queue: VecDeque<(PeerId, Input)>,
    /// Called with every message; false loses it.
    pub hears: Box<dyn FnMut(PeerId, PeerId, &Message) -> bool>,
    /// Dies at the end of the input that is being handled.
    pub dying: Vec<PeerId>,
}

impl Club {
    /// So many members, linked with one another, that begin together.
    pub fn new(count: u8) -> Self {
        Self::with_anchors(count, |_| Digest::of(b"anchor"))
    }

    /// As [`Club::new`], each from an anchor of its own.
    pub fn with_anchors(count: u8, anchor: impl Fn(u8) -> Digest) -> Self {
        let mut club = Self {
            members: BTreeMap::new(),
            tapes: BTreeMap::new(),
            now: Time::from_nanos(1),
            fate: Box::new(|_, _, _| Some(PushOutcome::Delivered)),
            bad: None,
            queue: VecDeque::new(),
            hears: Box::new(|_, _, _| true),
            dying: Vec::new(),
        };
        for id in 1..=count {
            let mut settings = config(peer(id));
            settings.start_with = usize::from(count);
            let member = Member {
                peer: Peer::new(settings, plan(ExchangeKind::AllReduce, 1), None),
                anchor: anchor(id),
                store: BTreeMap::new(),
                events: Vec::new(),
                broken: Vec::new(),
                combined: String::new(),
            };
            let digests = vec![member.anchor];
            club.members.insert(peer(id), member);
            club.tell(
                peer(id),
                Input::Start {
                    snapshot: None,
                    digests,
                },
            );
        }
        for a in 1..=count {
            (1..=count)
                .filter(|b| *b != a)
                .for_each(|b| club.tell(peer(a), Input::LinkUp(peer(b))));
        }
        club
    }

    /// Records every member from here on: before anything has happened, or it cannot be repeated.
    pub fn record(&mut self, binary: &str) {
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

    pub fn tell(&mut self, to: PeerId, input: Input) {
        self.queue.push_back((to, input));
    }

    /// Ends a member at once; the others' links go down.
    pub fn kill(&mut self, victim: PeerId) {
        self.members.remove(&victim);
        let others: Vec<PeerId> = self.members.keys().copied().collect();
        others
            .into_iter()
            .for_each(|to| self.tell(to, Input::LinkDown(victim)));
    }

    /// Runs until `done`, or for so many virtual seconds.
    pub fn run_until(&mut self, seconds: u64, mut done: impl FnMut(&Self) -> bool) {
        let end = self.now + Duration::from_secs(seconds);
        while self.now < end && !done(self) {
            if let Some((to, input)) = self.queue.pop_front() {
                self.feed(to, input);
                continue;
            }
            let next = self
                .members
                .values()
                .filter_map(|m| m.peer.poll_timeout())
                .min();
            // Only when all have left there is nothing to wait for.
            let Some(next) = next else {
                return;
            };
            self.now = self.now.max(next);
            let due: Vec<PeerId> = self.members.keys().copied().collect();
            due.into_iter().for_each(|to| self.tell(to, Input::Timeout));
        }
    }

    /// Runs until every member is in this round or beyond.
    pub fn run_to(&mut self, round: u64) {
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
        if let Input::Arrived { slice, digest, .. } = &input {
            member
                .store
                .insert(*slice, digest.unwrap_or(Digest::of(b"contribution")));
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
        outputs
            .into_iter()
            .for_each(|output| self.perform(to, output));
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
                if outcome == PushOutcome::Delivered {
                    let digest = (slice.part == Part::Aggregate).then_some(known);
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
        let member = self.members.get_mut(&who)?;
        Some(match order {
            Order::Train { .. } => Done::Trained(TrainSummary {
                steps: 1,
                samples: 8,
                ..TrainSummary::default()
            }),
            Order::Encode { slice, .. } => {
                let digest = match slice.part {
                    Part::Aggregate => {
                        Digest::of(format!("{slice:?} {}", member.combined).as_bytes())
                    }
                    Part::Contribution => Digest::of(b"contribution"),
                };
                member.store.insert(*slice, digest);
                let digest = (slice.part == Part::Aggregate).then_some(digest);
                Done::Encoded { bytes: 48, digest }
            }
            Order::Combine { inputs, .. } => {
                let found = inputs.iter().find(|(s, _)| Some(s.origin) == bad);
                if let Some((slice, _)) = found.filter(|(s, _)| s.origin != who) {
                    return Some(Done::Failed(WorkError::BadSlice {
                        slice: *slice,
                        origin: slice.origin,
                        reason: "NaN".to_owned(),
                    }));
                }
                assert!(inputs.iter().all(|(s, _)| member.store.contains_key(s)));
                member.combined = format!("{inputs:?}");
                Done::Combined
            }
            Order::Apply { aggregates, .. } => {
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
                }
            }
            Order::Void { .. } => Done::Applied {
                digest: member.anchor,
            },
            Order::Release { slice } => {
                member.store.remove(slice);
                return None;
            }
            Order::Settle { .. } | Order::Unpin { .. } | Order::Forget { .. } => return None,
            Order::Evaluate { .. } => Done::Evaluated(Evaluation::default()),
            Order::Save { .. } => Done::Saved,
            Order::Pin { round } => Done::Pinned(StateId {
                round: *round,
                root: member.anchor,
                bytes: 9,
            }),
            Order::Load { state } => {
                member.anchor = state.root;
                Done::Loaded {
                    digests: vec![member.anchor],
                }
            }
        })
    }

    /// What the members decided in a round: ballot and contributors of every shard.
    pub fn decided(&self, round: u64) -> Vec<(u8, Vec<Vec<PeerId>>)> {
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

    /// How many members found nothing to agree on in a round.
    pub fn voided(&self, round: u64) -> usize {
        let voided = |e: &&Event| matches!(e, Event::Voided { round: r, .. } if r.0 == round);
        let events = self.members.values().flat_map(|m| &m.events);
        events.filter(voided).count()
    }

    /// The anchor that all members hold.
    pub fn anchor(&self) -> Digest {
        let mut anchors: Vec<Digest> = self.members.values().map(|m| m.anchor).collect();
        anchors.dedup();
        assert_eq!(anchors.len(), 1, "the members hold different anchors");
        anchors[0]
    }
}
